"""Finds checkers by the names under which they are registered: ours and those of other distributions."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Any, Final

import rfc8785
from pydantic import BaseModel, ValidationError

from schemas.errors import StudyError
from schemas.plugins import OWN, distribution, registered
from schemas.records import TaskKind
from schemas.verifier import VerifierSpec
from verifiers.checkers import Checker
from verifiers.foreign import guarded

GROUP: Final = "evalnoise.checkers"
_AUTO: Final = {TaskKind.FUNCTION: "differential", TaskKind.OUTPUT: "expression", TaskKind.ANSWER: "exact"}
_PARTS: Final = {"inputs": "inputs", "test": "test bodies"}
_FOUND = 200


def checker_for(spec: VerifierSpec, kind: TaskKind, place: str = "verifier", *, lacking: Collection[str] = ()) -> str:
    """The checker that the study names, or the one that `auto` means for these tasks. Raises StudyError.

    Args:
        spec: The stack's verifier.
        kind: What the benchmark's tasks ask for.
        place: Where the verifier stands in the study, for errors.
        lacking: What no task of the benchmark has, of `inputs` and `test`.
    """
    name = spec.checker
    if name == "auto":
        name = "asserts" if kind is TaskKind.FUNCTION and "inputs" in lacking and "test" not in lacking else _AUTO[kind]
    found, need = _load(name, place), _need(name, place)
    if kind in found.kinds and need not in lacking:
        return name
    fitting = ", ".join([*_fitting(kind, lacking, place), "or auto"])
    if kind not in found.kinds:
        raise StudyError(
            f"{place}.checker",
            expected=f"a checker for tasks of kind {kind.value} ({fitting})",
            found=name,
            remedy="Change the stack's checker, or the benchmark.",
        )
    raise StudyError(
        f"{place}.checker",
        expected=f"a checker for tasks without {_PARTS[need]} ({fitting})",
        found=f"{name}, which needs them",
        remedy=f"Change the stack's checker, or give the tasks {_PARTS[need]}.",
    )


def _need(name: str, place: str) -> str:
    """What a task must have for the checker; most of others' checkers do not say."""
    return getattr(_load(name, place), "needs", "")


def _fitting(kind: TaskKind, lacking: Collection[str], place: str) -> list[str]:
    """Names of the checkers for such tasks, without those that cannot be loaded."""
    found = []
    for name in registered(GROUP):
        try:
            if kind in _load(name, place).kinds and _need(name, place) not in lacking:
                found.append(name)
        except StudyError:
            continue
    return found


def make_checker(name: str, options: dict[str, Any], place: str = "verifier") -> Checker:
    """The checker of that name with these options. Raises StudyError."""
    made_from = _load(name, place)
    validated = _validated(name, made_from, options, place)
    try:
        made: Checker = made_from(validated)  # type: ignore[call-arg]  # a protocol has no constructor
    except Exception as error:  # noqa: BLE001 - another distribution's class may raise anything
        raise StudyError(
            f"{place}.options",
            expected=f"options of which checker {name} can be made",
            found=f"{type(error).__name__}: {error}"[:_FOUND],
            remedy=_documented(name),
        ) from None
    whence = _whence(name)
    return made if whence == OWN else guarded(made, name, whence)


def _validated(name: str, made_from: type[Checker], options: dict[str, Any], place: str) -> BaseModel:
    remedy = _documented(name)
    try:
        found = made_from.Options.model_validate(options)
        rfc8785.dumps(found.model_dump(mode="json"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        loc = ".".join(map(str, first["loc"]))
        known = [*made_from.Options.model_fields]
        expected, value = first["msg"].removeprefix("Input should be ").removeprefix("Value error, "), f"{first['input']!r}"
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(loc, known, n=1)
            expected = f"an option of checker {name} ({', '.join(known) or 'it has none'})"
            value = f"{loc}{f'; did you mean {near[0]}?' if near else ''}"
        where = f"{place}.options.{loc}".removesuffix(".")
        raise StudyError(where, expected=expected, found=value[:_FOUND], remedy=remedy) from None
    except (rfc8785.CanonicalizationError, ValueError) as error:
        expected = "options that JSON can carry: finite numbers, whole ones below 2**53"
        raise StudyError(f"{place}.options", expected=expected, found=str(error)[:_FOUND], remedy=remedy) from None
    return found


def _documented(name: str) -> str:
    """Where the options of a checker are told."""
    whence = distribution(registered(GROUP)[name])
    return "docs/reference/checkers.md lists every option." if whence == OWN else f"See the documentation of {whence or name}."


def runs_code(name: str, place: str = "verifier") -> bool:
    """Whether the checker needs a sandbox. Raises StudyError."""
    return _load(name, place).runs_code


def identity(name: str, options: dict[str, Any], place: str = "verifier") -> dict[str, Any]:
    """What the protocol pins of a checker. Raises StudyError."""
    made_from, whence = _load(name, place), _whence(name)
    make_checker(name, options, place)
    return {
        "name": name,
        "version": made_from.version,
        "options": _validated(name, made_from, options, place).model_dump(mode="json"),
        "distribution": "" if whence == OWN else whence,
    }


def _whence(name: str) -> str:
    """The distribution that registers a checker, with its version; `evalnoise` for ours."""
    point = registered(GROUP)[name]
    if point.dist is None or point.dist.name == OWN:
        return distribution(point)
    return f"{point.dist.name} {point.dist.version}"


def _load(name: str, place: str) -> type[Checker]:
    points = registered(GROUP)
    if name not in points:
        near = difflib.get_close_matches(name, [*points, "auto"], n=1)
        raise StudyError(
            f"{place}.checker",
            expected=f"a registered checker ({', '.join(points)}, or auto)",
            found=repr(name)[:100],
            remedy=f"Did you mean {near[0]}?" if near else f"Install the package that registers it under {GROUP}.",
        )
    point = points[name]
    whence = f"{point.value} of {distribution(point) or 'no distribution'}"
    remedy = "Mend or reinstall the package that registers it; docs/guide/checkers.md says what a checker has."
    try:
        loaded: type[Checker] = point.load()
    except Exception as error:  # noqa: BLE001 - another distribution's module may raise anything
        found = f"{type(error).__name__}: {error}"[:_FOUND]
        raise StudyError(f"{place}.checker", expected=f"checker {name} to load from {whence}", found=found, remedy=remedy) from None
    missing = _missing(loaded)
    if missing:
        raise StudyError(f"{place}.checker", expected=f"checker {name} from {whence} to be one", found=missing, remedy=remedy)
    return loaded


def _missing(loaded: Any) -> str:
    """What an object lacks to be a checker; empty where it lacks nothing."""
    options = getattr(loaded, "Options", None)
    kinds = getattr(loaded, "kinds", None)
    fits = {
        "a class": isinstance(loaded, type),
        "a pydantic model `Options`": isinstance(options, type) and issubclass(options, BaseModel),
        "a frozenset of TaskKind `kinds`": isinstance(kinds, frozenset) and all(isinstance(kind, TaskKind) for kind in kinds),
        "a whole number `version`": type(getattr(loaded, "version", None)) is int,
        "a truth value `runs_code`": isinstance(getattr(loaded, "runs_code", None), bool),
        "`needs` of 'inputs', 'test' or ''": getattr(loaded, "needs", "") in ("", *_PARTS),
        **{f"`{name}`": hasattr(loaded, name) for name in ("inputs_cap", "cpu_seconds")},
        **{f"a method `{name}`": callable(getattr(loaded, name, None)) for name in ("canonical", "known_bad", "learn", "check")},
    }
    return next((f"an object that lacks {what}" for what, there in fits.items() if not there), "")
