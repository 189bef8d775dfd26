"""Flows for deployments: a study repeated every night, and a study run once on demand.

Both run the study's DAG inside their own flow run rather than as a subflow, which would cost as much as thirty task runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from prefect import flow, runtime
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from evalnoise.report.summary import refuse_blocked
from evalnoise.studyfile.load import load_study
from flows.study import SHARDS_IN_FLIGHT, StudyResult, execute
from schemas.model import Slug
from tasks.rerun import Rerun


def _runner() -> TaskRunner[PrefectFuture[Any]]:
    # The runner's future is a subclass of the one that the decorator names, but the type parameter is invariant.
    return cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner(max_workers=SHARDS_IN_FLIGHT + 1))


def _nightly_name() -> str:
    parameters = runtime.flow_run.parameters
    return f"{Path(str(parameters['study'])).stem} {parameters.get('night') or scheduled_night()}"


def _ad_hoc_name() -> str:
    return Path(str(runtime.flow_run.parameters["study"])).stem


def scheduled_night() -> str:
    """The UTC date for which this flow run was scheduled. A run that starts late keeps the date of its night."""
    return str(runtime.flow_run.scheduled_start_time.strftime("%Y-%m-%d"))


def _usable(result: StudyResult) -> StudyResult:
    """The result, unless a check blocks: then the run fails, so that nobody reads its numbers unwarned."""
    if result.summary is not None:
        refuse_blocked(result.summary)
    return result


@flow(name="nightly-noise-study", flow_run_name=_nightly_name, task_runner=_runner(), persist_result=False)
def nightly_noise_study(
    study: str,
    store: str,
    night: Slug | None = None,
    limit: int | None = None,
    replicates: int | None = None,
) -> StudyResult:
    """Run the study under tonight's label, so that every night is a protocol of its own; the same night resumes.

    Args:
        study: Path of the study file.
        store: Folder that holds results.
        night: Label of the night; default: the UTC date for which the run was scheduled.
        limit: Only the first so many tasks.
        replicates: Replicates instead of the study's.
    """
    labelled = load_study(Path(study)).model_copy(update={"night": night or scheduled_night()})
    return _usable(execute(labelled, store=store, limit=limit, replicates=replicates))


@flow(name="ad-hoc-study", flow_run_name=_ad_hoc_name, task_runner=_runner(), persist_result=False)
def ad_hoc_study(
    study: str,
    store: str,
    overrides: list[str] | None = None,
    limit: int | None = None,
    replicates: int | None = None,
    *,
    only: list[str] | None = None,
    retry_unmeasured: bool = False,
    extend_from: str | None = None,
    why: str | None = None,
) -> StudyResult:
    """Run or resume a study as it stands, as the command line does.

    Args:
        study: Path of the study file.
        store: Folder that holds results.
        overrides: Changes to the study, each as path=value.
        limit: Only the first so many tasks.
        replicates: Replicates instead of the study's.
        only: Only these conditions, and what they depend on.
        retry_unmeasured: Only sealed cells without an outcome, and what depends on them.
        extend_from: `newest`, or digits of a protocol's digest: its successor with `replicates`, which inherits its sealed shards.
        why: Why there is a successor.
    """
    rerun = Rerun(tuple(only or ()), retry_unmeasured, extend_from, why)
    loaded = load_study(Path(study), overrides or ())
    return _usable(execute(loaded, store=store, limit=limit, replicates=replicates, rerun=rerun))
