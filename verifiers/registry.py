"""Finds checkers by the names under which they are registered: ours and those of other distributions."""

from __future__ import annotations

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from pydantic import ValidationError

from schemas.errors import StudyError
from schemas.records import TaskKind
from schemas.verifier import VerifierSpec
from verifiers.checkers import Checker

GROUP: Final = "evalnoise.checkers"
_OWN: Final = "evalnoise"
_AUTO: Final = {TaskKind.FUNCTION: "differential", TaskKind.OUTPUT: "expression", TaskKind.ANSWER: "exact"}


def registered() -> dict[str, EntryPoint]:
    """Checkers by name, ours before others of the same name."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (_distribution(point) != _OWN, point.value)):
        found.setdefault(point.name, point)
    return found


def checker_for(spec: VerifierSpec, kind: TaskKind) -> str:
    """The checker that the study names, or the one that `auto` means for this kind of task. Raises StudyError."""
    name = _AUTO[kind] if spec.checker == "auto" else spec.checker
    if kind in _load(name).kinds:
        return name
    fitting = ", ".join(other for other in registered() if kind in _load(other).kinds)
    raise StudyError(
        "stacks, verifier.checker",
        expected=f"a checker for tasks of kind {kind.value} ({fitting}, or auto)",
        found=name,
        remedy="Change the stack's checker, or the benchmark.",
    )


def make_checker(name: str, options: dict[str, Any]) -> Checker:
    """The checker of that name with these options. Raises StudyError."""
    made_from = _load(name)
    try:
        return made_from(made_from.Options.model_validate(options))  # type: ignore[call-arg]  # a protocol has no constructor
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, ("verifier.options", *first["loc"])))
        known = ", ".join(made_from.Options.model_fields) or "none"
        raise StudyError(
            f"stacks, {place}",
            expected=f"options of checker {name} ({known})",
            found=f"{first['msg'].lower()}: {first['input']!r}"[:200],
            remedy="docs/reference/checkers.md lists every option.",
        ) from None


def identity(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """What the protocol pins of a checker. Raises StudyError."""
    made_from = _load(name)
    point = registered()[name]
    make_checker(name, options)
    return {
        "name": name,
        "version": made_from.version,
        "options": made_from.Options.model_validate(options).model_dump(mode="json"),
        "distribution": "" if point.dist is None or _distribution(point) == _OWN else f"{point.dist.name} {point.dist.version}",
    }


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else ""


def _load(name: str) -> type[Checker]:
    points = registered()
    if name not in points:
        near = difflib.get_close_matches(name, points, n=1)
        raise StudyError(
            "stacks, verifier.checker",
            expected=f"a registered checker ({', '.join(points)}, or auto)",
            found=repr(name)[:100],
            remedy=f"Did you mean {near[0]}?" if near else f"Install the package that registers it under {GROUP}.",
        )
    try:
        loaded: type[Checker] = points[name].load()
    except Exception as error:  # noqa: BLE001 - another distribution's module may raise anything
        raise StudyError(
            "stacks, verifier.checker",
            expected=f"checker {name} to load from {points[name].value}",
            found=f"{type(error).__name__}: {error}"[:200],
            remedy="Mend or reinstall the package that registers it.",
        ) from None
    return loaded
