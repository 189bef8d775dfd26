"""Compares recorded cells: what differs between two recordings, and whether two configurations may share one replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalnoise.recordings.nearest import Nearest, nearest
from evalnoise.recordings.row import Recorded
from schemas.errors import DataError

Question = tuple[str, str]
"""Task and request key; the key is empty where nobody knows what was asked."""


@dataclass(frozen=True, slots=True)
class OneSided:
    """A request that one side asked more often than the other."""

    task_id: str
    key: str
    count_a: int
    count_b: int
    nearest: Nearest | None
    """The least different request of the same task on the other side that this side lacks; None: there is none, or nobody knows
    what was asked."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The n-th answer to one request, which the two sides have with another text or of another class."""

    task_id: str
    key: str
    number: int
    """Which answer to this request of this task, from 0."""
    a: Recorded
    b: Recorded


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two recordings."""

    requests: tuple[OneSided, ...]
    texts: tuple[Changed, ...]
    same: int
    """Answers that both sides have with the same text and of the same class."""

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.requests or self.texts)


@dataclass(frozen=True, slots=True)
class Coupling:
    """Whether two configurations may share a replay."""

    broken: tuple[OneSided, ...]
    """Requests that one of them makes more often; empty: the condition holds."""
    requests: int
    """Requests that both make, repeats counted."""
    tasks: int
    """Tasks of either."""
    replicates: tuple[int, int]
    """Replicates of each side."""

    @property
    def valid(self) -> bool:
        """Whether every task has the same multiset of requests on both sides."""
        return not self.broken


def difference(a: Sequence[Recorded], b: Sequence[Recorded]) -> Difference:
    """What differs: requests that one side has more often, and answers of another text or class.

    The class counts, because a refusal, nothing at all and a request that was not taken have one text and other outcomes.

    The n-th answer to a request of a task is compared with the n-th of the other side.
    """
    answers_a, answers_b = _answers(a), _answers(b)
    changed, same = [], 0
    for (task_id, key), ours in answers_a.items():
        for number, (one, other) in enumerate(zip(ours, answers_b.get((task_id, key), []), strict=False)):
            if (one.response.text, one.response.response_class) == (other.response.text, other.response.response_class):
                same += 1
            else:
                changed.append(Changed(task_id, key, number, one, other))
    return Difference(_one_sided(a, b), tuple(changed), same)


def coupling(
    a: Sequence[Recorded], b: Sequence[Recorded], *, labels: tuple[str, str] = ("the first side", "the second side")
) -> Coupling:
    """Check the condition under which two configurations may be compared over one recording.

    Proposition 1 (Replay Coupling, Sufficient Condition) of "The Noise Floor of Agent Evaluation: Live
    Generation, Replay, and Rerun Budgets": if a recording gives each
    normalised request a fixed response, and two configurations make the same multiset of normalised requests for every task, then,
    given that recording, their paired contrast is unbiased for the comparison under that fixed map. The proposition does not speak
    of fresh responses; and where a request occurs more than once, the pairing of its occurrences has to be stated as well.

    Raises:
        DataError: A side does not know what it asked.
    """
    for rows, side in zip((a, b), labels, strict=True):
        if any(not row.request_key for row in rows):
            raise DataError(
                side,
                expected="recorded requests, because the condition is about them",
                found="answers of which nobody knows what was asked",
                remedy="Name a recording with requests, or a condition that made them.",
            )
    both = Counter(map(_question, a)) & Counter(map(_question, b))
    counts = len({row.replicate for row in a}), len({row.replicate for row in b})
    return Coupling(_one_sided(a, b), both.total(), len({row.task_id for row in (*a, *b)}), counts)


def _one_sided(a: Sequence[Recorded], b: Sequence[Recorded]) -> tuple[OneSided, ...]:
    counts_a, counts_b = Counter(map(_question, a)), Counter(map(_question, b))
    order = {row.task_id: row.position for row in (*b, *a)}
    texts = {row.request_key: row.request for row in (*a, *b) if row.request}
    odd = [question for question in {**counts_a, **counts_b} if counts_a[question] != counts_b[question]]
    lacking = _by_task(question for question in odd if counts_a[question] < counts_b[question])
    spare = _by_task(question for question in odd if counts_a[question] > counts_b[question])
    found = []
    for task_id, key in sorted(odd, key=lambda question: (order[question[0]], *question)):
        others = lacking if counts_a[task_id, key] > counts_b[task_id, key] else spare
        near = nearest(texts[key], [(k, texts.get(k, "")) for k in others.get(task_id, ())]) if key in texts else None
        found.append(OneSided(task_id, key, counts_a[task_id, key], counts_b[task_id, key], near))
    return tuple(found)


def _question(row: Recorded) -> Question:
    return row.task_id, row.request_key


def _by_task(questions: Iterable[Question]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for task_id, key in questions:
        found.setdefault(task_id, []).append(key)
    return found


def _answers(rows: Iterable[Recorded]) -> dict[Question, list[Recorded]]:
    found: dict[Question, list[Recorded]] = {}
    for row in sorted(rows, key=lambda row: (row.position, row.task_id, row.replicate, row.attempt)):
        found.setdefault(_question(row), []).append(row)
    return found
