"""Checkers of other distributions: whatever one raises becomes an error that names it, the task and the line in its code."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from schemas.errors import EvalnoiseError, ExecutorError
from schemas.records import Reason, Reference, Task, TaskKind
from verifiers.checkers import Bench, Checker, Need
from verifiers.compare import cut
from verifiers.jobs import Job, Judgement, Lesson, Run
from verifiers.sandbox.pool import ClosedError, UnavailableError

T = TypeVar("T")
_SHOWN = 200


def guarded(checker: Checker, name: str, distribution: str) -> Checker:
    """The checker, as it says itself that it is, with its mistakes turned into ExecutorErrors."""
    facts = ("Options", "kinds", "version", "inputs_cap", "runs_code", "cpu_seconds")
    made_from: type[_Foreign] = type("Foreign", (_Foreign,), {fact: getattr(checker, fact) for fact in facts})
    return made_from(checker, f"checker {name} of {distribution or 'no distribution'}")


class _Foreign:
    """A checker that passes every call on."""

    Options: ClassVar[type[BaseModel]]
    kinds: ClassVar[frozenset[TaskKind]]
    version: ClassVar[int]
    inputs_cap: ClassVar[int | None]
    runs_code: ClassVar[bool]
    cpu_seconds: ClassVar[float | None]
    needs: ClassVar[Need] = ""

    def __init__(self, checker: Checker, name: str) -> None:
        self._checker = checker
        self._name = name

    def canonical(self, task: Task) -> str:
        """The candidate that must pass. Raises ExecutorError."""
        with self._named(task, "canonical"):
            return _of_type(self._checker.canonical(task), str)

    def known_bad(self, task: Task) -> Mapping[str, str]:
        """Candidates of which one must fail. Raises ExecutorError."""
        with self._named(task, "known_bad"):
            found = dict(self._checker.known_bad(task))
            for text in (*found, *found.values()):
                _of_type(text, str)
            return found

    def learn(self, bench: Bench, task: Task, inputs: tuple[int, ...], cpu_seconds: float) -> Lesson:
        """What the canonical solution gives. Raises ExecutorError, and what the bench raises."""
        with self._named(task, "learn"):
            return _of_type(self._checker.learn(_CarefulBench(bench), task, inputs, cpu_seconds), Lesson)

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """The verdict. Raises ExecutorError, and what the bench raises."""
        with self._named(task, "check"):
            return _of_type(self._checker.check(_CarefulBench(bench), task, reference, candidate, cpu_seconds), Judgement)

    @contextmanager
    def _named(self, task: Task, method: str) -> Iterator[None]:
        try:
            yield
        except (EvalnoiseError, UnavailableError, ClosedError):
            raise
        except Exception as error:  # another distribution's class may raise anything
            raise ExecutorError(
                f"{self._name}, task {task.id}",
                expected=f"`{method}` to return, whatever the candidate does",
                found=cut(f"{type(error).__name__}: {error}", _SHOWN) + self._line(error),
                remedy="Mend that checker, or name another one; what is sealed is kept.",
            ) from error

    def _line(self, error: Exception) -> str:
        """Where the checker's own package raised it, or called what did; empty where no line is its own."""
        package = type(self._checker).__module__.partition(".")[0]
        places = [
            f" ({frame.f_code.co_filename}:{line})"
            for frame, line in traceback.walk_tb(error.__traceback__)
            if str(frame.f_globals.get("__name__")).partition(".")[0] == package
        ]
        return next(reversed(places), "")


class _CarefulBench:
    """A bench for judges that may raise: that must not cut a run off in the middle, and unfinished output counts for nothing."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def run(self, job: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        """As `Bench.run`. Raises what the judge raised of the run that counts."""
        return _carefully(self._bench.run, job, judge)

    def run_tests(self, job: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        """As `Bench.run_tests`. Raises what the judge raised of the run that counts."""
        return _carefully(self._bench.run_tests, job, judge)

    def forget(self) -> None:
        """As `Bench.forget`."""
        self._bench.forget()


def _carefully(
    run_job: Callable[[Job, Callable[[Run], Judgement]], tuple[Judgement, Run]], job: Job, judge: Callable[[Run], Judgement]
) -> tuple[Judgement, Run]:
    raised: list[tuple[Run, Exception]] = []

    def judged(run: Run) -> Judgement:
        try:
            return _of_type(judge(run), Judgement)
        except Exception as error:  # noqa: BLE001 - another distribution's judge may raise anything
            raised.append((run, error))
            return Judgement(Reason.PROTOCOL_ERROR)

    judgement, counts = run_job(job, judged)
    for run, error in raised:
        if run is counts:
            raise error
    return judgement, counts


def _of_type(value: Any, wanted: type[T]) -> T:
    if not isinstance(value, wanted):
        raise TypeError(f"it returned {type(value).__name__}, not {wanted.__name__}")
    return value
