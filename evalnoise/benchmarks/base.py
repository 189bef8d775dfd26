"""What every benchmark loader shares: reading data files with their digests, JSON Lines, field checks, the task digest."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalnoise.canonical import escape_surrogates
from schemas.errors import DataError
from schemas.records import Benchmark, SourceFile, Task

SHARED_VARIABLE = "EVALNOISE_SHARED"
"""The environment variable with which a study file may name a folder of public data; remedies mention it."""
INPUT_MAX_BYTES = 8 * 1024 * 1024
"""Limit of one encoded argument list. Inputs are trusted data, so it is far above the limit for what candidates return."""

Kinds = type | tuple[type, ...]
"""Types that a field may have."""


def data_path(text: str) -> Path:
    """The path that a study names, from the working directory, ``~`` expanded."""
    return Path(text).expanduser()


def read_source(path: Path, *, remedy: str, sha256: str | None = None) -> tuple[bytes, SourceFile]:
    """The file's bytes and its record, digest checked where one is given.

    Args:
        path: The file.
        remedy: What to do when the file is not there or is not the right one.
        sha256: Digest that the file must have; None: any.

    Raises:
        DataError: The file cannot be read, is empty, or has another digest.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}: {error.strerror}"
        raise DataError(str(path), expected="a readable data file", found=found, remedy=remedy) from None
    if not data:
        raise DataError(str(path), expected="a data file", found="an empty file", remedy=remedy)
    source = SourceFile(path=str(path), sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    if sha256 is not None and source.sha256 != sha256.lower():
        raise DataError(
            str(path),
            expected=f"SHA-256 {sha256.lower()}, as the study says",
            found=f"SHA-256 {source.sha256} ({source.size} bytes)",
            remedy=f"The file was altered or is another release: correct `benchmark.sha256` if you mean this file. {remedy}",
        )
    return data, source


def decompress(data: bytes, path: Path, *, remedy: str) -> bytes:
    """The bytes themselves, or what they hold if they are gzip. Raises DataError for a damaged or truncated gzip file."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(str(path), expected="a whole gzip file", found=f"a damaged one: {error}", remedy=remedy) from None


def json_lines(data: bytes, path: Path, *, remedy: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line's place (``file:line``) and object; blank lines are passed over, a final newline may be missing.

    Raises:
        DataError: A line is not UTF-8, not JSON (as a truncated one is) or not an object.
    """
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            where = f"{path}:{number}"
            yield where, _json_object(line, where, remedy)


def _json_object(line: bytes, where: str, remedy: str) -> dict[str, Any]:
    try:
        value = _parse(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        found = f"{len(line)} bytes that are not: {type(error).__name__}: {error}"
        raise DataError(where, expected="a whole line of JSON", found=found[:300], remedy=remedy) from None
    if not isinstance(value, dict):
        raise DataError(where, expected="a JSON object", found=f"a {type(value).__name__}", remedy=remedy)
    return value


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # An integer of more digits than int() takes from text; Decimal has no such limit and is exact.
        return json.loads(text, parse_int=lambda digits: int(Decimal(digits)))


def check_fields(
    row: Mapping[str, Any],
    where: str,
    *,
    required: Mapping[str, Kinds],
    optional: Mapping[str, Kinds] | None = None,
    remedy: str,
) -> None:
    """Refuse a row with missing, unknown or wrongly typed fields. Raises DataError that names the nearest valid field."""
    known = {**required, **(optional or {})}
    missing = [name for name in required if name not in row]
    if missing:
        found = "fields " + ", ".join(map(repr, row)) if row else "an empty object"
        raise DataError(where, expected="fields " + ", ".join(map(repr, required)), found=found, remedy=remedy)
    for name, value in row.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"field {near[0]!r}" if near else "only fields " + ", ".join(map(repr, known))
            raise DataError(where, expected=hint, found=f"unknown field {name!r}", remedy=remedy)
        kinds = known[name]
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        # A JSON true is an int to isinstance.
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            expected = " or ".join(kind.__name__ for kind in wanted)
            raise DataError(f"{where}, field {name!r}", expected=expected, found=type(value).__name__, remedy=remedy)


def benchmark(name: str, rows: Iterable[tuple[str, Task]], sources: Sequence[SourceFile], *, remedy: str) -> Benchmark:
    """The benchmark of the given tasks, each with its place in the data. Raises DataError for no tasks, or an id that cannot be."""
    places: dict[str, str] = {}
    tasks = []
    for where, task in rows:
        for field, text in (("id", task.id), ("cluster", task.cluster)):
            if escape_surrogates(text)[1]:
                expected, found = f"a {field} in Unicode, because rows bear it", f"a lone surrogate in {text!r}"[:200]
                raise DataError(where, expected=expected, found=found, remedy=remedy)
        if task.id in places:
            expected, found = "every task id once", f"{task.id!r} again, after {places[task.id]}"
            raise DataError(where, expected=expected, found=found, remedy=remedy)
        places[task.id] = where
        tasks.append(task)
    if not tasks:
        where = sources[0].path if sources else name
        raise DataError(where, expected="at least one task", found="none", remedy=remedy)
    return Benchmark(name=name, tasks=tuple(tasks), sources=tuple(sources), sha256=tasks_sha256(tasks))


def tasks_sha256(tasks: Iterable[Task]) -> str:
    """SHA-256, in hex, over every field of every task in order; independent of files and paths.

    One line of JSON in ASCII per task, keys sorted. Not RFC 8785, because a task's text may hold lone surrogates.
    """
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(json.dumps(asdict(task), sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n")
    return digest.hexdigest()
