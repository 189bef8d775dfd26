"""Probes: candidates whose verdict is known beforehand, put to a judge before it judges anything."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, model_validator

from schemas.model import Model, Slug

EMPTY: Final = "empty"
REFUSAL: Final = "refusal"
KNOWN_GOOD: Final = "known-good"
BUILT_IN: Final = (EMPTY, REFUSAL, KNOWN_GOOD)
REFUSAL_TEXT: Final = "I cannot help with that request."
"""What a protocol with built-in probes has frozen: a changed text would ask something else under the same digest."""


class Probe(Model):
    """One candidate and the verdict that a sound judge gives."""

    name: Slug
    """The probe's name in the table `probes`; differs from `empty`, `refusal` and `known-good`."""
    candidate: str
    """The text that is judged."""
    expected: Literal["pass", "fail"]
    """`pass`: the verdict must be pass. `fail`: it must not be pass; one that cannot be read will do."""
    task: str | None = None
    """Id of the task that it answers; absent: the first one whose canonical solution passes preflight."""


class Probes(Model):
    """Probes of every judge condition, each asked once."""

    built_in: bool = True
    """Whether the empty candidate and a refusal are tried, which must not pass, and the canonical solution, which must."""
    own: tuple[Probe, ...] = Field(default=(), strict=False)
    """Further probes."""
    required: bool = True
    """Whether a judge that fails a probe blocks the study (exit code 9), as verdicts that cannot be read do. Else the finding stays
    an error in `checks`, and blocks nothing."""

    @model_validator(mode="after")
    def _names(self) -> Probes:
        taken = list(BUILT_IN)
        for probe in self.own:
            if probe.name in taken:
                raise ValueError(f"probe {probe.name!r}: expected a name of its own, other than {', '.join(taken)}")
            taken.append(probe.name)
        if not self.built_in and not self.own:
            raise ValueError("probes: expected probes of your own where built_in is false")
        return self
