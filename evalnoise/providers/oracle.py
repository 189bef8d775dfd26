"""The oracle: a simulated model, and a simulated judge, whose true noise is known in advance.

Every random number is a SHA-256 of the seed and of what it is for, so it is the same on every machine and in every order of
calls. A passing answer holds the canonical solution, a failing one a mutant that preflight showed to fail: all that comes after
the oracle is real.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from evalnoise.providers.base import CallContext, LiveProvider, Prompt, Request, RequestMaker, messages
from schemas.provider import OracleJudge, OracleProvider
from schemas.records import Outcome, Response, ResponseClass, TaskKind
from schemas.versions import ORACLE

_COOLING: Final = 4
"""At temperature 0 the share of unstable tasks is divided by this."""

_OPENINGS = ("Here is a solution.", "This should do it.", "The function below follows the task.")
_CLOSING = "It handles the cases that the task names."


def uniform(*parts: str | int) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    digest = hashlib.sha256(_frame(parts)).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def _frame(parts: Sequence[str | int]) -> bytes:
    # ASCII JSON keeps the parts apart and takes lone surrogates.
    return json.dumps(["evalnoise-oracle", ORACLE, *parts], ensure_ascii=True).encode("ascii")


def rate(spec: OracleProvider, task_id: str) -> float:
    """Probability that one attempt at the task passes."""
    unstable = 1 - spec.stable
    if spec.temperature == 0:
        unstable /= _COOLING
    # Rounded, so that the last bits of a library's beta quantile change nothing.
    drawn = round(float(betaincinv(spec.alpha, spec.beta, uniform(spec.seed, "rate", task_id))), 9)
    place = uniform(spec.seed, "unstable", task_id)
    if place < unstable:
        return drawn
    if place < 1 - spec.stable:
        return float(drawn >= 0.5)  # unstable when warm: cold, it does what it mostly did
    return float(uniform(spec.seed, "stable", task_id) < spec.alpha / (spec.alpha + spec.beta))


def true_rates(
    spec: OracleProvider, task_ids: Sequence[str], retry: str, *, without_mutant: Collection[str] = ()
) -> NDArray[np.float64]:
    """Probability that a cell of each task passes, after the retry rule, in the given order.

    Args:
        spec: The oracle, as the condition has it.
        task_ids: Tasks.
        retry: The stack's retry rule; any but ``none`` gives a failed cell a second, independent attempt: the oracle does not learn
            from feedback.
        without_mutant: Tasks that have no failing candidate and so pass always.
    """
    rates = np.array([1.0 if task_id in without_mutant else rate(spec, task_id) for task_id in task_ids], dtype=np.float64)
    return rates if retry == "none" else 1 - (1 - rates) ** 2


def true_w(rates: NDArray[np.float64]) -> float:
    """The mean within-task variance p(1 - p) that the rates imply."""
    if rates.size == 0:
        raise ValueError("w is not defined over no tasks")
    return float(np.mean(rates * (1 - rates)))


class OracleModel(LiveProvider):
    """Provider ``oracle``: passes each task with its known rate."""

    def __init__(self, spec: OracleProvider, make: RequestMaker) -> None:
        super().__init__(spec.name, make)
        self._spec = spec

    async def send(self, request: Request, context: CallContext) -> Response:
        """The canonical solution or the mutant, by the cell's own draw."""
        if context.reference is None:
            raise ValueError("the oracle answers from context.reference, which preflight makes")
        if self._spec.latency:
            await asyncio.sleep(self._spec.latency)
        task, seed = context.task, self._spec.seed
        mutant = context.reference.mutant
        passes = not mutant or uniform(seed, "pass", *_cell(context)) < rate(self._spec, task.id)
        answer = task.reference if passes else mutant
        if task.kind is TaskKind.FUNCTION:
            opening = _OPENINGS[int(uniform(seed, "opening", *_cell(context)) * len(_OPENINGS))]
            answer = f"{opening}\n\n{_fenced(answer)}\n\n{_CLOSING}\n"
        elif task.kind is TaskKind.ANSWER:
            answer = f"Answer: {answer}\n"
        return _response(request, answer, ("model", seed, *_cell(context)))


class OracleJudgeModel(LiveProvider):
    """Judge ``oracle``: says what execution said, but for a known share of flips and of answers without a verdict."""

    def __init__(self, spec: OracleJudge, make: RequestMaker) -> None:
        super().__init__(spec.name, make)
        self._spec = spec

    async def send(self, request: Request, context: CallContext) -> Response:
        """A verdict and a confidence; without an executed outcome there is nothing to know, so no verdict."""
        seed, cell = self._spec.seed, _cell(context)
        known = context.executed in (Outcome.PASS, Outcome.FAIL)
        if not known or uniform(seed, "unparsed", *cell) < self._spec.unparsed:
            answer = "I cannot decide whether this program is correct."
        else:
            flipped = uniform(seed, "flip", *cell) < self._spec.flip
            says_pass = (context.executed is Outcome.PASS) != flipped
            confidence = 50 + int(uniform(seed, "confidence", *cell) * 51)
            answer = f"VERDICT: {'PASS' if says_pass else 'FAIL'}\nCONFIDENCE: {confidence}\n"
        return _response(request, answer, ("judge", seed, *cell))


def request_maker(spec: OracleProvider | OracleJudge, *, model: str, max_tokens: int) -> RequestMaker:
    """How requests to this oracle are made: every option that can change an answer is in the body."""
    options = spec.model_dump(mode="json", exclude={"name", "latency"})

    def make(prompt: Prompt, _context: CallContext) -> Request:
        return Request("oracle", model, {"messages": messages(prompt), "max_tokens": max_tokens, **options})

    return make


class Oracle:
    """Both oracles, as one registered name."""

    request_maker = staticmethod(request_maker)

    @classmethod
    def provider(cls, options: OracleProvider | OracleJudge, make: RequestMaker, *, concurrency: int) -> LiveProvider:
        """The model, or the judge. It has no connections, so any number of calls may be in flight."""
        del concurrency
        return OracleJudgeModel(options, make) if isinstance(options, OracleJudge) else OracleModel(options, make)


def _cell(context: CallContext) -> tuple[str | int, ...]:
    return (context.stack, context.condition, context.task.id, context.replicate, context.attempt)


def _fenced(code: str) -> str:
    """The code in a fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code.rstrip(chr(10))}\n{fence}"


def _response(request: Request, text: str, parts: tuple[str | int, ...]) -> Response:
    response_id = f"oracle-{hashlib.sha256(_frame(parts)).hexdigest()[:24]}"
    asked = sum(len(message["content"]) for message in request.body["messages"])
    input_tokens, output_tokens = _tokens(asked), _tokens(len(text))
    usage = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    body = {"id": response_id, "model": request.model, "text": text, "usage": usage}
    return Response(
        text=text,
        response_class=ResponseClass.COMPLETE if text.strip() else ResponseClass.EMPTY,
        finish_reason="stop",
        response_id=response_id,
        served_model=request.model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_usd=0.0,
        raw=json.dumps(body, ensure_ascii=True),
    )


def _tokens(characters: int) -> int:
    return max(1, characters // 4)
