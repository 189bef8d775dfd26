"""What answers that are not complete come to: the policy of a stack, and the shares of them that end a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.model import Model

Taken = Literal["verify", "fail", "unmeasured"]
Settled = Literal["fail", "unmeasured"]


class Responses(Model):
    """What a cell becomes whose answer is not complete.

    `verify`: the text is taken as it is, extracted and verified, as that of a complete answer always is. docs/design/responses.md
    argues for the defaults.
    """

    truncated: Taken = "verify"
    """The answer ended at the token limit, or is thinking that does not end."""
    refusal: Taken = "fail"
    """The model declined."""
    filtered: Taken = "fail"
    """A filter of the provider took the answer away, or its end."""
    empty: Taken = "fail"
    """Nothing, or white space."""
    malformed: Settled = "unmeasured"
    """Something came back, however often it was asked for, that is no answer."""
    infrastructure: Settled = "unmeasured"
    """The server would not take the request. A server that is down or busy stops the run instead, whatever stands here."""


class MaxShare(Model):
    """The largest share of each class among the answers of one stack under one condition, or judge condition.

    More of them stop the run, once 50 answers are in, or all that there can be. With a larger limit the same run goes on.
    """

    truncated: float = Field(default=0.2, ge=0, le=1)
    """The answer ended at the token limit."""
    refusal: float = Field(default=0.5, ge=0, le=1)
    """The model declined."""
    filtered: float = Field(default=0.5, ge=0, le=1)
    """A filter of the provider took the answer away."""
    empty: float = Field(default=0.5, ge=0, le=1)
    """Nothing, or white space."""
    malformed: float = Field(default=0.2, ge=0, le=1)
    """No answer, but something else."""
