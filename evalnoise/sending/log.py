"""What was sent for one call and what came back, as the shard's journal holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime
from typing import Any, Final

from evalnoise.providers.base import Failure, Kind, Request
from evalnoise.sending.prices import max_output
from evalnoise.store.journal import Journal
from schemas.errors import StoreError
from schemas.records import Response, ResponseClass


@dataclass(frozen=True, slots=True)
class Sending:
    """A request that was sent once."""

    number: int
    """Which sending of its call, from 0, over all runs."""
    sent_at: datetime
    answered_at: datetime | None = None
    """None: the run ended before it was answered; it may have been billed."""
    result: Response | Failure | None = None
    cost_usd: float | None = None
    """US dollars; None: unknown."""
    prices: str = ""
    """Where the prices came from; empty: none is known."""


class CallLog:
    """The sendings of one call in a journal."""

    def __init__(self, journal: Journal, call: str, request: Request, *, keep_request: bool = False) -> None:
        """Read what earlier runs sent.

        Args:
            journal: The journal.
            call: The call's name in it.
            request: What is asked.
            keep_request: Whether the request is written down with each sending, because a later run may not make it again.

        Raises:
            StoreError: They sent another request, or the journal has an answer and not what it answers.
        """
        self._journal = journal
        self._call = call
        self._key = request.key()
        self._kept = {"request": request.canonical().decode()} if keep_request else {}
        self.size = len(request.canonical())
        """Bytes of the request: no tokenizer makes more tokens of it."""
        self.max_output = max_output(request.body)
        """Output tokens that it allows; None: it names no limit."""
        self.sendings: list[Sending] = []
        """In order of their numbers, those of earlier runs first."""
        while (sent := journal.sent_record(self._name(len(self.sendings)))) is not None:
            self._check(sent)
            self.sendings.append(self._read(len(self.sendings), sent))
        if journal.answered_record(self._name(len(self.sendings))) is not None:
            raise self._lacks_a_line()

    @property
    def response(self) -> Response | None:
        """The response that an earlier sending got, if one did."""
        last = self.sendings[-1].result if self.sendings else None
        return last if isinstance(last, Response) else None

    async def sent(self, at: datetime) -> int:
        """Note that the request is about to be sent; its number, once that is on disk. Raises StoreError: do not send it."""
        number = len(self.sendings)
        # With the size, a later run knows what a lost answer can have cost at most.
        record = {"request_key": self._key, "sent_at": at.isoformat(), "size": self.size, "max_output": self.max_output}
        await self._journal.sent(self._name(number), record | self._kept)
        self.sendings.append(Sending(number, at))
        return number

    async def answered(
        self, number: int, result: Response | Failure, *, at: datetime, cost_usd: float | None, prices: str = ""
    ) -> None:
        """Note what came back; returns when it is on disk, and only then does it count. Raises StoreError."""
        kind = "response" if isinstance(result, Response) else "failure"
        record = {"answered_at": at.isoformat(), "cost_usd": cost_usd, "prices": prices, kind: _fields(result)}
        await self._journal.answered(self._name(number), record)
        self.sendings[number] = replace(self.sendings[number], answered_at=at, result=result, cost_usd=cost_usd, prices=prices)

    def _name(self, number: int) -> str:
        return f"{self._call}/{number}"

    def _read(self, number: int, sent: Mapping[str, Any]) -> Sending:
        at = datetime.fromisoformat(sent["sent_at"])
        record = self._journal.answered_record(self._name(number))
        if record is None:
            return Sending(number, at)
        answered_at = datetime.fromisoformat(record["answered_at"])
        return Sending(number, at, answered_at, _result(record), record["cost_usd"], record["prices"])

    def _lacks_a_line(self) -> StoreError:
        return StoreError(
            f"{self._journal.path}, call {self._call}",
            expected="a note of each sending before its answer",
            found=f"an answer to sending {len(self.sendings)}, and no note of it",
            remedy="A line of the journal is missing. Restore it from a copy, or move it aside if you can do without its answers.",
        )

    def _check(self, sent: Mapping[str, Any]) -> None:
        if sent["request_key"] != self._key:
            raise StoreError(
                f"{self._journal.path}, call {self._call}",
                expected=f"an answer to request {self._key[:12]}, which this protocol makes",
                found=f"an answer to {sent['request_key'][:12]}",
                remedy="The journal belongs to another plan; move it aside if you can do without its answers.",
            )


def _defaults(kind: type[Response | Failure]) -> tuple[tuple[str, Any], ...]:
    """The names of a record's fields, and what each holds unless it is said."""
    return tuple((f.name, {} if f.default_factory is not MISSING else f.default) for f in fields(kind))


_FIELDS: Final = {Response: _defaults(Response), Failure: _defaults(Failure)}


def _fields(result: Response | Failure) -> dict[str, Any]:
    """What is not as it would be anyway. The values are not copied: nothing changes them."""
    return {name: value for name, default in _FIELDS[type(result)] if (value := getattr(result, name)) != default}


def _result(record: Mapping[str, Any]) -> Response | Failure:
    if "response" in record:
        fields = record["response"]
        return Response(**fields | {"response_class": ResponseClass(fields["response_class"])})
    fields = record["failure"]
    return Failure(**fields | {"kind": Kind(fields["kind"])})
