"""Reading a file of recorded generations: JSON Lines with `task_id`, `generations` and, if known, `passed`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from schemas.errors import DataError

PUBLIC_RECORDINGS: Final = "https://github.com/crux-eval/crux-eval.github.io"
"""Where recorded generations of many models for CRUXEval can be had."""


def where_to_get_recordings() -> str:
    """A sentence that says where public recordings can be had."""
    return f"Recorded generations for CRUXEval can be had from {PUBLIC_RECORDINGS}; set `path` to the file."


@dataclass(frozen=True, slots=True)
class Generations:
    """The checked contents of one file."""

    generations: dict[str, list[str]]
    """Recorded texts by task, in the file's order; of the wanted tasks only."""
    occurrences: int
    """Texts per task: the same for every task of the file."""
    sha256: str
    size: int


def read_generations(path: Path, *, wanted: Collection[str], sha256: str | None = None) -> Generations:
    """Read and check a file line by line. Raises DataError for a file that is missing, altered, torn or uneven."""
    digest, size = hashlib.sha256(), 0
    seen: dict[str, int] = {}
    kept: dict[str, list[str]] = {}
    occurrences = 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                digest.update(line)
                size += len(line)
                if not line.strip():
                    continue
                where = f"{path}, line {number}"
                task_id, texts = _parse(where, line)
                if task_id in seen:
                    _bad(where, "each task once", f"{task_id} again (first on line {seen[task_id]})")
                seen[task_id] = number
                occurrences = occurrences or len(texts)
                if len(texts) != occurrences:
                    _bad(where, f"{occurrences} generations, as for the tasks before", f"{len(texts)} for {task_id}")
                if task_id in wanted:
                    kept[task_id] = texts
    except OSError as error:
        raise DataError(
            str(path), expected="a readable file of recorded generations", found=error.strerror or str(error),
            remedy=where_to_get_recordings(),
        ) from None  # fmt: skip
    if not seen:
        _bad(str(path), "at least one task", "an empty file")
    if sha256 is not None and digest.hexdigest() != sha256.lower():
        _bad(str(path), f"SHA-256 {sha256.lower()}", digest.hexdigest())
    return Generations(kept, occurrences, digest.hexdigest(), size)


def _parse(where: str, line: bytes) -> tuple[str, list[str]]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError):
        torn = "" if line.endswith(b"\n") else ", cut off before its end"
        _bad(where, "one JSON object", f"text that is not JSON{torn}")
    if not isinstance(row, dict):
        _bad(where, "one JSON object", f"a {type(row).__name__}")
    task_id, texts, passed = row.get("task_id"), row.get("generations"), row.get("passed")
    if not isinstance(task_id, str):
        _bad(where, "`task_id`, a text", repr(task_id)[:80])
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        _bad(where, "`generations`, a list of one or more texts", repr(texts)[:80])
    if passed is not None and (not isinstance(passed, list) or len(passed) != len(texts)):
        _bad(where, f"`passed`, a list of {len(texts)}, or none", repr(passed)[:80])
    return task_id, texts


def _bad(where: str, expected: str, found: str) -> NoReturn:
    raise DataError(where, expected=expected, found=found, remedy=f"Fetch the file again, whole. {where_to_get_recordings()}")
