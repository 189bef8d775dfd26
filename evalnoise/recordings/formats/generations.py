"""Files of generations, as published for CRUXEval: JSON Lines with `task_id`, `generations` and, if known, `passed`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final, NoReturn

from evalnoise.recordings.formats.lines import Imported, Line, Watch, read_lines, text_response
from evalnoise.recordings.row import Recorded
from schemas.errors import DataError

PUBLIC_RECORDINGS: Final = "https://github.com/crux-eval/crux-eval.github.io"
"""Where recorded generations of many models for CRUXEval can be had."""
_WHERE_TO_GET = (
    "`path` names a recording's folder (`evalnoise recording list` shows them) or a file of generations; those of many models for "
    f"CRUXEval can be had from {PUBLIC_RECORDINGS}."
)


def read_generations(path: Path, *, wanted: Collection[str] | None = None) -> Imported:
    """Read and check a file line by line. Raises DataError for a file that is missing, torn or uneven.

    Args:
        path: The file.
        wanted: Tasks that are kept; None: all. The n-th text of a task is replicate n.
    """
    watch = Watch(path)
    seen: dict[str, int] = {}
    rows: list[Recorded] = []
    occurrences = 0
    for line in read_lines(path, remedy=_WHERE_TO_GET, watch=watch):
        task_id, texts = _checked(line)
        if task_id in seen:
            _bad(line.where, "each task once", f"{task_id} again (first on line {seen[task_id]})")
        position = len(seen)
        seen[task_id] = line.number
        occurrences = occurrences or len(texts)
        if len(texts) != occurrences:
            _bad(line.where, f"{occurrences} generations, as for the tasks before", f"{len(texts)} for {task_id}")
        if wanted is None or task_id in wanted:
            rows += [Recorded(task_id, n, 0, text_response(text), position=position) for n, text in enumerate(texts)]
    if not seen:
        _bad(str(path), "at least one task", "an empty file")
    return Imported(rows, [watch.source()])


def _checked(line: Line) -> tuple[str, list[str]]:
    where, row = line.where, line.value
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
