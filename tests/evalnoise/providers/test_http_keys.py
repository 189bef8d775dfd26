"""Keys: from the environment alone, and never shown, whatever a server says."""

from __future__ import annotations

import json
import traceback
from dataclasses import asdict

import pytest
from wire.client import CONTEXT, KEY, call, spec_for
from wire.server import Reply, serve

from evalnoise.providers.make import make_provider
from schemas.errors import ProviderError


@pytest.mark.parametrize("value", [None, "", "  ", "kéy-of-some-length", "key\nwith-a-line-break"])
def test_a_key_that_is_absent_or_unusable_is_named_by_its_variable(dialect, monkeypatch, value):
    monkeypatch.delenv("TEST_KEY") if value is None else monkeypatch.setenv("TEST_KEY", value)
    with pytest.raises(ProviderError) as caught:
        make_provider(spec_for(dialect, "http://127.0.0.1:9"), model="m", max_tokens=5, retry="none")
    assert "TEST_KEY" in str(caught.value)
    assert not value or not value.strip() or value not in str(caught.value)


def test_no_other_key_is_sent(dialect, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, f"another-secret-{name}")
    with serve(dialect.answer()) as server:
        call(dialect, server)
    sent = json.dumps(server.received[0].headers)
    assert "another-secret" not in sent
    assert json.dumps(KEY)[1:-1] in sent


def forms_of_the_key() -> list[str]:
    return [KEY, json.dumps(KEY)[1:-1], "sk-planted"]


def test_planted_keys_never_show(dialect):
    echo = f"you sent {KEY}"
    edge = " " * 248 + echo  # the key lies across the place where an error text is cut
    replies = [
        Reply(body=edge.encode()),
        Reply(500, edge.encode(), content_type="text/plain"),
        Reply(body=json.dumps({"error": edge}).encode()),
        dialect.answer(echo, model=echo),
        dialect.answer("", finish=echo),
        dialect.error(400, "invalid", message=echo),
        dialect.error(400, "content_filter", message=echo),
        Reply(body=echo.encode()),
        Reply(500, echo.encode(), content_type="text/plain"),
        Reply(body=json.dumps({"error": echo}).encode()),
    ]
    shown: list[str] = []
    for reply in replies:
        with serve(reply) as server:
            (response,) = call(dialect, server, max_retries=0)
        shown += [repr(response), json.dumps(asdict(response), ensure_ascii=False), *map(str, asdict(response).values())]
    for status in (401, 403, 429):
        reply = dialect.error(status, "insufficient_quota", message=echo)
        with serve(reply) as server, pytest.raises(ProviderError) as caught:
            call(dialect, server, max_retries=0)
        error = caught.value
        assert error.__cause__ is None
        assert error.__context__ is None  # the SDK's error holds the request with its headers
        shown += [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    provider = make_provider(spec_for(dialect, "http://127.0.0.1:9"), model="m", max_tokens=5, retry="none")
    shown += [repr(provider), str(provider), repr(vars(provider)), repr(provider.request("p", CONTEXT))]
    assert any("[redacted]" in text for text in shown)
    for text in shown:
        for form in forms_of_the_key():
            assert form not in text


def test_a_dummy_key_does_not_alter_answers(dialect, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "none")
    with serve(dialect.answer("return none"), dialect.error(401, "none")) as server:
        (response,) = call(dialect, server)
        assert response.text == "return none"
        with pytest.raises(ProviderError, match=r"\[redacted\]"):
            call(dialect, server)
