"""Append-only files of JSON lines that carry their own checksum: what the manifest and the journal are made of.

A line is a JSON object whose last key, ``sum``, holds the first 16 hex digits of the SHA-256 of the bytes before it. A line
without its newline is torn: its write never ended, so nothing was promised for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import StoreError

_MARK = b',"sum":"'
_DIGITS = 16
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Parsed:
    """The good lines of a file, and where they end."""

    records: list[dict[str, Any]]
    good_bytes: int
    """Length up to the end of the last good line; what follows is torn."""


def encode_line(record: Mapping[str, Any]) -> bytes:
    """One line with its checksum and newline. Raises ValueError for NaN and for values that JSON cannot carry.

    Lone surrogates pass (as three bytes each, which strict UTF-8 readers refuse), because a provider's text must come back exactly.
    """
    try:
        text = _ENCODER.encode(record)
    except TypeError as error:
        raise ValueError(str(error)) from None
    body = text.encode("utf-8", "surrogatepass")[:-1]
    if not record:
        raise ValueError("a line needs at least one key")
    return body + _MARK + _sum(body) + b'"}\n'


def parse_lines(path: Path, data: bytes, *, remedy: str, last_may_be_bad: bool, first_line: int = 1) -> Parsed:
    """Check and parse every line.

    Args:
        path: The file, for error messages.
        data: Its bytes, or their tail from the start of a line.
        remedy: What a user can do about a damaged line.
        last_may_be_bad: Whether a damaged last line counts as torn although it has its newline.
        first_line: Number of the first line of `data` in the file.

    Raises:
        StoreError: A line is damaged; it names the line.
    """
    records: list[dict[str, Any]] = []
    good = 0
    while (end := data.find(b"\n", good)) >= 0:
        record = _decode(data[good:end])
        if record is None:
            if last_may_be_bad and end + 1 == len(data):
                break
            where = f"{path}, line {first_line + len(records)}"
            raise StoreError(where, expected="a JSON object with a checksum that fits", found=_shown(data[good:end]), remedy=remedy)
        records.append(record)
        good = end + 1
    return Parsed(records, good)


def _decode(line: bytes) -> dict[str, Any] | None:
    body, mark, rest = line.rpartition(_MARK)
    if not mark or rest != _sum(body) + b'"}':
        return None
    try:
        record = json.loads((body + b"}").decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:_DIGITS].encode()


def _shown(line: bytes) -> str:
    cut = line[:60].decode("utf-8", "replace")
    return repr(cut) + (" …" if len(line) > 60 else "")
