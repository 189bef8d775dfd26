"""The protocol: the frozen, digested plan of a study. Its bytes are canonical JSON (RFC 8785), its name is their SHA-256."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import rfc8785
from pydantic import BaseModel, ConfigDict, Field

from schemas.requests import keyed
from schemas.study import Study

UNDIGESTED_STUDY_FIELDS = {
    "study": ("prices",),
    "limits": ("concurrency", "requests_per_minute", "tokens_per_minute", "patience", "max_cost", "max_share"),
    "verifier": ("workers", "recycle"),
    "provider": (
        "timeout", "connect_timeout", "first_byte_timeout", "max_retries", "latency", "input_usd_per_million",
        "cached_input_usd_per_million", "cache_write_usd_per_million", "output_usd_per_million",
    ),
}  # fmt: skip
"""Fields, by the part of the study that holds them, that change how fast or how far a run goes or how its cost is counted, not
what it measures."""


class PinnedFile(BaseModel):
    """A data file by content: where it lies is not part of the protocol."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    size: int


class Lineage(BaseModel):
    """Where a successor comes from: a protocol that was planned with the predecessor's results at hand."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    predecessor: str = Field(pattern="[0-9a-f]{64}")
    """SHA-256 of the protocol whose sealed shards it inherits."""
    why: str = Field(min_length=1, max_length=500)
    """Why there is a successor, in words."""
    blind: Literal[False] = False
    """A successor is not blind: whoever asked for it could know what the predecessor had found."""


class Protocol(BaseModel):
    """Everything that a row's meaning depends on."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    format: Literal[1] = 1
    study: dict[str, Any]
    """The study as validated, defaults written out, without `UNDIGESTED_STUDY_FIELDS` and without paths."""
    replicates: int
    limit: int | None
    """The first so many tasks in the benchmark's order; None: all."""
    benchmark: str
    """Name of the benchmark as it appears in rows, for instance ``humaneval+``."""
    benchmark_sha256: str
    """Digest over the tasks as loaded."""
    benchmark_files: tuple[PinnedFile, ...]
    n_tasks: int
    recordings: dict[str, PinnedFile]
    """By ``stack/condition``: the file behind a recording provider."""
    prompts: dict[str, str]
    """SHA-256 of each prompt template: by stack, and by judge condition."""
    executors: dict[str, dict[str, str]]
    """By stack: kind, rootfs digest and Python version of what runs the candidates."""
    checkers: dict[str, dict[str, Any]]
    """By stack: name, version and options of the checker, and the distribution that it comes from if that is not evalnoise."""
    measurement: dict[str, int]
    """`schemas.versions.measurement_version`."""
    providers: dict[str, dict[str, Any]] = {}
    """By ``stack/condition`` and ``judge/condition``, of providers of other packages: name, version, options and the distribution
    that each comes from. Those of evalnoise itself are pinned by `study` and `measurement`."""
    lineage: Lineage | None = None
    """Of a successor, where it comes from; None: planned for itself, and blind."""

    def canonical(self) -> bytes:
        """Canonical JSON, in UTF-8."""
        body = self.model_dump(mode="json")
        # So that protocols that were frozen without these fields keep their digests.
        if not self.providers:
            del body["providers"]
        if self.lineage is None:
            del body["lineage"]
        return rfc8785.dumps(body)

    def digest(self) -> str:
        """SHA-256 of `canonical`, in hex: the protocol's name."""
        return hashlib.sha256(self.canonical()).hexdigest()


def digested_study(study: Study) -> dict[str, Any]:
    """The study's part of the protocol: defaults written out; operational fields and file paths removed."""
    body: dict[str, Any] = study.model_dump(mode="json")
    body["benchmark"].pop("path", None)
    _drop("study", body)
    _drop("limits", body["limits"])
    for stack in body["stacks"]:
        _drop("verifier", stack["verifier"])
    judges = body["judge"]["conditions"] if body["judge"] else ()
    if body["judge"] and body["judge"]["probes"] is None:
        # So that protocols that were frozen without this field keep their digests.
        del body["judge"]["probes"]
    for owner in (*body["stacks"], *body["conditions"], *judges):
        _digested_provider(owner["provider"])
    return body


def _digested_provider(fields: dict[str, Any]) -> None:
    _drop("provider", fields)
    # The recording's digest stands elsewhere in the protocol.
    fields.pop("path", None)
    if isinstance(fields.get("extra"), dict):
        fields["extra"] = keyed(fields["extra"])
    if isinstance(fields.get("of"), dict):
        _digested_provider(fields["of"])


def _drop(part: str, fields: dict[str, Any]) -> None:
    for name in UNDIGESTED_STUDY_FIELDS[part]:
        fields.pop(name, None)
