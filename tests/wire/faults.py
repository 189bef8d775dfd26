"""What a server can do wrong, by name: for each, the reply of a given protocol."""

from __future__ import annotations

from collections.abc import Callable

from wire.dialects import HTML, Dialect
from wire.server import Reply

Fault = Callable[[Dialect], Reply]


def _half(reply: Reply) -> Reply:
    return Reply(body=reply.body[: len(reply.body) // 2])


def _torn(dialect: Dialect) -> Reply:
    whole = dialect.stream("a text that will be cut in the middle of it")
    return dialect.stream("a text that will be cut in the middle of it", cut_after=sum(map(len, whole.pieces)) // 2)


PASSING: dict[str, Fault] = {
    "429": lambda d: d.error(429, "rate_limit_error"),
    "429 with retry-after": lambda d: d.error(429, "rate_limit_error", retry_after="0.05"),
    "429 with retry-after-ms": lambda d: d.error(429, "rate_limit_error", retry_after_ms="50"),
    "500": lambda d: d.error(500, "server_error"),
    "502 HTML": lambda _: Reply(502, HTML, content_type="text/html"),
    "503": lambda d: d.error(503, "service_unavailable"),
    "529": lambda d: d.error(529, "overloaded_error"),
    "reset in mid-body": lambda d: d.answer(cut_after=20),
    "reset before anything": lambda _: Reply(drop=True),
    "overload inside 200": lambda d: d.overloaded_200(),
    "overload in a stream": lambda d: Reply(events=(d.error_event("overloaded_error"),), content_type="text/event-stream"),
    "torn stream": _torn,
}
"""Faults of transport and load: sent again, and an infrastructure response when they stay."""

MALFORMED: dict[str, Fault] = {
    "truncated JSON": lambda d: _half(d.answer()),
    "HTML": lambda _: Reply(body=HTML, content_type="text/html"),
    "empty choices": lambda d: d.hollow(),
    "a list": lambda _: Reply(body=b"[1]"),
    "nothing": lambda _: Reply(body=b""),
    "nested too deep": lambda _: Reply(body=b"[" * 200_000),
    "a stream of nothing": lambda _: Reply(events=(b": hello\n\n",), content_type="text/event-stream"),
}
"""Bodies that are no answers: sent again, and a malformed response when they stay."""

SLOW: dict[str, Fault] = {
    "slow first byte": lambda d: d.answer(delay=0.3),
    "slow body": lambda d: d.answer(late=0.3),
}
"""Answers that come late."""

NEVER: dict[str, Fault] = {
    "never-ending body": lambda _: Reply(endless=True),
    "never-ending stream": lambda _: Reply(events=(b": hello\n\n",), content_type="text/event-stream", endless=True),
    "no first byte": lambda _: Reply(delay=30.0),
}
"""What only a limit of time ends."""

ODD: dict[str, Callable[[Dialect, str], Reply]] = {
    "refusal": lambda d, _: d.answer("I will not do that", finish="refusal", answer_id="refused"),
    "wrong served model": lambda d, text: d.answer(text, model="another-model"),
    "duplicate id": lambda d, text: d.answer(text, answer_id="the-same"),
    "stored answer": lambda d, text: d.answer(text, headers={"x-cache": "HIT"}),
}
"""Answers that came whole, and that numbers must not be made of without a word."""
