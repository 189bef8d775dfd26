"""Macros of the catalog: the SQL files under ``sql/macros``, with arguments and columns for the reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

_ORDER: Final = (
    "normal_quantile", "rerun_budget", "minimum_detectable_effect", "within_task_variance", "run_sd", "pass_at_k", "pass_hat_k",
    "noise_floor", "arm_tasks", "paired_noise", "variance_components",
)  # fmt: skip
"""Each may use the ones before it, and every view."""

_HEADER = re.compile(r"-- (?P<key>macro|returns|grain|columns of): (?P<value>.+)")
_ENTRY = re.compile(r"--   (?P<name>\w+): (?P<doc>.+)")
_SIGNATURE = re.compile(r"(?P<name>\w+)\((?P<arguments>[^()]*)\)")


@dataclass(frozen=True, slots=True)
class Macro:
    """One SQL file: a macro that gives a value, or one that gives a table."""

    name: str
    signature: str
    """Name and arguments, with the defaults of those that may be left out."""
    returns: str
    """Type of the value; empty for a table."""
    grain: str
    """What a row of the table is; empty for a value."""
    about: str
    arguments: tuple[tuple[str, str], ...]
    """Name and meaning of each argument, in order."""
    columns: tuple[tuple[str, str], ...]
    """Name and meaning of each column; empty for a value, and where `columns_of` names a view."""
    columns_of: str
    """The view whose columns the table has; empty where they are listed."""
    sql: str
    """The statement that makes it."""


@cache
def load_macros() -> tuple[Macro, ...]:
    """Every macro, in the order of making."""
    folder = resources.files("schemas") / "sql" / "macros"
    return tuple(parse_macro((folder / f"{name}.sql").read_text("utf-8")) for name in _ORDER)


def parse_macro(text: str) -> Macro:
    """A SQL file: comment lines that name the macro, what it gives and its arguments, then one statement. Raises ValueError."""
    lines = text.splitlines()
    body = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    facts: dict[str, str] = {}
    about: list[str] = []
    lists: dict[str, list[tuple[str, str]]] = {"arguments": [], "columns": []}
    current = ""
    for line in lines[:body]:
        if entry := _ENTRY.fullmatch(line):
            lists[current].append((entry["name"], entry["doc"]))
        elif header := _HEADER.fullmatch(line):
            facts[header["key"]] = header["value"]
        elif (heading := line.removeprefix("-- ").removesuffix(":")) in lists:
            current = heading
        else:
            about.append(line.removeprefix("-- "))
    macro = Macro(
        name=facts.get("macro", "").partition("(")[0],
        signature=facts.get("macro", ""),
        returns=facts.get("returns", ""),
        grain=facts.get("grain", ""),
        about=" ".join(about),
        arguments=tuple(lists["arguments"]),
        columns=tuple(lists["columns"]),
        columns_of=facts.get("columns of", ""),
        sql="\n".join(lines[body:]).strip(),
    )
    _check(macro, text)
    return macro


def _check(macro: Macro, text: str) -> None:
    signature = _SIGNATURE.fullmatch(macro.signature)
    named = re.findall(r"(\w+)(?: := [^,]+)?", signature["arguments"]) if signature else []
    table = bool(macro.columns or macro.columns_of)
    whole = bool(macro.returns) != bool(macro.grain) and bool(macro.grain) == table
    if not signature or named != [name for name, _ in macro.arguments] or not whole or not macro.sql:
        raise ValueError(
            f"a macro needs a signature, its arguments, either what it returns or grain and columns, and a statement: {text[:80]!r}"
        )


def macros_markdown() -> list[str]:
    """Lines of the reference: each macro with its arguments and columns."""
    parts: list[str] = []
    for macro in load_macros():
        gives = f"Gives one {macro.returns}." if macro.returns else f"Gives a table: one row per {macro.grain}."
        arguments = [f"| `{name}` | {doc} |" for name, doc in macro.arguments]
        parts += ["", f"## {macro.signature}", "", f"{gives} {macro.about}", "", "| argument | meaning |", "|---|---|", *arguments]
        if macro.columns_of:
            parts += ["", f"Columns: those of [{macro.columns_of}](#{macro.columns_of})."]
        elif macro.columns:
            columns = [f"| `{name}` | {doc} |" for name, doc in macro.columns]
            parts += ["", "| column | meaning |", "|---|---|", *columns]
    return parts
