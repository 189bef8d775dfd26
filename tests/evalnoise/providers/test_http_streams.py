"""Event streams: the same answers as in one piece, and what becomes of streams that break, lie or say nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire.client import KEY, sendings
from wire.dialects import DIALECTS, AnthropicDialect, OpenAIDialect, ResponsesDialect, event
from wire.server import Reply, serve

from evalnoise.providers import chat, messages, responses
from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.sse import Assembled, events, payloads
from schemas.records import ResponseClass

STREAM = "text/event-stream"
MODULES = {"chat": chat, "responses": responses, "messages": messages}
CHAT, RESPONSES, MESSAGES = OpenAIDialect(), ResponsesDialect(), AnthropicDialect()


@given(
    dialect=st.sampled_from(DIALECTS),
    text=st.none() | st.text(max_size=40),
    reasoning=st.none() | st.text(min_size=1, max_size=20),
    finish=st.sampled_from(["stop", "length", "refusal"]),
)
def test_a_stream_comes_to_the_same_as_the_whole(dialect, text, reasoning, finish):
    module, body = MODULES[dialect.api], dialect.body(text, reasoning=reasoning, finish=finish, details=(4, 5))
    made = module.assemble(b"".join(dialect.events(body)).decode())
    assert made.ended
    assert made.error is None
    assert module.read(made.body) == module.read(body)


@given(dialect=st.sampled_from(DIALECTS), cut=st.floats(0, 1))
def test_a_stream_that_is_cut_anywhere_is_torn_or_whole_and_never_a_crash(dialect, cut):
    module, body = MODULES[dialect.api], dialect.body("the text of an answer", reasoning="hm")
    stream = b"".join(dialect.events(body)).decode()
    made = module.assemble(stream[: int(cut * len(stream))])
    if made.ended:
        assert module.read(made.body).text == "the text of an answer"


WORDS = st.sampled_from(["choices", "delta", "message", "content", "output", "type", "usage", "error", "index", "response", "item"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=4),
)


@given(st.sampled_from(list(MODULES.values())), st.text(max_size=200) | JSON.map(lambda value: f"data: {json.dumps(value)}\n\n"))
def test_nothing_that_a_server_streams_is_a_crash(module, stream):
    made = module.assemble(stream)
    module.read(made.body)


def test_a_torn_stream_is_tried_again_and_what_came_is_kept(dialect):
    whole = dialect.stream("a text that will be cut somewhere")
    sent = sum(map(len, whole.pieces)) // 2
    with serve(replace(whole, cut_after=sent)) as server:
        (failure,) = sendings(dialect, server, stream=True)
    assert failure.kind is Kind.TRANSIENT
    assert failure.text.startswith("the connection broke: ")
    assert failure.raw == b"".join(whole.pieces)[:sent].decode()


def test_a_stream_that_ends_too_early_without_a_word(dialect):
    some = dialect.stream("a text that will stop somewhere").pieces[:4]
    with serve(Reply(events=some, content_type=STREAM)) as server:
        (failure,) = sendings(dialect, server, stream=True)
    assert (failure.kind, failure.text) == (Kind.TRANSIENT, "a stream that ended before the answer did")
    assert failure.raw == b"".join(some).decode()


@pytest.mark.parametrize("wire", [CHAT, MESSAGES], ids=lambda wire: wire.api)
def test_an_answer_whose_end_came_is_whole_though_the_stream_breaks_after_it(wire):
    """What is paid is not paid again because a last event was lost."""
    whole = wire.stream("all of it")
    with serve(replace(whole, events=whole.events[:-1]), replace(whole, cut_after=sum(map(len, whole.pieces[:-1])))) as server:
        found = sendings(wire, server, stream=True, times=2)
    assert [(response.text, response.response_class) for response in found] == [("all of it", ResponseClass.COMPLETE)] * 2


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("overloaded_error", Kind.OVERLOADED), ("server_error", Kind.TRANSIENT), ("invalid_request_error", Kind.REFUSED)],
)
def test_an_error_in_the_middle(dialect, kind, expected):
    begun = dialect.stream("some text").pieces[:4]
    with serve(Reply(events=(*begun, dialect.error_event(kind)), content_type=STREAM)) as server:
        (failure,) = sendings(dialect, server, stream=True)
    assert failure.kind is expected
    assert failure.raw.startswith(begun[0].decode())


def test_a_response_that_failed_at_its_end():
    body = RESPONSES.body("some") | {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "x"}}
    with serve(Reply(events=tuple(RESPONSES.events(body)), content_type=STREAM)) as server:
        (failure,) = sendings(RESPONSES, server, stream=True)
    assert failure.kind is Kind.OVERLOADED


def test_a_response_whose_last_event_leaves_the_items_out():
    """Some servers end with a response without output: the items that were streamed are the output."""
    whole = RESPONSES.body("text")
    *before, _ = RESPONSES.events(whole)
    last = event({"type": "response.completed", "response": whole | {"output": []}})
    with serve(Reply(events=(*before, last), content_type=STREAM)) as server:
        (response,) = sendings(RESPONSES, server, stream=True)
    assert (response.text, response.response_class) == ("text", ResponseClass.COMPLETE)


def test_a_server_that_does_not_stream_is_read_all_the_same(dialect):
    with serve(dialect.answer("whole")) as server:
        (response,) = sendings(dialect, server, stream=True)
    assert response.text == "whole"


def test_a_stream_in_pieces_that_cut_letters_and_lines(dialect):
    whole = b"".join(dialect.stream("grüße \u2028 \U0001f600").pieces)
    crooked = tuple(whole[at : at + 3] for at in range(0, len(whole), 3))
    with serve(Reply(events=crooked, content_type=STREAM)) as server:
        (response,) = sendings(dialect, server, stream=True)
    assert response.text == "grüße \u2028 \U0001f600"


def test_lone_surrogates_survive_a_stream(dialect):
    """Hard input 1: half of a pair in one event; and the two halves in two events stay what they were sent as."""
    with serve(dialect.stream("\ud835 and")) as server:
        (response,) = sendings(dialect, server, stream=True)
    assert response.text == "\ud835 and"
    response.raw.encode()


def test_the_lines_of_a_stream():
    text = "\ufeff: comment\r\nevent: a\r\ndata: 1\r\n\r\ndata:2\rdata: 3\r\rid: 7\n\nevent: b\n\ndata: \u2028{\n\ndata: last"
    assert [(found.name, found.data) for found in events(text)] == [("a", "1"), ("", "2\n3"), ("", "\u2028{"), ("", "last")]
    assert list(payloads('data: {"type": "x"}\n\ndata: [1]\n\ndata: {"to', Assembled())) == [("x", {"type": "x"})]


def test_a_key_that_comes_in_pieces_is_kept_in_none(dialect):
    """No piece holds the key, so the record is the answer that they make, without it."""
    torn = dialect.stream(f"you sent {KEY} and more of it", reasoning=f"so {KEY}")
    size = sum(map(len, torn.pieces))
    with serve(torn, *(replace(torn, cut_after=size * share // 100) for share in range(20, 100, 8))) as server:
        whole, *rest = sendings(dialect, server, stream=True, times=11)
    assert all(isinstance(failure, Failure) for failure in rest)
    assert whole.text == "you sent [redacted] and more of it"
    assert whole.reasoning == "so [redacted]"
    assert "[redacted]" in whole.raw
    for kept in (whole, *rest):
        pieces = "".join(re.findall(r'"(?:content|delta|text|thinking|reasoning_content)": ?"([^"\\]*)', kept.raw))
        assert KEY[:9] not in pieces
        assert KEY[:9] not in kept.raw
        assert KEY[-12:] not in kept.raw


def test_a_body_that_breaks_off_inside_the_key(dialect):
    """All but the last character of a key is as good as the key."""
    whole = dialect.answer(f"you sent {KEY}")
    at = whole.body.index(json.dumps(KEY)[1:-1].encode())
    for length in range(8, len(KEY), 5):
        with serve(replace(whole, cut_after=at + length)) as server:
            (failure,) = sendings(dialect, server)
        assert failure.raw == f"{whole.body[:at].decode()}[redacted]"
