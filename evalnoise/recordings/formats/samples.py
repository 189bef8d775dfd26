"""EvalPlus samples: JSON Lines with `task_id` and `solution` or `completion`, or a folder with TASK/N.py."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evalnoise.benchmarks.base import decompress, json_lines, read_source
from evalnoise.providers.base import sendable
from evalnoise.recordings.formats.lines import Imported, Watch, bad, read_lines, text_field, text_response
from evalnoise.recordings.row import Recorded
from evalnoise.store.recordings import is_folder

_REMEDY: Final = "EvalPlus's samples have `task_id` and `solution`, or `completion`, on each line; or are a folder with TASK/N.py."
_DIGITS: Final = 9
_NEEDS_PROMPTS: Final = (
    "Give the benchmark's file with --prompts: a completion is only the rest of a program that the prompt begins."
)


def read_samples(paths: Sequence[Path], *, prompts: Mapping[str, str] | None = None) -> Imported:
    """The samples of files or folders; replicate n of a task is its n-th line, or its n-th file by number.

    Args:
        paths: Files or folders, read one after the other.
        prompts: By task, what a completion goes on from; None: not known.

    Raises:
        DataError: It names file and line.
    """
    rows: list[Recorded] = []
    places: dict[str, int] = {}
    counts: dict[str, int] = {}
    sources: list[dict[str, Any]] = []
    for path in paths:
        for task_id, text in _folder(path, sources) if is_folder(path) else _file(path, prompts, sources):
            position, replicate = places.setdefault(task_id, len(places)), counts.get(task_id, 0)
            counts[task_id] = replicate + 1
            rows.append(Recorded(task_id, replicate, 0, text_response(text), position=position))
    if not rows:
        bad(", ".join(map(str, paths)), "at least one sample", "none", _REMEDY)
    return Imported(rows, sources)


def read_prompts(path: Path) -> dict[str, str]:
    """The prompts of a HumanEval+ or MBPP+ file, plain or gzipped. Raises DataError."""
    remedy = "Name the official JSON Lines of the benchmark, which have `task_id` and `prompt` on each line."
    data, _ = read_source(path, remedy=remedy)
    found = {}
    for where, row in json_lines(decompress(data, path, remedy=remedy), path, remedy=remedy):
        task_id, prompt = row.get("task_id"), row.get("prompt")
        if not isinstance(task_id, str) or not isinstance(prompt, str):
            bad(where, "`task_id` and `prompt`, texts", repr((task_id, prompt))[:100], remedy)
        found[task_id] = prompt
    return found


def _file(path: Path, prompts: Mapping[str, str] | None, sources: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    watch = Watch(path)
    for line in read_lines(path, remedy=_REMEDY, watch=watch):
        task_id = text_field(line, "task_id", _REMEDY)
        if "solution" in line.value:
            yield task_id, text_field(line, "solution", _REMEDY)
            continue
        completion = text_field(line, "completion", _REMEDY)
        if prompts is None:
            bad(line.where, "`solution`, a whole program", "`completion` alone", _NEEDS_PROMPTS)
        if task_id not in prompts:
            bad(line.where, "a task of the file of --prompts", repr(task_id), _NEEDS_PROMPTS)
        yield task_id, prompts[task_id] + completion
    sources.append(watch.source())


def _folder(path: Path, sources: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """EvalPlus names the folder of a task by its id with the slash as an underscore, and reads it back the same way."""
    digest, size = hashlib.sha256(), 0
    for folder in sorted(entry for entry in path.iterdir() if entry.is_dir()):
        for number, file in sorted((_number(file), file) for file in folder.iterdir() if file.suffix == ".py"):
            try:
                data = file.read_bytes()
                text = data.decode("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                bad(str(file), "a program in UTF-8", str(error), _REMEDY)
            digest.update(f"{sendable(folder.name)}/{number} {hashlib.sha256(data).hexdigest()}\n".encode())
            size += len(data)
            yield folder.name.replace("_", "/"), text
    sources.append({"name": sendable(path.name), "sha256": digest.hexdigest(), "size": size})


def _number(file: Path) -> int:
    if not file.stem.isascii() or not file.stem.isdigit() or len(file.stem) > _DIGITS:
        bad(str(file), "a file named by its number, for instance 0.py", file.name, _REMEDY)
    return int(file.stem)
