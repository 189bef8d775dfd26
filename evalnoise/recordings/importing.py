"""Imports other tools' files as recordings."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal

from evalnoise.recordings.formats.batches import read_anthropic_batch, read_openai_batch
from evalnoise.recordings.formats.generations import read_generations
from evalnoise.recordings.formats.lines import Imported
from evalnoise.recordings.formats.plain import read_plain
from evalnoise.recordings.formats.samples import read_prompts, read_samples
from evalnoise.recordings.row import numbered
from evalnoise.store.recordings import RecordingFolder
from schemas.errors import DataError
from schemas.recording import RecordingManifest


class Form(StrEnum):
    """Formats that can be imported."""

    EVALPLUS = "evalplus"
    """EvalPlus's samples."""
    CRUXEVAL = "cruxeval"
    """Generations as published for CRUXEval."""
    OPENAI_BATCH = "openai-batch"
    ANTHROPIC_BATCH = "anthropic-batch"
    JSONL = "jsonl"
    """Plain JSON Lines."""


def read_files(form: Form, paths: Sequence[Path], *, prompts: Path | None = None, allow_missing: bool = False) -> Imported:
    """The rows of some files.

    Args:
        form: Their format.
        paths: The files, and for EvalPlus folders.
        prompts: EvalPlus: the benchmark's file, whose prompts the completions go on from.
        allow_missing: Batches: whether ids without an answer are left out, instead of refused.

    Raises:
        DataError: A bad line, with file and number; or two rows of one asker.
    """
    if form is Form.EVALPLUS:
        found = read_samples(paths, prompts=None if prompts is None else read_prompts(prompts))
    elif form is Form.CRUXEVAL:
        found = _one_file(paths)
    elif form is Form.OPENAI_BATCH:
        found = read_openai_batch(paths, allow_missing=allow_missing)
    elif form is Form.ANTHROPIC_BATCH:
        found = read_anthropic_batch(paths, allow_missing=allow_missing)
    else:
        found = read_plain(paths)
    numbered(found.rows, source=", ".join(map(str, paths)))
    return found


def seal_imported(folder: RecordingFolder, form: Form, found: Imported, *, order: Literal["time", "unknown"]) -> RecordingManifest:
    """Seal imported rows. Raises StoreError if another recording is there."""
    source = {"kind": "import", "format": form.value, "files": found.sources, "missing": list(found.missing)}
    return folder.write(found.rows, source=source, order=order)


def _one_file(paths: Sequence[Path]) -> Imported:
    if len(paths) != 1:
        raise DataError(
            ", ".join(map(str, paths)),
            expected="one file, which holds all tasks",
            found=f"{len(paths)} files",
            remedy="Import each into a recording of its own.",
        )
    return read_generations(paths[0])
