"""How candidates are checked: the verifier's part of a study."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from schemas.model import Model

RECYCLE_JOBS: Final = 1000
"""Candidates that a container serves, where the study does not say."""
REQUIREMENT = r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?==[A-Za-z0-9][A-Za-z0-9.!+_-]*$"
Requirement = Annotated[str, Field(pattern=REQUIREMENT)]
"""One Python package with its exact version, `name==version`."""

ProviderName = Annotated[str, Field(min_length=1, max_length=100)]
"""The registered name of a provider."""


class VerifierSpec(Model):
    """How candidates are checked."""

    checker: str = Field(default="auto", min_length=1, max_length=100)
    """The checker's registered name. `differential`: outputs against the canonical solution's. `evalplus`: EvalPlus's own rules.
    `asserts`: the task's own test body. `expression`: one literal expression against the expected output. `published`:
    CRUXEval's own rule, forgeable. `exact`: a text or number, normalised. `auto`: by the benchmark's kind of
    task, `differential`, `expression` or `exact`; and `asserts` where the tasks have test bodies and no inputs."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the checker; docs/reference/checkers.md lists them."""
    executor: Literal["auto", "docker", "process"] = "auto"
    """`auto`: Docker when an engine answers, else processes on this machine, which are no sandbox."""
    isolation: Literal["pool", "fresh"] = "pool"
    """`pool`: warm containers, each with a process per candidate. `fresh`: every candidate in a container of its own, which is many
    times slower."""
    unsandboxed_providers: tuple[ProviderName, ...] = Field(default=(), strict=False)
    """Providers whose code may run without a sandbox: `recording`, `openai`, `anthropic` or a plug-in's name. Name them only if you
    would run their code yourself."""
    packages: tuple[Requirement, ...] = Field(default=(), strict=False)
    """Python packages that candidates may import, each as `name==version`, and every package that these need; they become part of
    the image. Only wheels are installed."""
    inputs_cap: int | None = Field(default=None, ge=1)
    """Inputs per task at most; the benchmark's first ones are used. Absent: what the checker says (`differential` 120, `evalplus`
    all)."""
    cpu_seconds: float = Field(default=10.0, ge=0.1, le=600)
    """CPU limit at least; four times the canonical solution's CPU if that is more."""
    memory_mb: int = Field(default=512, ge=64)
    """Memory limit of a container."""
    workers: int = Field(default=0, ge=0, le=256)
    """Candidates verified at once; 0: one per processor. Not part of the protocol."""
    recycle: int = Field(default=RECYCLE_JOBS, ge=1, le=100_000)
    """Candidates after which a container is replaced by a new one. Not part of the protocol."""
