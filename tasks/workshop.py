"""The workshop of one run: what shards share in a process - store, providers, verifiers, references, one event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cached_property
from types import TracebackType
from typing import Any, Self, TypeVar

from evalnoise.providers.base import Provider
from evalnoise.providers.make import make_provider
from evalnoise.recordings.opening import pinned_still
from evalnoise.recordings.recording import Recording
from evalnoise.sending.endpoint import Endpoint
from evalnoise.sending.prices import Price, price_of, price_table
from evalnoise.sending.sender import Sender
from evalnoise.store.retries import Retry, open_retry
from evalnoise.store.store import Store, StudyStore
from schemas.provider import AnthropicProvider, OpenAIProvider, PluginProvider
from schemas.records import Outcome, Reason, Reference, Task
from schemas.study import Condition, JudgeCondition, Stack
from schemas.tables import PREFLIGHT
from tasks.freeze import Plan
from tasks.progress import Progress
from tasks.replays import replayed
from tasks.shares import AnswerShares
from tasks.spending import purse_of
from verifiers.verify import Verifier

T = TypeVar("T")

_LAST_ANSWERS_SECONDS = 30
"""How long a stopped run waits for answers where no provider states a limit."""

_OPEN: dict[str, Workshop] = {}


def workshop(digest: str) -> Workshop:
    """The open workshop of a protocol in this process.

    Prefect tasks take a protocol's digest and find the rest here: providers and containers cannot travel as arguments.
    """
    return _OPEN[digest]


class Workshop:
    """Opens lazily what shards need, shares it, and closes it."""

    def __init__(self, plan: Plan, store: Store, progress: Progress) -> None:
        self.plan = plan
        self.store = store
        self.study_store: StudyStore = store.study(plan.study.study, plan.digest)
        self.progress = progress
        self.retry: Retry | None = open_retry(self.study_store.manifest)
        """Sealed cells that are made again; what an earlier run left of them is made by whatever runs now."""
        self.shares = AnswerShares(plan.study.limits.max_share)
        self._price_table = price_table(plan.study.prices)
        self._purse = purse_of(plan, self.study_store, self._price_table)
        self._show_purse()
        self._stacks = {stack.name: stack for stack in plan.study.stacks}
        self._lock = threading.RLock()
        self._verifiers: dict[str, Verifier] = {}
        self._providers: dict[tuple[str, str], Provider] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._senders: dict[Provider, Sender] = {}
        self._prices: dict[Provider, Price | None] = {}
        self._references: dict[str, dict[str, Reference]] = {}
        self._recordings: dict[tuple[str, str], Recording] = {}
        self._running: set[Future[Any]] = set()
        self._in_flight: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="evalnoise-loop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        _OPEN[self.plan.digest] = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _OPEN.pop(self.plan.digest, None)
        self.stop()
        asyncio.run_coroutine_threadsafe(self._close_providers(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=30)
        self._loop.close()
        for verifier in self._verifiers.values():
            verifier.close()

    async def _close_providers(self) -> None:
        if self._in_flight:
            seconds = self._longest_call()
            answers = (
                "the answer to 1 call that was"
                if len(self._in_flight) == 1
                else f"the answers to {len(self._in_flight)} calls that were"
            )
            self.progress.say(f"waiting up to {seconds:.0f} s for {answers} sent; stopping again loses what is paid for")
            await asyncio.wait(self._in_flight, timeout=seconds)
        for provider in self._providers.values():
            await provider.close()

    def _longest_call(self) -> float:
        """Seconds that a call may take before its own limit ends it."""
        study = self.plan.study
        specs = [study.provider(stack, condition) for stack in study.stacks for condition in study.conditions]
        judges = [condition.provider for condition in study.judge.conditions] if study.judge else []
        limited = OpenAIProvider | AnthropicProvider | PluginProvider
        limits = [spec.timeout for spec in (*specs, *judges) if isinstance(spec, limited)]
        return max(limits, default=_LAST_ANSWERS_SECONDS) + 5

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the workshop's one event loop, where the providers' connections live, and wait for it."""
        with self._lock:
            if self._stopping:
                work.close()
                raise KeyboardInterrupt
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._running.add(future)
        try:
            return future.result()
        finally:
            with self._lock:
                self._running.discard(future)

    def stop(self) -> None:
        """Cancel what runs: sealed shards and journalled answers stay, the rest is done by the next run."""
        with self._lock:
            self._stopping = True
            for future in self._running:
                future.cancel()

    def in_flight(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start work that a stop waits for; call it on the workshop's loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._in_flight.add(task)
        task.add_done_callback(self._landed)
        return task

    def _landed(self, task: asyncio.Task[Any]) -> None:
        self._in_flight.discard(task)
        if not task.cancelled():
            # Looked at, so that asyncio does not complain about it: whoever awaits the call gets it too, unless it was stopped.
            task.exception()

    def check_stopped(self) -> None:
        """Raise CancelledError when the run is being stopped, so that no new call is sent."""
        if self._stopping:
            raise asyncio.CancelledError

    @cached_property
    def positions(self) -> dict[str, int]:
        """Place of each task in the benchmark's order."""
        return {task.id: index for index, task in enumerate(self.plan.benchmark.tasks)}

    def tasks(self, start: int, stop: int) -> tuple[Task, ...]:
        """The tasks of a block."""
        return self.plan.benchmark.tasks[start:stop]

    def stack(self, name: str) -> Stack:
        """The stack of that name."""
        return self._stacks[name]

    def lineage(self, row: Task) -> dict[str, Any]:
        """The columns that every row begins with."""
        return {
            "study": self.plan.study.study,
            "protocol": self.plan.digest,
            "benchmark": self.plan.benchmark.name,
            "task_id": row.id,
            "position": self.positions[row.id],
        }

    def verifier(self, stack: str) -> Verifier:
        """The stack's verifier; its containers start at the first candidate."""
        with self._lock:
            if stack not in self._verifiers:
                spec, checker = self.stack(stack).verifier, self.plan.checkers[stack]
                self._verifiers[stack] = Verifier(spec, checker, self.plan.executors[stack])
            return self._verifiers[stack]

    def provider(self, stack: str, condition: Condition) -> Provider:
        """The stack's provider under a condition.

        A replay gets a provider over a recording: the object that could call is not even made.
        """
        with self._lock:
            key = (stack, condition.name)
            if key not in self._providers:
                made_from = self.stack(stack)
                spec = self.plan.study.provider(made_from, condition)
                made = self._providers[key] = make_provider(
                    spec,
                    model=made_from.model,
                    max_tokens=made_from.max_tokens,
                    retry=made_from.retry,
                    recording=self._recording(stack, condition),
                    concurrency=self.plan.study.limits.concurrency,
                )
                self._prices[made] = price_of(spec, made_from.model, self._price_table)
            return self._providers[key]

    def judge_provider(self, condition: JudgeCondition) -> Provider:
        """The provider of a judge condition."""
        with self._lock:
            key = ("", condition.name)
            if key not in self._providers:
                made = self._providers[key] = make_provider(
                    condition.provider,
                    model=condition.model,
                    max_tokens=condition.max_tokens,
                    retry="none",
                    concurrency=self.plan.study.limits.concurrency,
                )
                self._prices[made] = price_of(condition.provider, condition.model, self._price_table)
            return self._providers[key]

    def sender(self, provider: Provider) -> Sender:
        """What sends the provider's calls: the endpoint behind it is shared over all shards."""
        with self._lock:
            found = self._senders.get(provider)
            if found is None:
                endpoint = self._endpoints.get(provider.address)
                if endpoint is None:
                    limits = self.plan.study.limits
                    endpoint = Endpoint(
                        provider.address,
                        concurrency=limits.concurrency,
                        requests_per_minute=limits.requests_per_minute,
                        tokens_per_minute=limits.tokens_per_minute,
                        patience=limits.patience,
                    )
                    self._endpoints[provider.address] = endpoint
                found = Sender(
                    provider,
                    endpoint,
                    in_flight=self.in_flight,
                    check_stopped=self.check_stopped,
                    price=self._prices[provider],
                    purse=self._purse,
                    counted=self._count_sending,
                )
                self._senders[provider] = found
            return found

    def _count_sending(self, cost: float | None, again: bool) -> None:  # noqa: FBT001 - the sender's callback
        self._show_purse()
        self.progress.sending(cost, again)

    def _show_purse(self) -> None:
        self.progress.limit_cost(self._purse.max_cost, spent=self._purse.spent, held=self._purse.held)

    def set_recording(self, stack: str, condition: str, recording: Recording) -> None:
        """Hand over the recording that a replay condition replays."""
        with self._lock:
            self._recordings[stack, condition] = recording

    def _recording(self, stack: str, condition: Condition) -> Recording | None:
        if condition.source is not None:
            return self._recordings[stack, condition.name]
        found = replayed(self.plan.study, self.stack(stack), condition, self.plan.benchmark)
        if found is not None:
            pinned_still(found, self.plan.protocol.recordings[f"{stack}/{condition.name}"].sha256)
        return found

    def reference(self, stack: str, task: Task) -> Reference:
        """What the sealed preflight says of a task."""
        with self._lock:
            if stack not in self._references:
                self._references[stack] = self._read_references(stack)
            return self._references[stack][task.id]

    def usable_tasks(self, stack: str) -> int:
        """Tasks that preflight left the stack."""
        return sum(self.reference(stack, task).outcome is Outcome.PASS for task in self.plan.benchmark.tasks)

    def _read_references(self, stack: str) -> dict[str, Reference]:
        rows = [row for row in self.study_store.read(PREFLIGHT).to_pylist() if row["stack"] == stack]
        return {row["task_id"]: reference_of(row) for row in rows}


def reference_of(row: dict[str, Any]) -> Reference:
    """The reference behind a row of `preflight`."""
    return Reference(
        task_id=row["task_id"],
        outcome=Outcome(row["outcome"]),
        reason=Reason(row["reason"]),
        detail=row["detail"],
        outputs=tuple(row["outputs"]),
        inputs_used=tuple(row["inputs_used"]),
        n_dropped=row["n_dropped"] or 0,
        mutant=row["mutant"],
        known_bad=row["known_bad"],
        cpu_seconds=row["cpu_seconds"],
        input_seconds=tuple(row["input_seconds"]),
    )
