"""Files of generations, as published for CRUXEval: JSON Lines with `task_id`, `generations` and, if known, `passed`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from evalnoise.recordings.formats.lines import read_lines, text_response
from evalnoise.recordings.row import Recorded
from schemas.errors import DataError

PUBLIC_RECORDINGS: Final = "https://github.com/crux-eval/crux-eval.github.io"
"""Where recorded generations of many models for CRUXEval can be had."""
_WHERE_TO_GET = f"Recorded generations for CRUXEval can be had from {PUBLIC_RECORDINGS}; set `path` to the file."


@dataclass(frozen=True, slots=True)
class Generations:
    """The checked contents of one file."""

    rows: list[Recorded]
    """In the file's order; of the wanted tasks only. The n-th text of a task is replicate n."""
    occurrences: int
    """Texts per task: the same for every task of the file."""
    sha256: str
    size: int


def read_generations(path: Path, *, wanted: Collection[str] | None = None) -> Generations:
    """Read and check a file line by line. Raises DataError for a file that is missing, torn or uneven.

    Args:
        path: The file.
        wanted: Tasks that are kept; None: all.
    """
    digest, size = hashlib.sha256(), 0
    seen: dict[str, int] = {}
    rows: list[Recorded] = []
    occurrences = 0
    for line in read_lines(path, remedy=_WHERE_TO_GET, watch=digest.update):
        where = f"{path}, line {line.number}"
        size = line.end
        if line.value is None:
            continue
        task_id, texts = _checked(where, line.value)
        if task_id in seen:
            _bad(where, "each task once", f"{task_id} again (first on line {seen[task_id]})")
        position = len(seen)
        seen[task_id] = line.number
        occurrences = occurrences or len(texts)
        if len(texts) != occurrences:
            _bad(where, f"{occurrences} generations, as for the tasks before", f"{len(texts)} for {task_id}")
        if wanted is None or task_id in wanted:
            rows += [Recorded(task_id, n, 0, text_response(text), position=position) for n, text in enumerate(texts)]
    if not seen:
        _bad(str(path), "at least one task", "an empty file")
    return Generations(rows, occurrences, digest.hexdigest(), size)


def _checked(where: str, row: dict[str, Any]) -> tuple[str, list[str]]:
    task_id, texts, passed = row.get("task_id"), row.get("generations"), row.get("passed")
    if not isinstance(task_id, str):
        _bad(where, "`task_id`, a text", repr(task_id)[:80])
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        _bad(where, "`generations`, a list of one or more texts", repr(texts)[:80])
    if passed is not None and (not isinstance(passed, list) or len(passed) != len(texts)):
        _bad(where, f"`passed`, a list of {len(texts)}, or none", repr(passed)[:80])
    return task_id, texts


def _bad(where: str, expected: str, found: str) -> NoReturn:
    raise DataError(where, expected=expected, found=found, remedy=f"Fetch the file again, whole. {_WHERE_TO_GET}")
