"""The manifest of a recording: what stands beside its Parquet file and is sealed with it."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

RECORDING_FORMAT: Final = 2
"""Of the folder. Format 1 was written before the first release, held one replicate and left parts of the responses out."""


class SealedResponses(BaseModel):
    """The Parquet file as it lies there; other bytes may hold the same responses."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    sha256: str
    size: int = Field(ge=0)


class RecordingManifest(BaseModel):
    """What a recording is. Everything but `digest` and `file` goes into the digest."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    format: Literal[2] = RECORDING_FORMAT
    """Version of the folder's format."""
    digest: str = ""
    """SHA-256 over the canonical JSON of all other facts but `file`: the recording's identity, which a protocol pins."""
    contents: str
    """SHA-256 over the rows, one JSON array each, in the table's order: the same in whatever way Parquet stores them."""
    contents_size: int = Field(ge=0)
    """Bytes of those arrays."""
    keyed: bool
    """Whether it is known what was asked."""
    order: Literal["time", "unknown"]
    """Whether occurrences are in the order of time."""
    request_normaliser: int | None
    """Version of the rule that made the request keys; None without keys."""
    response_mapping: int
    """Version of the rule that made responses of bodies."""
    tasks: int = Field(ge=0)
    """Tasks that have a response."""
    replicates: int = Field(ge=0)
    """Replicates of which every task has a first attempt."""
    requests: int | None = Field(ge=0)
    """Different requests; None without keys."""
    occurrences: int = Field(ge=0)
    """Responses."""
    not_asked: tuple[str, ...] = Field(default=(), strict=False)
    """Tasks of the source that have no response, and are not expected to have one."""
    source: dict[str, Any]
    """Where it comes from: a condition's study, protocol, stack, condition and replicates; or an import's format and files."""
    file: SealedResponses
    """The Parquet file."""
