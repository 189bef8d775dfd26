"""Bodies that a broken or hostile server sends: never a crash, and never half an answer that passes for a whole one."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalnoise.providers import chat, messages, responses
from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.http import Exchange, Reader, answer_in, pool
from evalnoise.providers.keys import Secret
from evalnoise.providers.retry_after import retry_after
from evalnoise.providers.sse import Assembled, payloads
from evalnoise.sending.prices import Price
from schemas.provider import OpenAIProvider
from schemas.records import Response, ResponseClass

_SECRET = Secret("sk-not-a-key-of-anyone-0123456789")
_READERS = {
    "chat": Reader(chat.read, chat.assemble),
    "responses": Reader(responses.read, responses.assemble),
    "messages": Reader(messages.read, messages.assemble),
}
_LOST = Failure(Kind.TRANSIENT, "the connection broke")


def came(body: object, *, protocol: str = "chat", lost: Failure | None = None) -> Response | Failure:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answer_in(Exchange(200, {}, bytearray(data), lost), _READERS[protocol], {}, secret=_SECRET, env="KEY")


def stream(*pieces: object) -> bytes:
    texts = (piece if isinstance(piece, bytes) else json.dumps(piece).encode() for piece in pieces)
    return b"".join(b"data: " + text + b"\n\n" for text in texts)


def chunk(text: object, finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def whole(finish: str | None = "stop", **more: object) -> dict[str, object]:
    return {"choices": [{"message": {"content": "def f(): ..."}, "finish_reason": finish}], **more}


_DELTA = b'{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "%s"}}'
_STOPPED = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
_TEXT = b'{"type": "response.output_text.delta", "delta": "%s"}'


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("chat", stream(chunk("a"), b'{"choices": [{"delta": {"content": "\xff"}}]}', chunk("b", "stop"), b"[DONE]")),
        ("chat", stream(chunk("a"), b'{"choices": [{"delta"', chunk("b", "stop"))),
        ("messages", stream(_DELTA % b"a", _DELTA % b"\xc3", _DELTA % b"b", _STOPPED, {"type": "message_stop"})),
        ("responses", stream(_TEXT % b"a", _TEXT % b"\xc3", {"type": "response.completed", "response": {"status": "completed"}})),
    ],
)
def test_a_stream_that_lacks_a_piece_is_no_answer(protocol, body):
    found = came(body, protocol=protocol)
    assert isinstance(found, Failure)
    assert (found.kind, found.began) == (Kind.MALFORMED, True)


def test_what_is_no_object_and_what_was_torn_off_after_the_end_harm_no_stream():
    found = came(stream(b"ping", chunk("a"), b"1", chunk("b", "stop"), b'{"usage": {"prompt'))
    assert isinstance(found, Response)
    assert (found.text, found.response_class) == ("ab", ResponseClass.COMPLETE)


@pytest.mark.parametrize("finish", ["abort", "insufficient_system_resource", "cancelled", "ERROR"])
def test_an_answer_that_the_server_broke_off_is_none(finish):
    found = came(whole(finish))
    assert isinstance(found, Failure)
    assert found.kind is Kind.TRANSIENT


@pytest.mark.parametrize(
    ("finish", "expected"),
    [("MAX_TOKENS", ResponseClass.TRUNCATED), ("SAFETY", ResponseClass.FILTERED), ("STOP", ResponseClass.COMPLETE)],
)
def test_reasons_for_the_end_in_capitals(finish, expected):
    found = came(whole(finish))
    assert isinstance(found, Response)
    assert found.response_class is expected


def test_a_mark_of_byte_order_is_no_damage():
    assert isinstance(came(b"\xef\xbb\xbf" + json.dumps(whole()).encode()), Response)


def test_a_whole_answer_counts_although_the_connection_broke_after_it():
    found = came(whole(), lost=_LOST)
    assert isinstance(found, Response)
    assert found.text == "def f(): ..."
    for body in (json.dumps(whole()).encode()[:-1], b"{}", b""):
        torn = came(body, lost=_LOST)
        assert isinstance(torn, Failure)
        assert torn.text == _LOST.text


@pytest.mark.parametrize(
    ("protocol", "body", "began"),
    [
        ("chat", {"error": {"type": "overloaded_error"}}, False),
        ("chat", stream({"error": {"code": 429}}), False),
        ("chat", stream(chunk("a"), {"error": {"code": 429}}), True),
        ("messages", stream(_DELTA % b"a", {"type": "error", "error": {"type": "overloaded_error"}}), True),
        ("responses", stream(_TEXT % b"a", {"type": "error", "error": {"code": "rate_limit_exceeded"}}), True),
    ],
)
def test_an_overload_after_the_answer_began_may_be_billed(protocol, body, began):
    found = came(body, protocol=protocol)
    assert isinstance(found, Failure)
    assert (found.kind, found.began) == (Kind.OVERLOADED, began)


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        (
            {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 41, "completion_tokens_details": {"reasoning_tokens": 4}},
            9,
        ),
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            103,
        ),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}, None),
        ({"prompt_tokens": 32, "completion_tokens": 9}, 9),
        ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": -1}, 9),
    ],
)
def test_reasoning_that_is_counted_apart_is_output(usage, output):
    found = came(whole(usage=usage))
    assert isinstance(found, Response)
    assert found.output_tokens == output
    assert Price(0.0, 1e6).cost(found) == output


def test_a_text_before_a_list_of_parts_is_kept():
    found = came(stream(chunk("a"), chunk([{"type": "text", "text": "b"}]), chunk("c", "stop")))
    assert isinstance(found, Response)
    assert found.text == "abc"


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("chat", stream(chunk("a\ud83d"), chunk("\ude00b\ud800", "stop"))),
        ("messages", stream(_DELTA % b"a\\ud83d", _DELTA % b"\\ude00b\\ud800", _STOPPED)),
        (
            "responses",
            stream(_TEXT % b"a\\ud83d", _TEXT % b"\\ude00b\\ud800", {"type": "response.completed", "response": {"id": "1"}}),
        ),
    ],
)
def test_a_character_that_was_cut_in_two_is_one(protocol, body):
    found = came(body, protocol=protocol)
    assert isinstance(found, Response)
    assert found.text == "a\U0001f600b\ud800"


@pytest.mark.parametrize(
    ("protocol", "piece"),
    [("chat", json.dumps(chunk("abcd")).encode()), ("messages", _DELTA % b"abcd"), ("responses", _TEXT % b"abcd")],
)
def test_a_stream_of_many_pieces_takes_time_in_proportion(protocol, piece):
    def seconds(count: int) -> float:
        text = stream(*[piece] * count).decode()
        start = time.perf_counter()
        _READERS[protocol].assemble(text)
        return time.perf_counter() - start

    assert seconds(160_000) < 20 * seconds(20_000)


@pytest.mark.parametrize("date", ["Mon, 01 Jan 2024 00:00:00 +99999999999999", "Mon, 01 Jan 99999 00:00:00 GMT", "nan", "-1", "²"])
def test_a_wait_that_cannot_be_meant_is_none(date):
    assert retry_after({"retry-after": date}) is None


_NAMES = st.sampled_from([
    "choices", "message", "content", "delta", "finish_reason", "refusal", "error", "code", "type", "status", "usage", "text",
    "index", "prompt_tokens", "completion_tokens", "total_tokens", "output", "response", "item", "stop_reason", "content_block",
    "reasoning", "reasoning_details", "thinking", "stop_details", "incomplete_details",
    "input_tokens", "cache_read_input_tokens", "event",
])  # fmt: skip
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["²", "error", "\ud800", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)
_KINDS = st.sampled_from([
    "message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "error", "response.created",
    "response.completed", "response.output_item.done", "response.output_text.delta", "response.refusal.delta", "text_delta",
])  # fmt: skip
_OBJECTS = st.dictionaries(_NAMES, _VALUES | _KINDS, max_size=5)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(_READERS)), st.lists(_OBJECTS, min_size=1, max_size=4), st.binary(max_size=6), st.booleans())
@example("chat", [{"error": {"code": "²²²"}}], b"", False)
def test_no_body_is_a_crash(protocol, objects, rubbish, lost):
    for body in (json.dumps(objects[0]).encode(), stream(*objects, b"[DONE]"), stream(*objects) + rubbish, rubbish):
        assert isinstance(came(body, protocol=protocol, lost=_LOST if lost else None), Response | Failure)


@pytest.mark.parametrize("depth", [10, 900, 930, 960, 990, 5000, 200_000])
@pytest.mark.parametrize(
    "outer", [b"%s", b'{"error": %s}', b'{"error": {"code": %s}}', b'{"choices": [{"message": {"content": %s}}]}']
)
def test_no_depth_is_a_crash(outer, depth):
    for body in (outer % (b"[" * depth + b"]" * depth), stream(outer % (b'{"a":' * depth + b"1" + b"}" * depth), b"[DONE]")):
        for protocol in _READERS:
            assert isinstance(came(body, protocol=protocol), Response | Failure)


def test_an_error_that_never_ends_is_cut():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 Oh\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 100_000)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async def fetch() -> int:
        import httpx2

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client, _ = pool(httpx2.AsyncClient, OpenAIProvider(name="openai"), 1)
        async with server, client, asyncio.timeout(10):
            return len((await client.get(f"http://127.0.0.1:{port}/")).content)

    assert asyncio.run(fetch()) == 65_536


def test_the_last_event_is_torn_and_not_damaged():
    made = Assembled()
    assert list(payloads('data: {"a": 1}\n\ndata: {"b"', made)) == [("", {"a": 1})]
    assert made.damaged == ""
