"""Running a study from the command line: the server first, then the flow, then the summary."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import typer

from evalnoise.report.numbers import counted
from evalnoise.report.summary import refuse_blocked
from evalnoise.report.terminal import print_summary
from evalnoise.store.lock import study_lock
from evalnoise.store.retries import open_retry
from evalnoise.store.store import SHORT, Store
from flows.server import apply_client_environment, ensure_server
from flows.views.progress import watching
from schemas.study import Study
from tasks.freeze import Plan
from tasks.rerun import Rerun, checked_plan, condition_names
from tasks.retry import next_retry, unmeasured_reasons


def run_study(study: Study, rerun: Rerun, *, store: Path, limit: int | None, replicates: int | None, rest: str = "") -> None:
    """Run or resume a study and print what it found.

    Args:
        study: The study.
        rerun: What is done other than all that is missing.
        store: Folder that holds results.
        limit: Only the first so many tasks.
        replicates: Replicates instead of the study's.
        rest: The command that does what this run is not asked to do.

    Raises the typed errors of the run; BlockedError when it ended but its numbers must not be used.
    """
    # Everything that can be wrong with the study, its data, its engine and its keys is said before a server is started.
    known = Store(store.absolute())
    plan = checked_plan(study, known, rerun, limit=limit, replicates=replicates)
    opened = Store.open(store)
    if rerun.retry_unmeasured and (nothing := _nothing_to_ask(plan, opened)):
        typer.echo(nothing)
        return
    server = ensure_server()
    apply_client_environment(server)
    # The command line says what went wrong in a sentence; Prefect's traceback goes to the run's page only.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    typer.echo(f"Prefect dashboard: {server.dashboard_url}", err=True)
    # Prefect reads its settings from the environment when it is imported, so not before this line.
    from flows.study import PLAN, WATCHER, noise_study  # noqa: PLC0415

    with watching() as watcher:
        shown, planned = WATCHER.set(watcher), PLAN.set(plan)
        try:
            result = noise_study(
                study,
                store=str(store),
                limit=limit,
                replicates=replicates,
                only=list(rerun.only),
                retry_unmeasured=rerun.retry_unmeasured,
                extend_from=rerun.extend_from,
                why=rerun.why,
            )
        finally:
            PLAN.reset(planned)
            WATCHER.reset(shown)
    if result.summary is None:
        typer.echo(_left(plan.study, result.shards, result.left, rest))
        return
    print_summary(result.summary, store, command=_command())
    refuse_blocked(result.summary)


def _left(study: Study, shards: int, left: Sequence[str], rest: str) -> str:
    """What a run of a part has left, and how that is done."""
    counts = Counter(name.split("~")[2] for name in left)
    conditions = ", ".join(f"{name} {counts[name]}" for name in condition_names(study) if counts[name])
    return f"Sealed: {shards - len(left)} of {counted(shards, 'shard')}. Left: {conditions}. The rest, and the analysis: {rest}"


def _nothing_to_ask(plan: Plan, store: Store) -> str:
    """That a retry has nothing to ask again; empty if it has."""
    study = store.study(plan.study.study, plan.digest)
    with study_lock(study.path.parent, command="looks for cells to ask again"):
        if open_retry(study.manifest) is not None or next_retry(plan, study) is not None:
            return ""
        reasons = unmeasured_reasons(study)
    where = f"study {plan.study.study}, protocol {plan.digest[:SHORT]}"
    if not reasons:
        return f"Nothing to ask again: every sealed cell of {where} has an outcome."
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    without = counted(sum(reasons.values()), "sealed cell")
    return f"Nothing to ask again: {without} of {where} without an outcome, for reasons that asking again does not change ({told})."


def _command() -> str:
    """How the user can call evalnoise again."""
    return "evalnoise" if shutil.which("evalnoise") or not sys.argv[0].endswith("evalnoise") else sys.argv[0]
