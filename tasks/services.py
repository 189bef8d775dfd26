"""Services that fail: when a shard is measured again, when it is sealed with holes, and when the run must stop."""

from __future__ import annotations

from collections.abc import Collection

from schemas.errors import ExecutorError, ProviderError, UnfinishedShardError
from schemas.records import Reason
from tasks.plan import Shard
from tasks.workshop import Workshop

_FEW_FAILURES = 2
_FAILING_SHARE = 0.1
"""More cells of a shard than this are never left unmeasured by a service that fails; the same share blocks a study's numbers."""

_SERVICES = ((Reason.INFRASTRUCTURE, ExecutorError, "the verifier"), (Reason.PROVIDER, ProviderError, "the provider"))
_REMEDY = (
    "Nothing of this shard is sealed and its answers are in the journal: mend the service (`evalnoise doctor`) and run the same "
    "command again."
)


def refuse_failures(shop: Workshop, shard: Shard, reasons: Collection[str], *, last_chance: bool) -> None:
    """Raise unless the shard may be sealed.

    At the first try no failure of a service is sealed: a call that failed now may well work in a quarter of an hour, and a sealed
    cell is never asked again. At the last one a few may be: they have failed twice, retries not counted.

    Args:
        shop: The workshop, whose progress forgets the cells of a shard that comes again.
        shard: The shard.
        reasons: The reason of every cell of the shard.
        last_chance: Whether this was the second try.
    """
    for reason, error, service in _SERVICES:
        failed = sum(one == reason.value for one in reasons)
        if not failed:
            continue
        found = f"{failed} of {len(reasons)} cells unmeasured because it did not"
        if failed > max(_FEW_FAILURES, _FAILING_SHARE * len(reasons)) and last_chance:
            raise error(f"shard {shard.name}", expected=f"{service} to work", found=found, remedy=_REMEDY)
        if not last_chance:
            shop.progress.forget(len(reasons), failed)
            raise UnfinishedShardError(f"shard {shard.name}", expected=f"{service} to work", found=found, remedy=_REMEDY)
