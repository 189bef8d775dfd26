"""The flow: a noise study as a DAG of shards."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prefect import Task, flow
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import ThreadPoolTaskRunner

from evalnoise.report.summary import Summary
from evalnoise.store.retries import pending
from evalnoise.store.store import Store
from flows.artifacts import publish
from schemas.errors import UnfinishedShardError
from schemas.study import Study
from tasks import nodes
from tasks.again import cells_to_make
from tasks.analyse import SHARD as ANALYSIS_SHARD
from tasks.freeze import Plan
from tasks.load import SHARD as TASKS_SHARD
from tasks.plan import Shard, judge_shards, measured_shards, probe_shards, shards_before, with_what_is_before
from tasks.preflight import shard_name as preflight_shard
from tasks.progress import NoWatcher, Progress, Watcher
from tasks.rerun import Rerun, checked_plan
from tasks.retry import begin_retry, end_retry
from tasks.workshop import Workshop

SHARDS_IN_FLIGHT = 2
"""Two shards at a time: while one waits for a provider, the other keeps the verifier busy."""

WATCHER: ContextVar[Watcher | None] = ContextVar("evalnoise_watcher", default=None)
"""Who is shown the progress; set around the flow's call, because a flow's parameters are stored by the server."""

PLAN: ContextVar[Plan | None] = ContextVar("evalnoise_plan", default=None)
"""What the caller has planned with the same arguments, and checked; set as the watcher is. None: the flow plans."""

_NODES: Final[dict[str, Task[..., None]]] = {
    "measure": nodes.measure_node,
    "reverify": nodes.reverify_node,
    "judge": nodes.judge_node,
    "probes": nodes.probes_node,
}
"""By a shard's purpose."""

SHARDS_THAT_MAKE_AN_OUTAGE = 3
"""So many unfinished shards in a row stop the run: the service is down, and calling on would only cost."""


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a finished run leaves."""

    study: str
    protocol: str
    store: Path
    shards: int
    """Shards that the study has."""
    resumed: int
    """Of them, sealed by an earlier run."""
    summary: Summary | None
    """What the store says of the protocol now; None: something is left to do."""
    asked_again: int = 0
    """Cells that were sealed without an outcome and asked again."""
    left: tuple[str, ...] = ()
    """Shards that the run was not asked to do."""


def _flow_run_name() -> str:
    study = flow_run.parameters["study"]
    return str(study.study if isinstance(study, Study) else study["study"])


@flow(
    name="noise-study",
    flow_run_name=_flow_run_name,
    task_runner=ThreadPoolTaskRunner(max_workers=SHARDS_IN_FLIGHT + 1),  # type: ignore[arg-type]
    persist_result=False,
)
def noise_study(
    study: Study,
    store: str,
    limit: int | None = None,
    replicates: int | None = None,
    *,
    only: list[str] | None = None,
    retry_unmeasured: bool = False,
    extend_from: str | None = None,
    why: str | None = None,
) -> StudyResult:
    """Run a noise study; the same call resumes it. What the last four parameters mean is said at `tasks.rerun.Rerun`."""
    rerun = Rerun(tuple(only or ()), retry_unmeasured, extend_from, why)
    return execute(study, store=store, limit=limit, replicates=replicates, rerun=rerun)


def execute(
    study: Study,
    *,
    store: str,
    limit: int | None = None,
    replicates: int | None = None,
    rerun: Rerun = Rerun(),  # noqa: B008 - frozen
) -> StudyResult:
    """Run a study inside a flow run.

    Raises the typed errors of its stages; what was sealed or journalled before is kept.
    """
    opened = Store.open(store)
    plan = PLAN.get() or checked_plan(study, opened, rerun, limit=limit, replicates=replicates)
    progress = Progress(WATCHER.get() or NoWatcher())
    with opened.study(plan.study.study, plan.digest).lock(command=f"noise-study {plan.digest[:12]}"):
        # Before the workshop looks at what has been spent: what is inherited counts.
        _take_over(opened, plan)
        with Workshop(plan, opened, progress) as shop:
            ran = _run_dag(shop, plan, rerun)
    summary = None if ran.left else publish(opened.root, plan.study.study, plan.digest)
    asked = shop.retry.n_asked if shop.retry is not None else 0
    return StudyResult(
        plan.study.study, plan.digest, opened.root, ran.shards, ran.resumed, summary, asked, tuple(shard.name for shard in ran.left)
    )


@dataclass(frozen=True, slots=True)
class _Ran:
    """What a run came to."""

    shards: int
    resumed: int
    left: tuple[Shard, ...]
    """Shards that it was not asked to do."""


def _take_over(store: Store, plan: Plan) -> None:
    """Freeze a successor and inherit from its predecessor, unless that is done."""
    lineage = plan.protocol.lineage
    if lineage is not None:
        store.freeze(plan.protocol)
        store.study(plan.study.study, plan.digest).plan(_planned(plan))
        node = nodes.inherit_node
        _finished(_start(node, str(store.root), plan.study.study, plan.digest, lineage.predecessor))


def _every_shard(plan: Plan) -> tuple[Shard, ...]:
    """Shards of probes, of cells, then of verdicts, in the order in which they run."""
    n_tasks = plan.protocol.n_tasks
    return (*probe_shards(plan.study), *measured_shards(plan.study, n_tasks), *judge_shards(plan.study, n_tasks))


def _planned(plan: Plan) -> list[str]:
    """Names of all shards of a study, as its manifest announces them."""
    preflights = [preflight_shard(stack.name) for stack in plan.study.stacks]
    return [TASKS_SHARD, *preflights, *(shard.name for shard in _every_shard(plan)), ANALYSIS_SHARD]


def _run_dag(shop: Workshop, plan: Plan, rerun: Rerun) -> _Ran:
    """Run what is missing and wanted; analyse once all is sealed."""
    every = _every_shard(plan)
    gate = _Gate(shop, plan)
    gate.freeze()
    sealed = {shard for shard in every if shop.study_store.sealed(shard.name)}
    if rerun.retry_unmeasured:
        begin_retry(shop)
    # What a retry has yet to make again is not done, whatever this run was asked for: numbers over half of it would be wrong.
    again = pending(shop.study_store.manifest, shop.retry) if shop.retry is not None else frozenset()
    done = {shard for shard in sealed if shard.name not in again}
    wanted = _wanted(plan, rerun, every, again)
    todo = [shard for shard in every if shard in wanted - done]
    cells = sum(shard.cells for shard in wanted)
    shop.progress.plan(cells, cells - sum(len(cells_to_make(shop, shard)) for shard in todo))
    gate.open()
    line = _Line(plan, gate, set(done))
    for shard in todo:
        line.add(shard)
    line.drain()
    left = tuple(shard for shard in every if shard not in line.done)
    if shop.retry is not None and not again.intersection(shard.name for shard in left):
        end_retry(shop)
    if rerun.only and left and todo:
        shop.study_store.mark("only", conditions=list(rerun.only), at=datetime.now(UTC).isoformat(timespec="seconds"))
    if not left and (not shop.study_store.sealed(ANALYSIS_SHARD) or not shop.study_store.status().complete):
        _finished(_start(nodes.analyse_node, plan.digest, after=line.ends()))
    return _Ran(len(every), len(done), left)


def _wanted(plan: Plan, rerun: Rerun, every: Sequence[Shard], again: Collection[str]) -> set[Shard]:
    """The shards that a run is asked for, and all that those depend on."""
    if rerun.only:
        chosen = [shard for shard in every if shard.condition in rerun.only]
    elif rerun.retry_unmeasured:
        chosen = [shard for shard in every if shard.name in again]
    else:
        return set(every)
    return with_what_is_before(plan.study, chosen, plan.protocol.n_tasks)


def _start(node: Task[..., None], *arguments: object, after: Sequence[PrefectFuture[Any]] = ()) -> PrefectFuture[Any]:
    return node.submit(*arguments, wait_for=list(after), return_state=False)


def _finished(future: PrefectFuture[Any]) -> PrefectFuture[Any]:
    """The future, once its task run has succeeded; raises what the task run raised."""
    future.result(raise_on_failure=True)
    return future


class _Gate:
    """What every shard waits for: the frozen protocol, the loaded tasks and its stack's preflight."""

    def __init__(self, shop: Workshop, plan: Plan) -> None:
        self._shop = shop
        self._plan = plan
        self._before: list[PrefectFuture[Any]] = []
        self._preflights: dict[str, PrefectFuture[Any]] = {}

    def freeze(self) -> None:
        """Write the protocol and the plan of all its shards."""
        self._before.append(_finished(_start(nodes.freeze_node, self._plan.digest)))
        self._shop.study_store.plan(_planned(self._plan))

    def open(self) -> None:
        """Load and check before anything is called."""
        digest, sealed = self._plan.digest, self._shop.study_store.sealed
        if not sealed(TASKS_SHARD):
            self._before.append(_finished(_start(nodes.load_node, digest, after=self._before)))
        for stack in self._plan.study.stacks:
            if not sealed(preflight_shard(stack.name)):
                future = _start(nodes.preflight_node, digest, stack.name, after=self._before)
                self._preflights[stack.name] = _finished(future)

    def before(self, stack: str) -> list[PrefectFuture[Any]]:
        """The task runs that a shard of the stack comes after."""
        return [*self._before, *(future for name, future in self._preflights.items() if name == stack)]


class _Line:
    """Shards in their order, a few in flight, each behind the shards that it depends on.

    The flow waits for dependencies before it submits, so no task run ever occupies a worker while it waits for another; they are
    named in `wait_for` all the same, so that the run's graph shows them. A shard for which a service failed comes once more: before
    a shard that depends on it, else at the end.
    """

    def __init__(self, plan: Plan, gate: _Gate, done: set[Shard]) -> None:
        self._plan = plan
        self._gate = gate
        self.done = done
        """Shards that need not be run, or have been."""
        self._recorded: dict[tuple[str, str], PrefectFuture[Any]] = {}
        self._finished: dict[Shard, PrefectFuture[Any]] = {}
        self._flight: deque[tuple[Shard, PrefectFuture[Any]]] = deque()
        self._again: list[Shard] = []
        self._failed_in_a_row = 0

    def add(self, shard: Shard) -> None:
        """Run the shard."""
        self._submit(shard, last_chance=False)

    def drain(self) -> None:
        """Finish what is in flight, then what comes again."""
        while self._flight:
            self._finish_oldest()
        while self._again:
            self._retry(self._again[0])

    def ends(self) -> list[PrefectFuture[Any]]:
        """The task runs of this run's shards."""
        return list(self._finished.values())

    def _before(self, shard: Shard) -> list[PrefectFuture[Any]]:
        """What the shard depends on, done."""
        sources = shards_before(self._plan.study, shard, self._plan.protocol.n_tasks)
        if shard.purpose == "judge":
            return self._wait_for(sources)
        before = self._gate.before(shard.stack)
        if shard.purpose == "reverify":
            return [*before, *self._wait_for(sources)]
        return [*before, self._recording(shard, sources)] if sources else before

    def _recording(self, shard: Shard, sources: list[Shard]) -> PrefectFuture[Any]:
        key = (shard.stack, shard.condition)
        if key not in self._recorded:
            before = self._wait_for(sources)
            self._recorded[key] = _finished(_start(nodes.record_node, self._plan.digest, *key, after=before))
        return self._recorded[key]

    def _submit(self, shard: Shard, *, last_chance: bool) -> None:
        node = _NODES[shard.purpose]
        before = self._before(shard)
        self._flight.append((shard, _start(node, self._plan.digest, shard.name, shard, last_chance, after=before)))
        while len(self._flight) > SHARDS_IN_FLIGHT:
            self._finish_oldest()

    def _wait_for(self, shards: list[Shard]) -> list[PrefectFuture[Any]]:
        while not (self.done | set(self._again)).issuperset(shards):
            self._finish_oldest()
        for shard in [shard for shard in shards if shard in self._again]:
            self._retry(shard)
        return [self._finished[shard] for shard in shards if shard in self._finished]

    def _retry(self, shard: Shard) -> None:
        """The shard's last chance; what fails now is sealed as it is, or stops the run."""
        self._again.remove(shard)
        self._submit(shard, last_chance=True)
        while shard not in self.done:
            self._finish_oldest()

    def _finish_oldest(self) -> None:
        shard, future = self._flight.popleft()
        try:
            self._finished[shard] = _finished(future)
        except UnfinishedShardError:
            self._failed_in_a_row += 1
            if self._failed_in_a_row == SHARDS_THAT_MAKE_AN_OUTAGE:
                raise
            self._again.append(shard)
        else:
            self._failed_in_a_row = 0
            self.done.add(shard)
