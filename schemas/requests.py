"""Which fields of a request's body do not count: they are sent, and an answer cannot depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

UNKEYED: Final = (
    "metadata.trace_id",
    "metadata.span_id",
    "metadata.parent_span_id",
    "metadata.request_id",
    "metadata.timestamp",
    "metadata.sent_at",
)
"""Paths in the body of fields that only name or date the sending. Every other field counts, also one that nobody has heard of.
A change of this list raises `schemas.versions.REQUEST_NORMALISER`."""


def keyed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body without the fields that do not count, and without a mapping that is empty because of that."""
    kept = dict(body)
    for path in UNKEYED:
        outer, inner = path.split(".")
        part = kept.get(outer)
        if not isinstance(part, Mapping) or inner not in part:
            continue
        rest = {name: value for name, value in part.items() if name != inner}
        if rest:
            kept[outer] = rest
        else:
            del kept[outer]
    return kept
