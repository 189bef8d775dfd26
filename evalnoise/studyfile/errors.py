"""Problems of a study file: where each one is, what would have been right, and one StudyError for all of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from schemas.errors import StudyError
from schemas.provider import PLUGIN_TAG, PluginProvider, ProviderSpec
from schemas.study import LocatedError
from schemas.verifier import REQUIREMENT

Path = tuple[str | int, ...]
"""Keys and list indices from the top of the study to a value."""

MAX_SHOWN = 10
_CUT = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a study."""

    place: str
    """``file:line``, or the ``--set`` that it came from."""
    path: Path
    """Where in the study it is; empty for the study as a whole."""
    expected: str
    found: str
    remedy: str
    line: int = 0
    """Line in the file, for sorting; 0 for a ``--set``."""

    @property
    def where(self) -> str:
        """Place and dotted path."""
        dotted = ".".join(map(str, self.path))
        return f"{self.place}: {dotted}" if dotted else self.place


class Places:
    """From paths in the study to lines in the file, or to the ``--set`` that put a value there."""

    def __init__(self, file: str) -> None:
        self.file = file
        """The file's name as the user wrote it."""
        self._known: dict[Path, int | str] = {(): 1}

    def add(self, path: Path, line: int) -> None:
        """Note that the value at the path stands on the line."""
        self._known[path] = line

    def replace(self, path: Path, label: str) -> None:
        """Note that the value at the path, and all below it, came from elsewhere."""
        self._known = {known: place for known, place in self._known.items() if known[: len(path)] != path}
        self._known[path] = label

    def problem(self, path: Path, expected: str, found: str, remedy: str) -> Problem:
        """A problem at the path; a path that is not in the file has the place of its nearest parent."""
        known = path
        while known not in self._known:
            known = known[:-1]
        place = self._known[known]
        if isinstance(place, str):
            return Problem(place, path, expected, found, remedy)
        return Problem(f"{self.file}:{place}", path, expected, found, remedy, place)

    def located(self, error: StudyError) -> StudyError:
        """The error with file and line, or the ``--set``, if it is about a path of this study; else the error as it is."""
        path: Path = ()
        for part in [] if ":" in error.where else error.where.split("."):
            index: Path = (int(part),) if part.isascii() and part.isdigit() else ()
            longer = next(((*path, key) for key in (part, *index) if (*path, key) in self._known), None)
            if longer is None:
                break
            path = longer
        if not path:
            return error
        place = self.problem(path, "", "", "").place
        return StudyError(f"{place}: {error.where}", expected=error.expected, found=error.found, remedy=error.remedy)


def study_error(file: str, problems: Iterable[Problem]) -> StudyError:
    """One error for all the problems, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: problem.line)
    if len(ordered) == 1:
        only = ordered[0]
        return StudyError(only.where, expected=only.expected, found=only.found, remedy=only.remedy)
    lines = [f"  {p.where}: expected {p.expected}, found {p.found}. {p.remedy}" for p in ordered[:MAX_SHOWN]]
    if len(ordered) > MAX_SHOWN:
        lines.append(f"  … and {len(ordered) - MAX_SHOWN} more")
    remedy = "\n".join(["Correct these:", *lines])
    return StudyError(file, expected="a valid study", found=f"{len(ordered)} problems", remedy=remedy)


def describe(value: object) -> str:
    """A value in a few words that are safe to print."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the text {value[:_CUT]!r}{'…' if len(value) > _CUT else ''}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, dict):
        keys = ", ".join(str(key)[:_CUT] for key in list(value)[:6])
        return f"a mapping with {keys or 'no keys'}{', …' if len(value) > 6 else ''}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"a {type(value).__name__}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the given one was most likely meant to be, if any is near."""
    matches = difflib.get_close_matches(word.lower(), sorted(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def validation_problems(error: ValidationError, data: object, places: Places, annotation: Any) -> list[Problem]:
    """The problems behind pydantic's error, in the study's own words."""
    found: list[Problem] = []
    for detail in error.errors(include_url=False):
        located = detail.get("ctx", {}).get("error")
        if isinstance(located, LocatedError):
            found.extend(_located_problems(located, data, places))
        elif not _is_echo(detail):
            path, owner = _walk(annotation, detail["loc"])
            found.append(_problem(detail, path, owner, places))
    return found


def _is_echo(detail: ErrorDetails) -> bool:
    """Whether pydantic says that a list is too short only because it dropped the items that are wrong."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _located_problems(error: LocatedError, data: object, places: Places) -> list[Problem]:
    """A rule over several fields was broken; where options of a provider were wrong, each of them is a problem."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        value = _value_at(data, error.loc)
        near = nearest(value, error.known) if isinstance(value, str) else None
        remedy = f"Did you mean `{near}`?" if near else "Correct the value, or the one that it must agree with."
        return [places.problem(error.loc, error.expected, describe(value), remedy)]
    found = []
    for detail in cause.errors(include_url=False):
        path, owner = _walk(ProviderSpec, detail["loc"])
        problem = _problem(detail, (*error.loc, *path), owner, places)
        found.append(replace(problem, expected=f"{problem.expected} ({error.expected})"))
    return found


def _value_at(data: object, path: Path) -> object:
    for part in path:
        try:
            data = data[part]  # type: ignore[index]  # any shape of data may be below; what cannot be indexed has no such part
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _walk(annotation: Any, loc: Sequence[str | int]) -> tuple[Path, type[BaseModel] | None]:
    """The path without pydantic's own parts (tags of unions, ``[key]``), and the model that holds the last part."""
    path: list[str | int] = []
    owner: type[BaseModel] | None = None
    parts = list(loc)
    while parts:
        annotation = _plain(annotation)
        members = _members(annotation)
        if len(members) > 1:
            tag = parts.pop(0)
            plugin = PluginProvider if tag == PLUGIN_TAG else None
            annotation = next((m for m in members if tag in get_args(m.model_fields["name"].annotation)), plugin)
            continue
        part = parts.pop(0)
        if part == "[key]":
            continue
        path.append(part)
        owner, annotation = _step(annotation, part)
    return tuple(path), owner


def _members(annotation: Any) -> list[type[BaseModel]]:
    """The models of a union."""
    plain = [_plain(member) for member in get_args(annotation)]
    return [member for member in plain if isinstance(member, type) and issubclass(member, BaseModel)]


def _step(annotation: Any, part: str | int) -> tuple[type[BaseModel] | None, Any]:
    """One key or index further: the model that the key belongs to, and the annotation of its value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        field = annotation.model_fields.get(str(part))
        return annotation, field.annotation if field else None
    if get_origin(annotation) in {tuple, dict}:
        arguments = get_args(annotation)
        return None, arguments[0] if get_origin(annotation) is tuple else arguments[1]
    return None, None


def _plain(annotation: Any) -> Any:
    """The annotation without `Annotated` and `None`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    members = [a for a in get_args(annotation) if a is not type(None)]
    if len(members) == 1 and type(None) in get_args(annotation):
        return _plain(members[0])
    return annotation


_WANTED = {
    "missing": "a value, because it has no default",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_pattern_mismatch": "a name of at most 64 lower-case letters, digits, dots, dashes and underscores",
    "string_too_short": "text that is not empty",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} item",
    "literal_error": "{expected}",
    "union_tag_invalid": "one of {expected_tags}",
    "union_tag_not_found": "`name`, which says the kind",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
}


def _problem(detail: ErrorDetails, path: Path, owner: type[BaseModel] | None, places: Places) -> Problem:
    kind, value, facts = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(path, owner, places)
    wanted = _WANTED.get(kind)
    expected = wanted.format_map(facts) if wanted else detail["msg"].removeprefix("Input should be ")
    found, remedy = describe(value), "Correct the value."
    if kind == "missing":
        found, remedy = "nothing", f"Add `{path[-1]}:`."
    elif kind == "union_tag_not_found":
        remedy = "Add `name:`."
    elif kind == "union_tag_invalid":
        path, found, remedy = (*path, "name"), describe(facts["tag"]), _meant(str(facts["tag"]), _quoted(facts["expected_tags"]))
    elif kind == "literal_error" and isinstance(value, str):
        remedy = _meant(value, _quoted(facts["expected"]))
    elif kind == "string_type" and isinstance(value, bool | int | float):
        remedy = "Put it in quotes."
    elif kind == "string_pattern_mismatch" and facts["pattern"] == REQUIREMENT:
        expected, remedy = "a package with its exact version, `name==version`", "For instance `numpy==2.2.6`."
    elif kind == "string_pattern_mismatch":
        remedy = f"For instance `{slug(value)}`."
    elif kind in {"int_type", "float_type"} and isinstance(value, str):
        remedy = "Write it as a plain number, without quotes."
    return places.problem(path, expected, found, remedy)


def slug(text: str) -> str:
    """The nearest name that is allowed for studies, stacks and conditions."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64].rstrip("-._") or "a-name"


def _quoted(words: str) -> list[str]:
    return re.findall(r"'([^']*)'", words)


def _meant(word: str, options: Sequence[str]) -> str:
    near = nearest(word, options)
    return f"Did you mean `{near}`?" if near else "Choose one of these."


def _unknown_key(path: Path, owner: type[BaseModel] | None, places: Places) -> Problem:
    key = str(path[-1])
    fields = owner.model_fields if owner else {}
    near = nearest(key, fields)
    below = next((name for name, field in fields.items() if key in _keys_below(field)), None)
    if below:
        remedy = f"Did you mean `{below}.{key}`?"
    elif near:
        remedy = f"Did you mean `{near}`?"
    else:
        remedy = "Remove it, or use one of the keys."
    return places.problem(path, f"one of the keys {', '.join(fields)}", f"the unknown key {key[:_CUT]!r}", remedy)


def _keys_below(field: FieldInfo) -> set[str]:
    """Keys of the models that a field can hold."""
    plain = _plain(field.annotation)
    models = [*_members(plain), *([plain] if isinstance(plain, type) and issubclass(plain, BaseModel) else [])]
    return {key for model in models for key in model.model_fields}
