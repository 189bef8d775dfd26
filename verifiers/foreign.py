"""Checkers of other distributions: whatever one raises becomes an error that names it, the task and the line in its code."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from schemas.errors import EvalnoiseError, ExecutorError
from schemas.records import Reference, Task, TaskKind
from verifiers.checkers import Bench, Checker, Need
from verifiers.compare import cut
from verifiers.jobs import Judgement, Lesson
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
            return _of_type(self._checker.learn(bench, task, inputs, cpu_seconds), Lesson)

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """The verdict. Raises ExecutorError, and what the bench raises."""
        with self._named(task, "check"):
            return _of_type(self._checker.check(bench, task, reference, candidate, cpu_seconds), Judgement)

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


def _of_type(value: Any, wanted: type[T]) -> T:
    if not isinstance(value, wanted):
        raise TypeError(f"it returned {type(value).__name__}, not {wanted.__name__}")
    return value
