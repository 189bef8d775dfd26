"""YAML with the line of every value: the core types of YAML 1.2, anchors, merge keys, and environment variables in text.

PyYAML reads the syntax; the values are made here, because its own constructor forgets lines, lets a repeated key win in
silence, turns ``2026-11-01`` into a date and ``no`` into false, and reads ``1e-3`` as text.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from typing import Any

import yaml

from evalnoise.studyfile.errors import Path, Places, Problem

MAX_NODES = 100_000
"""Values at most, after aliases are followed: a small file of nested aliases can stand for billions."""
_MAX_DEPTH = 60
_MAX_INTEGER = 2**53 - 1
_CORE = "tag:yaml.org,2002:"
_VARIABLE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_SECRET = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:$|_)", re.IGNORECASE)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

_FLOAT = r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"


class _Loader(yaml.SafeLoader):
    """PyYAML's composer with the implicit types of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own interface; filled below, then only read


for _tag, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
    ("merge", r"^<<$", ["<"]),
):  # fmt: skip
    _Loader.add_implicit_resolver(_CORE + _tag, re.compile(_pattern), _first)


def parse(text: str, places: Places) -> tuple[object, list[Problem]]:
    """The file's value, and its problems. A value with a problem of its own is None; `places` learns every line."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        return None, [_syntax_problem(error, places)]
    except yaml.reader.ReaderError as error:
        places.add((), text.count("\n", 0, error.position) + 1)
        return None, [places.problem((), "printable text", f"the character U+{_code(error):04X}", "Remove it.")]
    except RecursionError:
        return None, [places.problem((), "a study", "values that are nested too deeply", "Remove the nesting.")]
    if node is None:
        return None, [places.problem((), "a study", "an empty file", "`evalnoise init` writes one to begin with.")]
    places.add((), _line(node))
    maker = _Maker(places)
    return maker.value(node, ()), maker.problems


def parse_value(text: str) -> object:
    """The value of one ``--set``. Raises ValueError that says what is wrong with it."""
    places = Places("value")
    value, problems = parse(text, places) if text.strip() else (None, [])
    if problems:
        raise ValueError(f"expected {problems[0].expected}, found {problems[0].found}")
    return value


def _code(error: yaml.reader.ReaderError) -> int:
    # For text input the attribute is the code point, for bytes it is the byte; stubs say str.
    character: Any = error.character
    return character if isinstance(character, int) else ord(character)


def _syntax_problem(error: yaml.MarkedYAMLError, places: Places) -> Problem:
    mark = error.problem_mark or error.context_mark
    if mark:
        places.add((), mark.line + 1)
    said = " ".join(part for part in (error.context, error.problem) if part)
    return places.problem((), "valid YAML", f"a syntax error ({said})", "Check indentation, quotes and brackets near that line.")


class _Maker:
    """Makes plain values from nodes, and collects what is wrong on the way."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.problems: list[Problem] = []
        self._made = 0
        self._open: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> object:
        """The node's value; None, and a problem, where it has none."""
        self._made += 1
        if self._made > MAX_NODES:
            if self._made == MAX_NODES + 1:
                self._complain(path, f"at most {MAX_NODES} values", "more, after aliases are followed", "Use fewer aliases.")
            return None
        if id(node) in self._open or len(path) > _MAX_DEPTH:
            self._complain(path, "a value that ends", "an alias inside itself, or too deep a nesting", "Write the value out.")
            return None
        self._open.add(id(node))
        try:
            return self._made_of(node, path)
        finally:
            self._open.discard(id(node))

    def _made_of(self, node: yaml.Node, path: Path) -> object:
        tag = node.tag.removeprefix(_CORE)
        if isinstance(node, yaml.MappingNode) and tag == "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and tag == "seq":
            for index, item in enumerate(node.value):
                self.places.add((*path, index), _line(item))
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        make = self._scalars().get(tag) if isinstance(node, yaml.ScalarNode) else None
        if make is None:
            self._complain(path, "plain YAML", f"the tag {tag!r}", "Remove the tag.")
            return None
        try:
            return make(node.value, path)
        except (KeyError, ValueError):  # only an explicit tag can promise what the text is not
            self._complain(path, f"a value of type {tag}", repr(node.value[:60]), "Remove the tag.")
            return None

    def _scalars(self) -> dict[str, Callable[[str, Path], object]]:
        return {
            "null": lambda _text, _path: None,
            "bool": lambda text, _path: {"true": True, "false": False}[text.lower()],
            "int": self._integer,
            "float": self._float,
            "str": self._text,
            "merge": self._text,
        }

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        merged: dict[str, object] = {}
        own: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _CORE + "merge":
                merged |= self._merged(value_node, path)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._complain(path, "keys that are text", "a list or a mapping as a key", "Write a plain key.")
                continue
            key = str(key_node.value)  # as written: 1, 2026-11-01 and true are names here
            line = _line(key_node)
            self.places.add((*path, key), line)
            if key in lines:
                self._complain((*path, key), "the key once", f"it again (first on line {lines[key]})", "Remove one of the two.")
                continue
            lines[key] = line
            own[key] = self.value(value_node, (*path, key))
        for key, line in lines.items():
            self.places.add((*path, key), line)  # a merged mapping may have noted another
        return merged | own

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, object]:
        """The mapping, or the mappings, that a ``<<`` key brings in; earlier ones win."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        result: dict[str, object] = {}
        for source in sources:
            value = self.value(source, path)
            if isinstance(value, dict):
                result = value | result
            elif value is not None:
                self._complain(path, "a mapping after `<<`", "something else", "Name an anchor of a mapping.")
        return result

    def _integer(self, text: str, path: Path) -> int | None:
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        number = int(text, base) if len(text) < 100 else _MAX_INTEGER + 1
        if abs(number) > _MAX_INTEGER:
            self._complain(path, f"a number within {_MAX_INTEGER}, which JSON carries exactly", text[:60], "Use a smaller one.")
            return None
        return number

    def _float(self, text: str, path: Path) -> float | None:
        number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(number):
            self._complain(path, "a finite number", text[:60], "Write a finite number, or leave the key out.")
            return None
        return number

    def _text(self, text: str, path: Path) -> str | None:
        before = len(self.problems)
        text = _VARIABLE.sub(lambda match: self._variable(match, path), text)
        bad = _UNSTORABLE.search(text)
        if bad:
            self._complain(path, "text that can be stored", f"the character U+{ord(bad.group()):04X} in it", "Remove it.")
        return text if len(self.problems) == before else None

    def _variable(self, match: re.Match[str], path: Path) -> str:
        escaped, name, default = match.groups()
        if escaped:
            return str(escaped)
        if _SECRET.search(name):
            remedy = "A study is frozen into the store. Name the variable in `api_key_env` instead; its value is never kept."
            self._complain(path, "no secret in the study", f"the variable {name}", remedy)
            return ""
        value = os.environ.get(name)
        if value is None and default is None:
            self._complain(path, f"the environment variable {name}", "it is not set", f"Set it, or write ${{{name}:-default}}.")
            return ""
        if default is None:
            return str(value)
        return value or str(default)  # as in a shell, `:-` also stands in for a variable that is set but empty

    def _complain(self, path: Path, expected: str, found: str, remedy: str) -> None:
        self.problems.append(self.places.problem(path, expected, found, remedy))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
