"""Digests and text that must survive storage: canonical JSON, SHA-256 of text, lone surrogates."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import rfc8785

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")


def canonical_json(value: Any) -> bytes:
    """RFC 8785 canonical JSON in UTF-8. Raises ValueError for what JSON cannot carry (NaN, lone surrogates)."""
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise ValueError(str(error)) from None


def sha256_text(text: str) -> str:
    """SHA-256, in hex, of the text in UTF-8; lone surrogates pass as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def escape_surrogates(text: str) -> tuple[str, bool]:
    r"""Text that Parquet and DuckDB can hold, and whether it was changed.

    Unchanged unless it holds a lone surrogate; then each one becomes ``\udXXX`` and each backslash is doubled, so that
    `restore_surrogates` gives back the very text.
    """
    if not _SURROGATE.search(text):
        return text, False
    doubled = text.replace("\\", "\\\\")
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", doubled), True


def restore_surrogates(text: str, *, escaped: bool) -> str:
    """The text that `escape_surrogates` was given."""
    if not escaped:
        return text
    return _ESCAPED.sub(lambda m: "\\" if m.group(1) == "\\" else chr(int(m.group(1)[1:], 16)), text)
