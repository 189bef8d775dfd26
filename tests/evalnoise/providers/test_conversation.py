"""Requests that hold a conversation: what each provider sends for a second attempt with feedback, under a key of its own."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from evalnoise.providers.base import CallContext, Conversation, messages
from evalnoise.providers.make import request_maker
from schemas.provider import ProviderSpec
from schemas.records import Task, TaskKind

TASK = Task(id="t", kind=TaskKind.FUNCTION, prompt="p", reference="r", entry_point="f")
CONTEXT = CallContext(TASK, "a", "live", 0, 1)
TOLD = Conversation("Write f.", "def f(): ...", "It failed.")
THREE = [
    {"role": "user", "content": "Write f."},
    {"role": "assistant", "content": "def f(): ..."},
    {"role": "user", "content": "It failed."},
]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": "openai"}, "messages"),
        ({"name": "openai", "api": "responses"}, "input"),
        ({"name": "anthropic"}, "messages"),
        ({"name": "oracle"}, "messages"),
    ],
)
def test_a_second_attempt_with_feedback_is_another_request(spec: dict[str, Any], field: str) -> None:
    make = request_maker(TypeAdapter(ProviderSpec).validate_python(spec), model="m", max_tokens=9)
    first, second = make("Write f.", CONTEXT), make(TOLD, CONTEXT)
    assert second.body[field] == THREE
    assert {**first.body, field: ()} == {**second.body, field: ()}
    assert first.key() != second.key()
    assert make(Conversation("Write f.", "def f(): ...", "It still failed."), CONTEXT).key() != second.key()


@pytest.mark.parametrize("answer", ["", " \n\t"])
def test_an_answer_without_text_is_left_out(answer: str) -> None:
    assert messages(Conversation("Write f.", answer, "It was empty.")) == [{"role": "user", "content": "Write f.\n\nIt was empty."}]


def test_lone_surrogates_of_an_answer_can_be_sent() -> None:
    """Hard input 1: half of a pair comes back in the conversation."""
    assert messages(Conversation("p", "x\ud835", "f\udc00"))[1:] == [
        {"role": "assistant", "content": "x\\ud835"},
        {"role": "user", "content": "f\\udc00"},
    ]
