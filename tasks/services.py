"""Services that fail: when a shard is measured again, when it is sealed with holes, and when the run must stop."""

from __future__ import annotations

from schemas.errors import ExecutorError, ProviderError, UnfinishedShardError
from schemas.records import Response, ResponseClass
from tasks.plan import Shard
from tasks.workshop import Workshop

_FEW_FAILURES = 2
_FAILING_SHARE = 0.1
"""More cells of a shard than this are never left unmeasured by the verifier; the same share blocks a study's numbers."""

_REMEDY = (
    "Nothing of this shard is sealed and its answers are in the journal: mend the service (`evalnoise doctor`) and run the same "
    "command again."
)


def may_work_later(response: Response) -> bool:
    """Whether the call failed for a reason that can pass: the server was down or busy, not that it refuses this request."""
    failed = response.response_class in (ResponseClass.INFRASTRUCTURE, ResponseClass.MALFORMED)
    return failed and not response.final


def refuse_failures(shop: Workshop, shard: Shard, *, cells: int, provider: int, verifier: int, last_chance: bool) -> None:
    """Raise unless the shard may be sealed, for a sealed cell is never asked again.

    A call that may work later is never sealed as a failure: at the first try the shard comes again, at the second the run stops. A
    candidate that the verifier could not run is tried in both; then a few such cells may be sealed as unmeasured.

    Args:
        shop: The workshop, whose progress forgets the cells of a shard that comes again.
        shard: The shard.
        cells: Cells or verdicts of the shard.
        provider: Those whose call failed and may work later.
        verifier: Those whose candidate the verifier could not run.
        last_chance: Whether this was the second try.
    """
    for failed, error, service in ((provider, ProviderError, "the provider"), (verifier, ExecutorError, "the verifier")):
        if not failed:
            continue
        found = f"{failed} of {cells} cells unmeasured because it did not"
        if not last_chance:
            shop.progress.forget(cells, failed)
            raise UnfinishedShardError(f"shard {shard.name}", expected=f"{service} to work", found=found, remedy=_REMEDY)
        if error is ProviderError or failed > max(_FEW_FAILURES, _FAILING_SHARE * cells):
            raise error(f"shard {shard.name}", expected=f"{service} to work", found=found, remedy=_REMEDY)
