"""What class an answer is of, for every sign of every protocol, in one piece and streamed."""

from __future__ import annotations

import json

import pytest
from wire.client import call, sendings
from wire.dialects import AnthropicDialect, OpenAIDialect, ResponsesDialect, event
from wire.server import Reply, serve

from evalnoise.providers.base import Kind
from schemas.records import ResponseClass

COMPLETE, TRUNCATED, REFUSAL = ResponseClass.COMPLETE, ResponseClass.TRUNCATED, ResponseClass.REFUSAL
FILTERED, EMPTY = ResponseClass.FILTERED, ResponseClass.EMPTY
CHAT, RESPONSES, MESSAGES = OpenAIDialect(), ResponsesDialect(), AnthropicDialect()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("finish", "text", "expected"),
    [
        ("stop", "x", COMPLETE),
        ("stop", "", EMPTY),
        ("stop", None, EMPTY),
        ("stop", " \n", EMPTY),
        ("length", "def f", TRUNCATED),
        ("length", None, TRUNCATED),
        ("refusal", "I will not", REFUSAL),
        # Hard input 12: thinking in the text, ended, not ended, and with nothing behind it.
        ("stop", "<think>def add(a): pass</think>x", COMPLETE),
        ("stop", "<think>def add(a): pass", TRUNCATED),
        ("stop", "\n <THINKING>hm", TRUNCATED),
        ("stop", "Sure.\n<think>But wait", TRUNCATED),
        ("stop", "<think>hm</think>\n", EMPTY),
        ("length", "<think>hm</think>\n", TRUNCATED),
        ("stop", "T = '''\n<think>\n'''\n", COMPLETE),
        ("stop", "I do not write `<think>`.", COMPLETE),
    ],
)
def test_classes_that_every_protocol_has(dialect, finish, text, expected, stream):
    make = dialect.stream if stream else dialect.answer
    with serve(make(text, finish=finish)) as server:
        (response,) = call(dialect, server, stream=stream)
    assert response.response_class is expected
    shown = {"refusal": "" if dialect.name == "openai" else text}.get(finish, text or "")
    assert response.text == shown
    assert len(server.received) == 1  # none of them is sent again


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_thinking_that_ate_the_budget(dialect, stream):
    """Hard input 11: no content, all of the reasoning, stopped by the limit: truncated, billed, not sent again."""
    make = dialect.stream if stream else dialect.answer
    with serve(make(None, finish="length", reasoning="let me think about it")) as server:
        (response,) = call(dialect, server, stream=stream)
    assert (response.text, response.response_class, response.reasoning) == ("", TRUNCATED, "let me think about it")
    assert (response.output_tokens, len(server.received)) == (7, 1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.api)
def test_a_filter_in_the_middle_of_an_answer(wire, stream):
    """Hard input 13: what came before the filter is kept, the class says that it is not the model's answer."""
    with serve((wire.stream if stream else wire.answer)("the first ste", finish="filtered")) as server:
        (response,) = call(wire, server, stream=stream)
    assert (response.response_class, response.text, response.finish_reason) == (FILTERED, "the first ste", "content_filter")
    assert len(server.received) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.api)
def test_a_refusal_in_a_field_of_its_own(wire, stream):
    """Hard input 13: HTTP 200, no content, `refusal` filled."""
    with serve((wire.stream if stream else wire.answer)(None, refusal="I cannot help")) as server:
        (response,) = call(wire, server, stream=stream)
    assert (response.response_class, response.refusal, response.text) == (REFUSAL, "I cannot help", "")
    assert len(server.received) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_refusal_as_a_reason_for_stopping(stream):
    """Hard input 13: HTTP 200, stop reason `refusal`, content empty or begun."""
    make = MESSAGES.stream if stream else MESSAGES.answer
    why = {"stop_details": {"type": "refusal", "category": "cyber", "explanation": "not this"}}
    begun, empty, bare = make("Here is", finish="refusal"), make(None, finish="refusal", more=why), make(None, finish="refusal")
    with serve(begun, empty, bare) as server:
        found = call(MESSAGES, server, stream=stream, calls=3)
    assert [response.response_class for response in found] == [REFUSAL] * 3
    assert [response.refusal for response in found] == ["Here is", "not this", ""]


@pytest.mark.parametrize("status", [400, 403])
@pytest.mark.parametrize(
    "said",
    ["content_filter", "ResponsibleAIPolicyViolation", "Output blocked by content filtering policy", "your input was flagged"],
)
def test_a_filter_before_the_model(dialect, status, said):
    with serve(dialect.error(status, "invalid_request_error", message=said)) as server:
        (response,) = call(dialect, server)
    assert (response.response_class, response.finish_reason) == (FILTERED, f"http-{status}")
    assert (response.input_tokens, len(server.received)) == (None, 1)


def test_a_filter_that_is_an_error_inside_a_stream(dialect):
    begun = dialect.stream("a text that is stopped").pieces[:4]
    reply = Reply(events=(*begun, dialect.error_event("content_filter", "flagged")), content_type="text/event-stream")
    with serve(reply) as server:
        (response,) = call(dialect, server, stream=True)
    assert (response.response_class, response.finish_reason, len(server.received)) == (FILTERED, "error", 1)


def test_words_about_filters_in_an_answer_are_no_filter():
    """Azure adds the results of its filters to answers that passed them."""
    more = {"prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": False}}}]}
    broken = CHAT.stream("x", more=more).pieces[:2]
    torn = Reply(events=(*broken, CHAT.error_event("server_error")), content_type="text/event-stream")
    with serve(CHAT.answer("about content_filter", more=more), torn) as server:
        answer, failure = sendings(CHAT, server, times=2)
    assert answer.response_class is COMPLETE
    assert failure.kind is Kind.TRANSIENT


@pytest.mark.parametrize("finish", ["model_context_window_exceeded", "max_tokens", "pause_turn"])
def test_other_ways_not_to_finish(finish):
    with serve(MESSAGES.answer("x", finish=finish)) as server:
        (response,) = call(MESSAGES, server)
    assert (response.response_class, response.finish_reason) == (TRUNCATED, finish)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, (TRUNCATED, "steered")),
        ({"status": "incomplete", "incomplete_details": None}, (TRUNCATED, "incomplete")),
        ({"status": None}, (COMPLETE, "")),
    ],
)
def test_states_of_a_response(more, expected):
    with serve(RESPONSES.answer("x", more=more)) as server:
        (response,) = sendings(RESPONSES, server)
    assert (response.response_class, response.finish_reason) == expected


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_a_response_that_is_not_there_yet(status):
    with serve(RESPONSES.answer("x", more={"status": status})) as server:
        (failure,) = sendings(RESPONSES, server)
    assert (failure.kind, failure.text) == (Kind.TRANSIENT, f"an answer that is not finished: {status}")


def test_thinking_in_each_place_where_servers_put_it():
    """Kept apart from the text, and never part of it."""
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}, {"type": "text", "text": "x"}]
    places = [
        {"reasoning_content": "a"},
        {"reasoning": "a"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "a"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "a"}]},
        {"content": content},
    ]
    for message in places:
        with serve(CHAT.answer("x", message=message)) as server:
            (response,) = sendings(CHAT, server)
        assert (response.text, response.reasoning) == ("x", "a")
    blocks = [{"type": "thinking", "thinking": "a", "signature": "s"}, {"type": "redacted_thinking", "data": "zz"}]
    with serve(MESSAGES.answer(content=[*blocks, {"type": "text", "text": "x"}, {"type": "text", "text": "y"}])) as server:
        (response,) = sendings(MESSAGES, server)
    assert (response.text, response.reasoning) == ("xy", "a")
    own = {
        "type": "reasoning",
        "content": [{"type": "reasoning_text", "text": "a"}],
        "summary": [{"type": "summary_text", "text": "s"}],
    }
    body = RESPONSES.body("x")
    body["output"].insert(0, own)
    with serve(Reply(body=json.dumps(body).encode())) as server:
        (response,) = sendings(RESPONSES, server)
    assert (response.text, response.reasoning) == ("x", "a")


def test_the_first_choice_is_the_answer():
    chunk = {"id": "c", "choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    with serve(Reply(events=(event(chunk), event(end), event("[DONE]")), content_type="text/event-stream")) as server:
        (response,) = sendings(CHAT, server)
    assert response.text == "yes"
