"""An endpoint: what all calls to one server share in a run, over shards, stacks, conditions and judges."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evalnoise.providers.base import Failure, Kind
from evalnoise.sending.health import Health, Start
from evalnoise.sending.pace import Load, Pacer, Taken
from evalnoise.sending.retry import FIRST_WAIT
from schemas.errors import ProviderError
from schemas.records import Response, ResponseClass

AGAIN: Final = frozenset({Kind.TRANSIENT, Kind.OVERLOADED, Kind.UNREACHED, Kind.MALFORMED})
"""Failures that can pass."""
_STOP_AFTER: Final = 5
"""Calls that fail in a row before the run ends: a server that is down must not turn the rest of a study into missing cells."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A sending that was let out."""

    start: Start
    taken: Taken


@dataclass(eq=False, slots=True)
class _Waiting:
    load: Load
    let_out: asyncio.Future[Ticket]


class Endpoint:
    """Lets sendings out, one by one, as the study's limits and the server allow. Bound to one event loop."""

    def __init__(
        self,
        address: str,
        *,
        concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        patience: float = 0.0,
        first_wait: float = FIRST_WAIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare.

        Args:
            address: Whom it stands for, in messages.
            concurrency: Calls in flight at most.
            requests_per_minute: Sendings at most; None: no limit.
            tokens_per_minute: Tokens at most; None: no limit.
            patience: Seconds for which an overload is waited for; 0: as long as each call's retries last.
            first_wait: Seconds before the first repeated sending or probe.
            clock: Monotonic seconds.
        """
        self.address = address
        self.patience = patience
        self.first_wait = first_wait
        self.health = Health(concurrency=concurrency, first_wait=first_wait, draw=secrets.SystemRandom().random)
        self._pacer = Pacer(requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute, now=clock())
        self._clock = clock
        self._in_flight = 0
        self._first: deque[_Waiting] = deque()
        self._again: deque[_Waiting] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._answered = False
        self._unreached_again = 0
        self._failed_calls_in_a_row = 0

    async def enter(self, load: Load, *, again: bool) -> Ticket:
        """Wait until a sending may go out; whoever waits holds no slot, and stops waiting at once when cancelled."""
        queue = self._again if again else self._first
        if not self._again and not queue:
            now = self._clock()
            if self._wait(load, again=again, now=now) <= 0:
                return self._let_out(load, again=again, now=now)
        waiting = _Waiting(load, asyncio.get_running_loop().create_future())
        queue.append(waiting)
        self._pump()
        try:
            return await waiting.let_out
        except asyncio.CancelledError:
            if not waiting.let_out.cancelled():
                self.drop(waiting.let_out.result())
            elif waiting in queue:
                queue.remove(waiting)
            raise

    def drop(self, ticket: Ticket) -> None:
        """Take a ticket back that was not used."""
        self._in_flight -= 1
        self.health.drop(ticket.start)
        self._pacer.correct(ticket.taken, Load(0.0, 0.0))
        self._pump()

    def leave(self, ticket: Ticket, result: Response | Failure | None) -> None:
        """A sending has ended; None: nobody knows how."""
        now = self._clock()
        self._in_flight -= 1
        if isinstance(result, Failure):
            self._pacer.hear(ticket.taken, result.headers, now=now)
            if result.kind is Kind.OVERLOADED and not result.began:
                self._pacer.correct(ticket.taken, Load(0.0, 0.0))
            if result.kind in AGAIN:
                self.health.failed(ticket.start, result, now=now)
            else:
                self.health.answered(ticket.start)
        elif result is not None:
            self._pacer.hear(ticket.taken, result.headers, now=now)
            if result.input_tokens is not None and result.output_tokens is not None:
                self._pacer.correct(ticket.taken, Load(result.input_tokens, result.output_tokens))
            self.health.answered(ticket.start)
        else:
            self.health.drop(ticket.start)
        self._pump()

    def gives_up(self, failure: Failure, *, failures: int, since: float, max_retries: int) -> bool:
        """Whether a call ends with this failure.

        Args:
            failure: Its latest.
            failures: How many it had.
            since: When its first was.
            max_retries: How many it may have and go on; an overload is waited for longer, given patience.
        """
        if failure.kind not in AGAIN or self._hopeless():
            return True
        if failure.kind is Kind.OVERLOADED and self.patience > 0 and max_retries > 0:
            return self._clock() - since >= self.patience
        if failure.kind is Kind.UNREACHED and not self._answered:
            # Where no server is, the calls share their tries: each by itself would take minutes to say so.
            self._unreached_again += failures > 1
            return failures > max_retries or self._unreached_again >= max_retries
        return failures > max_retries

    def _hopeless(self) -> bool:
        """Whether nothing but failures came for as long as the study has patience."""
        since = self.health.failing_since
        return since is not None and 0 < self.patience <= self._clock() - since

    def now(self) -> float:
        """Seconds of the endpoint's clock."""
        return self._clock()

    def answered(self) -> None:
        """A call got its response."""
        self._answered, self._failed_calls_in_a_row = True, 0

    def failed(self, failure: Failure, text: str, *, task_id: str) -> None:
        """A call got no response. Raises ProviderError where every further one would share its fate."""
        if failure.kind is Kind.FATAL or (failure.kind is Kind.UNREACHED and not self._answered):
            raise self._error(text, failure.remedy)
        if self._hopeless():
            found = f"nothing but failures for {self.patience:.0f} s, the last for task {task_id}: {text}"
            raise self._error(found, f"Wait until the server is better, or raise limits.patience. {failure.remedy}")
        if failure.kind is not Kind.THIS_PROMPT:
            self._failed_calls_in_a_row += 1
        if self._failed_calls_in_a_row >= _STOP_AFTER:
            found = f"{self._failed_calls_in_a_row} failed calls in a row, the last for task {task_id}: {text}"
            raise self._error(found, failure.remedy)

    def _error(self, found: str, remedy: str) -> ProviderError:
        return ProviderError(f"provider {self.address}", expected="an answer", found=found, remedy=remedy)

    def _wait(self, load: Load, *, again: bool, now: float) -> float:
        wait = self.health.wait(again=again, in_flight=self._in_flight, now=now)
        return wait if math.isinf(wait) else max(wait, self._pacer.wait(load, now=now))

    def _let_out(self, load: Load, *, again: bool, now: float) -> Ticket:
        self._in_flight += 1
        return Ticket(self.health.start(again=again, now=now), self._pacer.take(load))

    def _pump(self) -> None:
        """Let out whoever may go: those who were sent before first, so that what was begun ends."""
        while self._again or self._first:
            now, soonest = self._clock(), math.inf
            for queue, again in ((self._again, True), (self._first, False)):
                while queue and queue[0].let_out.done():
                    queue.popleft()  # cancelled, and its waiter has not had its turn yet
                if not queue:
                    continue
                wait = self._wait(queue[0].load, again=again, now=now)
                if wait <= 0:
                    waiting = queue.popleft()
                    waiting.let_out.set_result(self._let_out(waiting.load, again=again, now=now))
                    break
                soonest = min(soonest, wait)
            else:
                self._wake_in(soonest)
                return

    def _wake_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not math.isinf(seconds):
            self._timer = asyncio.get_running_loop().call_later(seconds, self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._pump()


def response_of(failure: Failure, text: str) -> Response:
    """What a call comes to that got no response."""
    response_class = ResponseClass.MALFORMED if failure.kind is Kind.MALFORMED else ResponseClass.INFRASTRUCTURE
    final = failure.kind in (Kind.REFUSED, Kind.THIS_PROMPT)
    return Response(text="", response_class=response_class, raw=failure.raw, error=text, final=final, headers=failure.headers)
