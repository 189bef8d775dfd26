"""Scripts for a server that is a process of its own: what it answers to thousands of requests, and what it does wrong."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wire.dialects import DIALECTS, Dialect
from wire.faults import MALFORMED, NEVER, ODD, PASSING, SLOW
from wire.ledger import Ledger, body_hash
from wire.server import Received, Reply

SETS = {"passing": PASSING, "malformed": MALFORMED, "slow": SLOW, "never": NEVER, "odd": ODD}
SUM = re.compile(r"What is (\d+) \+ (\d+)\?")
_IN_A_ROW = 3
"""Faults for one body after which an answer comes."""


def sums(count: int) -> list[dict[str, Any]]:
    """Tasks of kind `answer`, as lines of a benchmark `jsonl`, that these scripts know the answers to."""
    pairs = [(number * 7 + 3, number * 11 + 5) for number in range(count)]
    return [
        {"id": f"sum/{n:05}", "kind": "answer", "prompt": f"What is {a} + {b}?", "reference": str(a + b)}
        for n, (a, b) in enumerate(pairs)
    ]


def dialect_of(received: Received) -> Dialect:
    """The protocol that a request speaks, by its path."""
    return next(dialect for dialect in DIALECTS if received.path.endswith(dialect.path.removeprefix("/v1")))


def prompt_of(received: Received) -> str:
    """The text of the first message."""
    body = received.body
    return (body.get("messages") or body["input"])[0]["content"]


@dataclass
class Mix:
    """Answers right with a known rate; a share of requests meets a fault. What it does depends on the seed, the body and how often
    that body has come, not on the order of arrivals."""

    ledger: Ledger
    seed: int = 0
    share: float = 0.2
    """Share of requests that meet a fault."""
    names: tuple[str, ...] = ()
    """Faults to choose from, of any set; empty: those that pass and those that are malformed."""
    rate: float = 0.7
    """Probability that an answer is right."""
    prices: tuple[float, float] = (3.0, 15.0)
    """US dollars for a million tokens of input and of output."""
    latency: float = 0.0
    _row: Counter[str] = field(default_factory=Counter)

    @cached_property
    def _faults(self) -> dict[str, Callable[..., Reply]]:
        known: dict[str, Callable[..., Reply]] = {name: fault for faults in SETS.values() for name, fault in faults.items()}
        return {name: known[name] for name in self.names or (*PASSING, *MALFORMED)}

    @cached_property
    def _programs(self) -> list[tuple[str, str]]:
        from evalnoise.benchmarks.starter import load_starter

        return [(task.prompt, task.reference) for task in load_starter().tasks]

    def __call__(self, received: Received) -> Reply:
        key = body_hash(received.raw)
        number = self.ledger.counts.asked[key]
        self.ledger.add(what="asked", key=key, n=number)
        draw = random.Random(f"{self.seed} {key} {number}")
        dialect = dialect_of(received)
        if self._row[key] < _IN_A_ROW and draw.random() < self.share:
            name = draw.choice(sorted(self._faults))
            if name not in SLOW and name not in ODD:
                self._row[key] += 1
                self.ledger.add(what="fault", key=key, n=number, name=name)
                return self._faults[name](dialect)
            self.ledger.add(what="fault", key=key, n=number, name=name)
        else:
            name = ""
        self._row[key] = 0
        return self._answer(received, dialect, draw, key=key, number=number, odd=name)

    def _answer(self, received: Received, dialect: Dialect, draw: random.Random, *, key: str, number: int, odd: str) -> Reply:
        right = draw.random() < self.rate
        text = self._text(prompt_of(received), draw, right=right)
        usage = (len(received.raw) // 4, 20 + draw.randrange(200))
        answer_id = f"a-{key[:16]}-{number}"
        fields: dict[str, Any] = {"usage": usage, "answer_id": answer_id, "delay": self.latency + (0.3 if odd in SLOW else 0.0)}
        fields["headers"] = {"x-request-id": f"r-{key[:16]}-{number}", "x-ratelimit-remaining-requests": "9999"}
        if odd == "refusal":
            text, right, fields["finish"] = "I will not do that", False, "refusal"
        elif odd == "wrong served model":
            fields["model"] = "another-model"
        elif odd == "duplicate id":
            fields["answer_id"] = answer_id = "the-same"
        elif odd == "stored answer":
            fields["headers"]["x-cache"] = "HIT"
        cost = (usage[0] * self.prices[0] + usage[1] * self.prices[1]) / 1_000_000
        note = {"key": key, "n": number, "id": answer_id, "right": right, "input": usage[0], "output": usage[1], "cost": cost}
        make = dialect.stream if received.body.get("stream") else dialect.answer
        return make(text, note=note, **fields)

    def _text(self, prompt: str, draw: random.Random, *, right: bool) -> str:
        asked = SUM.search(prompt)
        if asked:
            return f"Let me see.\n\nAnswer: {int(asked[1]) + int(asked[2]) + (0 if right else 1 + draw.randrange(9))}"
        program = next((reference for text, reference in self._programs if text in prompt), None)
        if program is None:
            return "hello"
        return f"```python\n{program}\n```" if right else f"```python\n{program}\n```\n\n```python\n{_broken(program)}\n```"

    def sent(self, _received: Received, reply: Reply, whole: bool) -> None:
        """Called by the server when a reply is done with."""
        if reply.note:
            self.ledger.add(what="answer", whole=whole, **reply.note)


def _broken(program: str) -> str:
    """The same functions, each of which answers None."""
    return "\n\n".join(
        f"def {name}(*arguments, **keywords):\n    return None" for name in re.findall(r"^def (\w+)", program, re.MULTILINE)
    )


@dataclass
class Plain(Mix):
    """The same without faults."""

    share: float = 0.0


SCRIPTS: dict[str, type[Mix]] = {"mix": Mix, "plain": Plain}
