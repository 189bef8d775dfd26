"""Values set on the command line: ``--set conditions.live.provider.temperature=0.3`` changes a study before it is validated."""

from __future__ import annotations

from typing import Any

from evalnoise.studyfile.errors import Path, Places, Problem, describe, nearest
from evalnoise.studyfile.nodes import parse_value

_HOW = "Write --set path=value, for instance --set replicates=3 or --set stacks.0.model=x."


def apply_override(data: object, text: str, places: Places) -> Problem | None:
    """Set one value in the data. Lists are entered by index or by the `name` of an item; missing mappings are made."""
    label = f"--set {text[:100]}"
    dotted, equals, value_text = text.partition("=")
    dotted = dotted.strip()
    if not equals or "" in dotted.split("."):
        return Problem(label, (), "path=value", f"{text[:60]!r}", _HOW)
    try:
        value = parse_value(value_text)
    except ValueError as error:
        found = f"{value_text[:60]!r} ({error})"
        return Problem(label, (), "a value in YAML", found, "Quote it for YAML as well as for the shell.")
    if not isinstance(data, dict):
        return None  # the file itself is no study, and that is said elsewhere
    return _set(data, dotted, value, label, places)


def _set(data: Any, rest: str, value: object, label: str, places: Places) -> Problem | None:
    """Walk down to the last part of the path and put the value there."""
    path: Path = ()
    while True:
        part, rest_after = _next_part(data, rest)
        if isinstance(data, list):
            index = _index(data, part)
            if index is None:
                expected = f"an index below {len(data)} or a name in the list"
                return Problem(label, path, expected, repr(part[:60]), _names(data, part))
            part_key: str | int = index
        elif isinstance(data, dict):
            part_key = part
        else:
            return Problem(label, path, "a mapping or a list, to go into", describe(data), "Shorten the path.")
        path = (*path, part_key)
        if not rest_after:
            data[part_key] = value
            places.replace(path, label)
            return None
        if isinstance(data, dict) and data.get(part) is None:
            data[part] = {}
            places.replace(path, label)
        data, rest = data[part_key], rest_after


def _next_part(data: object, rest: str) -> tuple[str, str]:
    """The next part of a dotted path, and what follows. In a list the longest name wins, because names may hold dots."""
    names = [str(item.get("name")) for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    for name in sorted(names, key=len, reverse=True):
        if rest == name or rest.startswith(f"{name}."):
            return name, rest[len(name) + 1 :]
    part, _, after = rest.partition(".")
    return part, after


def _index(items: list[Any], part: str) -> int | None:
    for index, item in enumerate(items):
        if isinstance(item, dict) and item.get("name") == part:
            return index
    if part.isascii() and part.isdigit() and len(part) < 9 and int(part) < len(items):
        return int(part)
    return None


def _names(items: list[Any], part: str) -> str:
    names = [str(item["name"]) for item in items if isinstance(item, dict) and "name" in item]
    near = nearest(part, names)
    if near:
        return f"Did you mean `{near}`?"
    return f"The names are: {', '.join(names)}." if names else "The list has no names."
