"""Services that fail: when a shard is measured again, when it is sealed with holes, and when the run must stop."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.errors import ExecutorError, ProviderError, UnfinishedShardError
from schemas.records import Response, ResponseClass
from tasks.plan import Shard, judge_shards, measured_shards
from tasks.shares import Planned
from tasks.workshop import Workshop

_FEW_FAILURES = 2
_FAILING_SHARE = 0.1
"""More cells of a shard than these are never left unmeasured; the same share blocks a study's numbers."""

NOTHING_SEALED = (
    "Nothing of this shard is sealed and its answers are in the journal: mend the service (`evalnoise doctor`) and run the same "
    "command again."
)
"""What a user can do about a service that failed."""


def may_work_later(response: Response) -> bool:
    """Whether the call failed for a reason that can pass: the server was down or busy, not that it refuses this request."""
    return response.response_class is ResponseClass.INFRASTRUCTURE and not response.final


def count_earlier(shop: Workshop, shard: Shard) -> None:
    """Count the answers that earlier runs got for the shard's stack and condition. Raises ShareError, and StoreError."""
    study, n_tasks = shop.plan.study, shop.plan.protocol.n_tasks

    def planned() -> Planned:
        judging = shard.purpose == "judge"
        shards = judge_shards(study, n_tasks) if judging else measured_shards(study, n_tasks)
        repeats = study.judge.repeats if judging and study.judge else study.replicates
        names = tuple(one.name for one in shards if (one.stack, one.condition) == (shard.stack, shard.condition))
        return Planned(names, shop.usable_tasks(shard.stack) * repeats)

    shop.shares.begin(shop.study_store, shard.stack, shard.condition, planned)


@dataclass(frozen=True, slots=True)
class Failures:
    """How many cells or verdicts of a shard a service failed for."""

    down: int = 0
    """Calls that failed and may work later."""
    malformed: int = 0
    """Calls that got something, each time, that is no answer, and that would leave a hole."""
    verifier: int = 0
    """Candidates that the verifier could not run."""


def refuse_failures(shop: Workshop, shard: Shard, failures: Failures, *, cells: int, last_chance: bool) -> None:
    """Raise unless the shard may be sealed, for a sealed cell is not asked again by the same command.

    A call that may work later is never sealed as a failure: at the first try the shard comes again, at the second the run stops.
    Malformed answers, and candidates that the verifier could not run, are tried in both; then a few such cells may be sealed.

    Args:
        shop: The workshop, whose progress forgets the cells of a shard that comes again.
        shard: The shard.
        failures: What failed.
        cells: Cells or verdicts of the shard.
        last_chance: Whether this was the second try.
    """
    found = (
        (failures.down, 0, ProviderError, "the provider to work"),
        (failures.malformed, _few(cells), ProviderError, "the provider to send answers"),
        (failures.verifier, _few(cells), ExecutorError, "the verifier to work"),
    )
    for failed, allowed, error, expected in found:
        if failed > (allowed if last_chance else 0):
            if not last_chance:
                shop.progress.forget(shard.name, cells, failed)
            kind = error if last_chance else UnfinishedShardError
            raise kind(
                f"shard {shard.name}",
                expected=expected,
                found=f"{failed} of {cells} cells unmeasured because it did not",
                remedy=NOTHING_SEALED,
            )


def _few(cells: int) -> float:
    return max(_FEW_FAILURES, _FAILING_SHARE * cells)
