"""Worker threads, each with a warm sandbox: replaced after a number of jobs, after anything abnormal, and when it fails."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from schemas.verifier import RECYCLE_JOBS
from verifiers.jobs import Ended, Fault, Job, Run
from verifiers.sandbox.base import Sandbox, SandboxError

T = TypeVar("T")

_ATTEMPTS = 3
_START_SECONDS = 60.0
_FIRST_PAUSE = 0.2
_LAST_PAUSE = 5.0


class UnavailableError(Exception):
    """A job could not be run at all, after several attempts in several sandboxes."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__(faults[-1].detail if faults else "no sandbox")


class ClosedError(Exception):
    """The pool was closed while the work waited or ran. It says nothing about the work."""


class _Gate:
    """Many jobs at once, or one alone. Whoever wants to be alone is let in before further jobs are."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._waiting = 0
        self._alone = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone and not self._waiting)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: not self._alone and not self._inside)
            finally:
                self._waiting -= 1
            self._alone = True
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()


class Lane:
    """One worker's sandbox, as the work sees it."""

    def __init__(self, start: Callable[[], Sandbox], gate: _Gate, closing: threading.Event, recycle: int) -> None:
        self._start = start
        self._gate = gate
        self._closing = closing
        self._recycle = recycle
        self._sandbox: Sandbox | None = None
        self._prepared: Future[Sandbox] | None = None
        self._jobs = 0
        self._patient = True
        self._knows_canonicals = False
        self._tests: Lane | None = None

    @property
    def tests(self) -> Lane:
        """A lane beside this one, for jobs that hold expected values. No candidate ever runs there."""
        if self._tests is None:
            self._tests = Lane(self._start, self._gate, self._closing, self._recycle)
        return self._tests

    def separate(self, *, canonicals: bool) -> None:
        """Say before the work whether its jobs run canonical solutions: where they ran, no candidate will."""
        if self._knows_canonicals and not canonicals:
            self.discard()
        self._knows_canonicals = canonicals

    def run(self, job: Job) -> tuple[Run, tuple[Fault, ...]]:
        """Run a job, again in a new sandbox if one fails; the failures come with it.

        Raises UnavailableError, and ClosedError when the pool is closed meanwhile.
        """
        return self._attempts(job, self._gate.shared, ahead=self._recycle == 1)

    def run_alone(self, job: Job) -> tuple[Run, tuple[Fault, ...]]:
        """The same in a fresh sandbox, while no other job of this pool runs."""
        self.discard()
        return self._attempts(job, self._gate.alone, ahead=False)

    def discard(self) -> None:
        """Remove the sandbox; the next job gets a new one."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.close()

    def abort(self) -> None:
        """From another thread: make a running job fail at once."""
        for sandbox in (self._sandbox, self._tests and self._tests._sandbox):  # noqa: SLF001 - a lane too
            if sandbox is not None:
                sandbox.abort()

    def close(self) -> None:
        """Remove the sandboxes of this lane and of the one beside it."""
        self.discard()
        if self._prepared is not None:
            with contextlib.suppress(SandboxError):
                self._prepared.result().close()
        if self._tests is not None:
            self._tests.close()

    def _attempts(
        self, job: Job, gate: Callable[[], contextlib.AbstractContextManager[None]], *, ahead: bool
    ) -> tuple[Run, tuple[Fault, ...]]:
        """Run a job; `ahead`: and prepare the next job's sandbox meanwhile."""
        faults: list[Fault] = []
        while len(faults) < _ATTEMPTS:
            sandbox = self._ready(faults)
            if self._closing.is_set():
                raise ClosedError
            if sandbox is None:
                break
            try:
                with gate():
                    if ahead and self._prepared is None:
                        self._prepared = _in_a_thread(self._start)
                    run = sandbox.run(job)
            except SandboxError as error:
                faults.append(Fault(error.detail, error.container, os.getloadavg()[0]))
                self.discard()
                continue
            except BaseException:
                self.discard()  # its answer may still come, and would be taken for the next job's
                raise
            self._jobs += 1
            if self._jobs >= self._recycle or _is_abnormal(run):
                self.discard()
            return run, tuple(faults)
        raise UnavailableError(tuple(faults))

    def _ready(self, faults: list[Fault]) -> Sandbox | None:
        """The sandbox, started if there is none. An engine that went away is waited for, but only once."""
        deadline = time.monotonic() + (_START_SECONDS if self._patient else 0)
        pause = _FIRST_PAUSE
        while self._sandbox is None and not self._closing.is_set():
            try:
                prepared, self._prepared = self._prepared, None
                self._sandbox = self._start() if prepared is None else prepared.result()
            except SandboxError as error:
                faults.append(Fault(f"no sandbox: {error.detail}", error.container, os.getloadavg()[0]))
                if time.monotonic() + pause > deadline or self._closing.wait(pause):
                    self._patient = False
                    return None
                pause = min(2 * pause, _LAST_PAUSE)
            else:
                self._jobs = 0
        self._patient = True
        return self._sandbox


def _in_a_thread(start: Callable[[], Sandbox]) -> Future[Sandbox]:
    future: Future[Sandbox] = Future()

    def work() -> None:
        try:
            future.set_result(start())
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever takes the sandbox
            future.set_exception(error)

    threading.Thread(target=work, name="verifier-ahead", daemon=True).start()
    return future


def _is_abnormal(run: Run) -> bool:
    """Whether the sandbox may have suffered: a limit, a signal, memory, something left behind."""
    return run.ended is not Ended.EXITED or run.oom or bool(run.leftovers)


class Pool:
    """Runs work on lanes. Work is a function of a lane; its result, or its exception, arrives in a future."""

    def __init__(self, start: Callable[[], Sandbox], workers: int, *, recycle: int = RECYCLE_JOBS) -> None:
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[Lane], Any]] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        gate = _Gate()
        self._lanes = [Lane(start, gate, self._closing, recycle) for _ in range(workers)]
        self._threads = [threading.Thread(target=self._work, args=(lane,), name="verifier", daemon=True) for lane in self._lanes]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)

    def submit(self, work: Callable[[Lane], T]) -> Future[T]:
        """Queue the work. Raises ClosedError after `close`."""
        if self._closing.is_set():
            raise ClosedError
        future: Future[T] = Future()
        self._queue.put((future, work))
        return future

    def close(self) -> None:
        """Cancel what waits, stop what runs, remove every sandbox."""
        self._closing.set()
        for lane in self._lanes:
            self._queue.put(None)
            lane.abort()
        for thread in self._threads:
            thread.join()
        atexit.unregister(self.close)

    def _work(self, lane: Lane) -> None:
        try:
            while (item := self._queue.get()) is not None:
                future, work = item
                if self._closing.is_set():
                    future.cancel()
                elif future.set_running_or_notify_cancel():
                    _settle(future, work, lane)
        finally:
            lane.close()


def _settle(future: Future[Any], work: Callable[[Lane], Any], lane: Lane) -> None:
    try:
        result = work(lane)
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever holds the future
        future.set_exception(error)
    else:
        future.set_result(result)
