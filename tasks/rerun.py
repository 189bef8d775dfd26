"""What a run is asked to do other than all that is missing: one condition, cells without an outcome, more replicates."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from evalnoise.store.store import Store, StudyStore
from schemas.errors import StoreError, StudyError
from schemas.protocol import Protocol
from schemas.study import Study
from tasks.freeze import Plan, check_keys, resolve
from tasks.spending import check_prices
from tasks.successor import like, successor

NEWEST = "newest"
"""In the place of a digest: the newest protocol that fits."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """What a run does other than all that is missing; by default, nothing other."""

    only: tuple[str, ...] = ()
    """Conditions and judge conditions: nothing is run but their shards and what those depend on."""
    retry_unmeasured: bool = False
    """Nothing is run but sealed cells without an outcome, whose reason can pass, and what depends on them."""
    extend_from: str | None = None
    """Run a successor with more replicates: digits of its predecessor's digest, or `NEWEST`."""
    why: str | None = None
    """Why there is a successor; None: that there are more replicates."""


def plan_for(study: Study, store: Store, rerun: Rerun, *, limit: int | None = None, replicates: int | None = None) -> Plan:
    """The plan that a run follows; nothing is written. Raises what `resolve` raises, StudyError, SuccessorError and StoreError."""
    plan = resolve(study, limit=limit, replicates=replicates)
    check_conditions(plan.study, rerun.only)
    if rerun.extend_from is not None:
        named = "" if rerun.extend_from == NEWEST else rerun.extend_from
        return successor(plan, store, extend_from=named, why=rerun.why)
    return _sealed(plan, store) if rerun.retry_unmeasured else plan


def checked_plan(study: Study, store: Store, rerun: Rerun, *, limit: int | None = None, replicates: int | None = None) -> Plan:
    """The plan that a run follows, with its keys and prices there. Raises what `plan_for` raises, ProviderError and BudgetError."""
    plan = plan_for(study, store, rerun, limit=limit, replicates=replicates)
    check_keys(plan)
    check_prices(plan)
    return plan


def check_conditions(study: Study, names: tuple[str, ...]) -> None:
    """Raise StudyError for a name that no condition and no judge condition has."""
    known = condition_names(study)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise StudyError(
                "--only",
                expected=f"the name of a condition ({', '.join(known)})",
                found=repr(name)[:200],
                remedy=f"Did you mean {near[0]}?" if near else "Take one of these names.",
            )


def condition_names(study: Study) -> list[str]:
    """Conditions, then judge conditions."""
    judges = study.judge.conditions if study.judge else ()
    return [*(condition.name for condition in study.conditions), *(judge.name for judge in judges)]


def _sealed(plan: Plan, store: Store) -> Plan:
    """The plan, under the newest protocol of the store that is like it: frozen for itself, or a successor."""
    found: list[tuple[StudyStore, Protocol]] = [
        (one, protocol)
        for one, protocol in like(plan, store)
        if protocol.replicates == plan.protocol.replicates and one.manifest.planned
    ]
    if not found:
        raise StoreError(
            str(store.root),
            expected=f"a run of study {plan.study.study} as it stands",
            found="none",
            remedy="Give the options of that run (--limit, --replicates, --set), or run the study first.",
        )
    _, protocol = found[-1]
    return replace(plan, protocol=protocol, digest=protocol.digest())
