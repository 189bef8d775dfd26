"""The flow: a noise study as a DAG of shards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prefect import Task, flow
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.task_runners import ThreadPoolTaskRunner

from evalnoise.report.summary import Summary
from evalnoise.store.store import Store
from flows.artifacts import publish
from schemas.errors import UnfinishedShardError
from schemas.study import Study
from tasks import nodes
from tasks.analyse import SHARD as ANALYSIS_SHARD
from tasks.freeze import Plan, check_keys, resolve
from tasks.load import SHARD as TASKS_SHARD
from tasks.plan import Shard, judge_shards, measured_shards, source_shards
from tasks.preflight import shard_name as preflight_shard
from tasks.progress import NoWatcher, Progress, Watcher
from tasks.workshop import Workshop

SHARDS_IN_FLIGHT = 2
"""Two shards at a time: while one waits for a provider, the other keeps the verifier busy."""

WATCHER: ContextVar[Watcher | None] = ContextVar("evalnoise_watcher", default=None)
"""Who is shown the progress; set around the flow's call, because a flow's parameters are stored by the server."""


_NODES: Final[dict[str, Task[..., None]]] = {
    "measure": nodes.measure_node,
    "reverify": nodes.reverify_node,
    "judge": nodes.judge_node,
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
    summary: Summary
    """What the store says of the protocol now."""


def _flow_run_name() -> str:
    study = flow_run.parameters["study"]
    return str(study.study if isinstance(study, Study) else study["study"])


@flow(
    name="noise-study",
    flow_run_name=_flow_run_name,
    task_runner=ThreadPoolTaskRunner(max_workers=SHARDS_IN_FLIGHT + 1),  # type: ignore[arg-type]
    persist_result=False,
)
def noise_study(study: Study, store: str, limit: int | None = None, replicates: int | None = None) -> StudyResult:
    """Run a noise study; the same call resumes it."""
    return execute(study, store=store, limit=limit, replicates=replicates)


def execute(
    study: Study,
    *,
    store: str,
    limit: int | None = None,
    replicates: int | None = None,
) -> StudyResult:
    """Run a study inside a flow run.

    Raises the typed errors of its stages; what was sealed or journalled before is kept.
    """
    plan = resolve(study, limit=limit, replicates=replicates)
    check_keys(plan)
    opened = Store.open(store)
    progress = Progress(WATCHER.get() or NoWatcher())
    with (
        opened.study(plan.study.study, plan.digest).lock(command=f"noise-study {plan.digest[:12]}"),
        Workshop(plan, opened, progress) as shop,
    ):
        shards, resumed = _run_dag(shop, plan)
    summary = publish(opened.root, plan.study.study, plan.digest)
    return StudyResult(plan.study.study, plan.digest, opened.root, shards, resumed, summary)


def _run_dag(shop: Workshop, plan: Plan) -> tuple[int, int]:
    """Run what is missing; how many shards there are, and how many were sealed before."""
    gate = _Gate(shop, plan)
    measured = measured_shards(plan.study, plan.protocol.n_tasks)
    judging = judge_shards(plan.study, plan.protocol.n_tasks)
    done = {shard for shard in (*measured, *judging) if shop.study_store.sealed(shard.name)}
    resumed = len(done)
    shop.progress.plan(sum(s.cells for s in (*measured, *judging)), sum(s.cells for s in done))
    gate.open(shard.name for shard in (*measured, *judging))
    line = _Line(plan, gate, done)
    for shard in (*measured, *judging):
        line.add(shard)
    line.drain()
    if not shop.study_store.sealed(ANALYSIS_SHARD) or not shop.study_store.status().complete:
        _finished(_start(nodes.analyse_node, plan.digest, after=line.ends()))
    return len(measured) + len(judging), resumed


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

    def open(self, shards: Iterable[str]) -> None:
        """Freeze, load and check before anything is called."""
        digest, sealed = self._plan.digest, self._shop.study_store.sealed
        self._before.append(_finished(_start(nodes.freeze_node, digest)))
        preflights = [preflight_shard(stack.name) for stack in self._plan.study.stacks]
        self._shop.study_store.plan([TASKS_SHARD, *preflights, *shards, ANALYSIS_SHARD])
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
        self._done = done
        self._recorded: dict[tuple[str, str], PrefectFuture[Any]] = {}
        self._finished: dict[Shard, PrefectFuture[Any]] = {}
        self._flight: deque[tuple[Shard, PrefectFuture[Any]]] = deque()
        self._again: list[Shard] = []
        self._failed_in_a_row = 0

    def add(self, shard: Shard) -> None:
        """Run the shard unless it is done."""
        if shard not in self._done:
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
        if shard.purpose == "judge":
            replay = self._plan.study.judged_condition().name
            return self._wait_for([Shard(shard.stack, replay, 0, shard.start, shard.stop)])
        before = self._gate.before(shard.stack)
        sources = source_shards(self._plan.study, shard, self._plan.protocol.n_tasks)
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
        while not (self._done | set(self._again)).issuperset(shards):
            self._finish_oldest()
        for shard in [shard for shard in shards if shard in self._again]:
            self._retry(shard)
        return [self._finished[shard] for shard in shards if shard in self._finished]

    def _retry(self, shard: Shard) -> None:
        """The shard's last chance; what fails now is sealed as it is, or stops the run."""
        self._again.remove(shard)
        self._submit(shard, last_chance=True)
        while shard not in self._done:
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
            self._done.add(shard)
