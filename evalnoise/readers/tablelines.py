"""A user's table file as lines, and what is wrong with it in our own words: DuckDB's advice is about DuckDB."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from schemas.errors import DataError

FORMATS: Final = ".csv, .tsv, .jsonl, .ndjson or .parquet (the first four also .gz)"
LONGEST_LINE: Final = 64_000_000
"""Bytes of a line: more of them would be held in memory, and a small .gz can hold any number of them."""
_SHOWN = 80
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_ADVICE: Final = re.compile(
    r"\s*(?:Possible (?:fix|solution)|Try setting|Did you mean|LINE \d+:|Candidate|Original Line:).*", re.IGNORECASE | re.DOTALL
)
_MEND_ROW: Final = "Mend the row; a field with a mark of separation or a line end in it stands in quotation marks."


def opened(path: Path, mode: str = "rt") -> Any:
    """The file, unpacked, for text or bytes."""
    text: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""} if "t" in mode else {}
    return (gzip.open if path.name.lower().endswith(".gz") else open)(path, mode, **text)


def lines(path: Path, file: Any) -> Iterator[Any]:
    """The lines of an open file, none of which is read beyond the limit. Raises DataError."""
    number = 1
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise _too_long(f"{path}, line {number}")
        yield line
        number += 1


def refuse_text(path: Path) -> None:
    """Raise DataError at the first line of a file that is too long or is not UTF-8."""
    try:
        with opened(path, "rb") as file:
            for number, line in enumerate(lines(path, file), 1):
                if number == 1 and line.startswith(_UTF_16):
                    raise _no_utf_8(str(path), "UTF-16")
                _decoded(f"{path}, line {number}", line)
    except (OSError, EOFError):
        return


def refuse_line(path: Path) -> None:
    """Raise DataError at the first line of JSON Lines that is no object; DuckDB counts its lines otherwise."""
    row = 0
    try:
        with opened(path, "rb") as file:
            for line in lines(path, file):
                if line.startswith(_UTF_16) and not row:
                    raise _no_utf_8(str(path), "UTF-16")
                row += bool(line.strip())
                text = _decoded(f"{path}, row {row}", line).removeprefix("\ufeff")
                if text.strip():
                    # Half of a surrogate pair is no text.
                    json.dumps(_object(text), ensure_ascii=False).encode()
    except RecursionError:
        raise _no_object(path, row, "brackets that are nested too deep") from None
    except ValueError as error:
        raise _no_object(path, row, str(error)[:300]) from None
    except (OSError, EOFError):
        return


def csv_fault(path: Path, mark: str, text: str) -> DataError | None:
    """The error for what DuckDB says of a CSV file, if it is about a row; row 1 is the one below the header."""
    line = re.search(r"CSV Error on Line: (\d+)", text)
    where = _record(path, mark, int(line[1])) if line else str(path)
    fields = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
    if fields:
        return DataError(where, expected=f"{fields[1]} fields, as in the header", found=fields[2], remedy=_MEND_ROW)
    if "unterminated quote" in text:
        remedy = "Mend the row; a quotation mark inside a field is written twice."
        return DataError(where, expected="a closing quotation mark for each opening one", found="none", remedy=remedy)
    if "Maximum line size" in text:
        return _too_long(where)
    return None


def _record(path: Path, mark: str, number: int) -> str:
    """The place of a record, the header's being 1; of several columns an empty line is no row, and DuckDB counts it."""
    try:
        with opened(path) as file:
            records = csv.reader(lines(path, file), delimiter=mark)
            several = len(next(records, ())) > 1
            row = sum(not several or bool(record) for record in islice(records, number - 1))
    except (csv.Error, UnicodeError, OSError, EOFError):
        return str(path)
    return f"{path}, row {row}" if row else str(path)


def said(error: Exception) -> str:
    """What a library says of a file, without what it advises its own users to do."""
    text = " ".join(str(error).split())
    if "state machine reached an invalid state" in text:
        return "lines that are no CSV: line ends of more than one kind (LF, CR LF, CR), or a quotation mark out of place"
    if "cannot encode str as UTF-8" in text or "surrogates not allowed" in text:
        return "a name of a file or column that is not UTF-8"
    return _ADVICE.sub("", text)[:300]


class _Pairs(list[Any]):
    """An object of JSON with all of its keys, also those that are there twice."""


def _object(text: str) -> _Pairs:
    value = json.loads(text, object_pairs_hook=_Pairs)
    if isinstance(value, _Pairs):
        twice = [name for name, count in Counter(name for name, _ in value).items() if count > 1]
        if not twice:
            return value
        raise ValueError(f"the key {twice[0][:_SHOWN]!r} twice")
    raise ValueError(text.strip()[:_SHOWN])


def _decoded(where: str, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise _no_utf_8(where, f"the byte 0x{line[error.start]:02x}, as in Latin-1 or Windows-1252") from None


def _no_utf_8(where: str, found: str) -> DataError:
    return DataError(where, expected="UTF-8", found=found, remedy="Write the file in UTF-8.")


def _too_long(where: str) -> DataError:
    expected = f"lines of at most {LONGEST_LINE // 1_000_000} MB"
    return DataError(where, expected=expected, found="a longer one", remedy="Check that it is the right file.")


def _no_object(path: Path, row: int, found: str) -> DataError:
    return DataError(f"{path}, row {row}", expected="a JSON object", found=found, remedy="Every line is one object.")
