"""Takes the candidate out of a model's answer: the one rule set that every stack uses. docs/guide/benchmarks.md describes it.

A change that can give another candidate for some answer raises `schemas.versions.EXTRACTOR`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from evalnoise.programs import defines, parse_program
from schemas.records import Task, TaskKind

_THINK = re.compile(r"^[ \t]*<(?:think|thinking)>", re.IGNORECASE | re.MULTILINE)
_THINK_END = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_THINK_END_ALONE = re.compile(r"^[ \t]*</(?:think|thinking)>|</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_OPENING = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_PYTHON = frozenset({"", "py", "python", "python3"})
_ANSWER = re.compile(
    r"[ \t>#]*(?P<mark>\*{1,3}|_{1,3})?(?:final )?answer(?P<closed>\*{1,3}|_{1,3})?[ \t]*:[ \t]*(?P<rest>.*)", re.IGNORECASE
)
_MOST_STARS = 3
"""Bold and italic type at once."""
_BRACES = re.compile(r"\\boxed\s*\{|\\[{}]|[{}]")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[^`]*")
_LIST_INDENT = 3
"""CommonMark: a fence is indented by at most three spaces, measured from its container."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was taken out of an answer."""

    candidate: str | None
    """The program or answer, never an empty one; None where the text holds none. Kind ``output``: the text itself."""
    rule: str
    """The rule that chose it; for a fenced block with its index, as in ``fence-entry-point:0``."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A fenced block."""

    index: int
    language: str
    text: str


def extract(text: str, task: Task) -> Extraction:
    """The candidate in a model's answer to a task.

    For kind ``output`` the text verbatim. Otherwise the first that exists of: the unfenced text, if it is a program that defines
    the entry point; with the model's thinking taken away, the last Python block that defines it; the last one that seems to,
    but does not parse; the last Python block that parses; the unfenced text, if it is a program; the last block of any kind.
    For kind ``answer``, thinking taken away: the last line that begins with `Answer:`; the last box; the only, or the last, line.
    """
    if task.kind is TaskKind.OUTPUT:
        return Extraction(text, "verbatim")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if task.kind is TaskKind.ANSWER:
        return _answer(text)
    whole = _program(text)
    if whole and _defines(whole, task.entry_point):
        return Extraction(whole, "unfenced")
    answer = _without_thinking(text)
    if answer is None:
        return Extraction(None, "unclosed-think")
    if not answer.strip():
        return Extraction(None, "empty")
    blocks = list(_blocks(answer, _LIST_INDENT)) or list(_blocks(answer, len(answer)))
    return _choose(blocks, answer, task.entry_point)


def answer_beyond_thinking(text: str) -> str | None:
    """What of a text is answer, whatever it answers: the text without the model's thinking; None if the thinking does not end.

    A whole program is an answer, also one in which a line begins like thinking.
    """
    text = text.removeprefix("\ufeff")
    answer = _without_thinking(text)
    return text if answer is None and _program(text) else answer


def _answer(text: str) -> Extraction:
    answer = _without_thinking(text)
    if answer is None:
        return Extraction(None, "unclosed-think")
    lines = [line.strip() for line in answer.split("\n") if line.strip() and not _FENCE.fullmatch(line)]
    for place in reversed(range(len(lines))):
        match = _ANSWER.fullmatch(lines[place])
        # The answer stands behind the word, or on the line after it.
        found = match and _without_marks(_behind(match) or next(iter(lines[place + 1 :]), ""))
        if found:
            return Extraction(found, "answer-line")
    boxed = _last_boxed(answer)
    if boxed:
        return Extraction(boxed, "boxed")
    if not lines:
        return Extraction(None, "empty")
    return Extraction(lines[-1], "whole" if len(answer.strip().split("\n")) == 1 else "last-line")


def _behind(match: re.Match[str]) -> str:
    """What stands behind `Answer:`; without the mark that ends bold or italic type, if it began before the word."""
    rest, mark = match["rest"].strip(), match["mark"]
    if not mark or match["closed"]:
        return rest
    begins = len(rest) - len(rest.lstrip(mark[0]))
    body = rest.removesuffix(".")
    ends = len(body) - len(body.rstrip(mark[0]))
    # A mark before a space ends what is before it. Else what the answer's own marks leave over belongs to the word.
    if begins >= len(mark) and (not rest[begins:].strip() or rest[begins].isspace() or begins - ends >= len(mark)):
        return rest[len(mark) :].lstrip()
    if ends - begins >= len(mark):
        return f"{body[: -len(mark)].rstrip()}{rest[len(body) :]}"
    return rest


def _without_marks(answer: str) -> str:
    """An answer without the asterisks of bold or italic type around the whole of it, where they are a pair."""
    stars = len(answer) - len(answer.lstrip("*"))
    inside = answer[stars : len(answer) - stars]
    balanced = 0 < stars <= _MOST_STARS and answer.rstrip("*") == answer[:-stars] and "*" * stars not in inside
    return inside.strip() if balanced and inside.strip() else answer


def _last_boxed(text: str) -> str:
    r"""What the last `\boxed{…}` that is closed holds; empty where there is none."""
    found = ""
    opened: list[int | None] = []
    for match in _BRACES.finditer(text):
        if match[0].startswith("\\boxed"):
            opened.append(match.end())
        elif match[0] == "{":
            opened.append(None)
        elif match[0] == "}" and opened:
            start = opened.pop()
            if start is not None and text[start : match.start()].strip():
                found = " ".join(text[start : match.start()].split())
    return found


def _choose(blocks: list[_Block], answer: str, entry_point: str) -> Extraction:
    python = [block for block in reversed(blocks) if block.language in _PYTHON]
    programs = {block.index: _program(block.text) for block in python}
    for block in python:
        program = programs[block.index]
        if program and _defines(program, entry_point):
            return Extraction(program, f"fence-entry-point:{block.index}")
    head = re.compile(rf"^\s*(?:async\s+)?def\s+{re.escape(entry_point)}\b", re.MULTILINE)
    for block in python:
        # It must fail for its syntax error, not for a missing function in some other block.
        if programs[block.index] is None and head.search(block.text):
            return Extraction(block.text, f"fence-entry-point:{block.index}")
    for block in python:
        program = programs[block.index]
        if program:
            return Extraction(program, f"fence-last:{block.index}")
    whole = _program(answer)
    if whole and _states_something(whole):
        return Extraction(whole, "unfenced")
    for block in python or reversed(blocks):
        return Extraction(block.text, f"fence-last:{block.index}")
    return Extraction(None, "none")


def _without_thinking(text: str) -> str | None:
    """The text without the model's thinking; None if the thinking does not end.

    Thinking begins where a line begins with its tag: elsewhere the tag is quoted, in prose or in code.
    """
    kept = []
    position = 0
    while start := _THINK.search(text, position):
        end = _THINK_END.search(text, start.end())
        if end is None:
            return None
        kept.append(text[position : start.start()])
        position = end.end()
    answer = "".join([*kept, text[position:]])
    # Some chat templates put the opening tag into the prompt: all before an end without a beginning is thinking.
    ends = list(_THINK_END_ALONE.finditer(answer))
    return answer[ends[-1].end() :] if ends else answer


def _opening(line: str, indent: int) -> re.Match[str] | None:
    """The line as the beginning of a fenced block, or None."""
    match = _OPENING.fullmatch(line)
    if not match or len(match["indent"]) > indent:
        return None
    # CommonMark: a backtick in the info string means inline code.
    return None if match["fence"][0] == "`" and "`" in match["info"] else match


def _closes(line: str, fence: str, indent: int) -> bool:
    stripped = line.strip(" \t")
    return len(stripped) >= len(fence) and not stripped.strip(fence[0]) and len(line) - len(line.lstrip(" ")) <= indent


def _blocks(text: str, indent: int) -> Iterator[_Block]:
    """The fenced blocks that are not blank, indented by at most so much; one that is not closed reaches to the end."""
    opening: re.Match[str] | None = None
    lines: list[str] = []
    index = 0
    for line in [*text.removesuffix("\n").split("\n"), None]:
        if opening is None:
            opening = _opening(line, indent) if line is not None else None
            lines = []
        elif line is None or _closes(line, opening["fence"], indent):
            if "".join(lines).strip():
                yield _Block(index, _language(opening["info"]), "\n".join(lines) + "\n")
                index += 1
            opening = None
        else:
            # As much indentation as the opening fence has is not part of the content.
            spaces = min(len(opening["indent"]), len(line) - len(line.lstrip(" ")))
            lines.append(line[spaces:])


def _language(info: str) -> str:
    return info.split(maxsplit=1)[0].lower() if info.strip() else ""


def _program(text: str) -> str | None:
    """The text, or the text with its common indentation removed, if it is a Python program; None for a blank one."""
    if not text.strip():
        return None
    dedented = textwrap.dedent(text)
    for version in dict.fromkeys((text, dedented)):
        if _parse(version) is not None:
            return version
    return None


def _parse(text: str) -> ast.Module | None:
    try:
        return parse_program(text)
    except SyntaxError:
        return None


def _defines(program: str, name: str) -> bool:
    tree = _parse(program)
    return tree is not None and defines(tree, name)


def _states_something(program: str) -> bool:
    """Whether the program is more than expressions: an answer of one word is not a program."""
    tree = _parse(program)
    return tree is not None and not all(isinstance(node, ast.Expr) for node in tree.body)
