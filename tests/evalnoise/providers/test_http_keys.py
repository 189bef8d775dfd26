"""Keys: from the environment alone, and never shown, whatever a server says."""

from __future__ import annotations

import base64
import json
import string
import traceback
from dataclasses import asdict
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wire.client import CONTEXT, KEY, call, spec_for
from wire.dialects import AnthropicDialect
from wire.server import Reply, serve

from evalnoise.providers.keys import Secret
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


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def in_json_with_slashes(text: str) -> str:
    return in_json(text).replace("/", "\\/")


def in_json_for_a_page(text: str) -> str:
    return in_json(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("'", "\\u0027")


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


ENCODINGS = {
    "plain": str,
    "url": lambda text: quote(text, safe=""),
    "url, lower case": lambda text: "".join(c if c.isalnum() or c in "_.-~" else f"%{ord(c):02x}" for c in text),
    "url of a path": quote,
    "url of a form": quote_plus,
    "url of JavaScript": lambda text: quote(text, safe="!*'()"),
    "base64": in_base64,
    "base64 without padding": lambda text: in_base64(text).rstrip("="),
    "base64 for a URL": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 in a URL": lambda text: quote(in_base64(text), safe=""),
}
QUOTINGS = [in_json, in_json_with_slashes, in_json_for_a_page, lambda text: repr(text)[1:-1]]


@given(
    key=st.text(string.ascii_letters + string.digits + string.punctuation + " ", min_size=12, max_size=80),
    encoding=st.sampled_from(sorted(ENCODINGS)),
    levels=st.lists(st.sampled_from(QUOTINGS), max_size=3),
)
@example(key=KEY, encoding="plain", levels=[in_json, in_json])
@example(key=KEY, encoding="plain", levels=[in_json_with_slashes] * 3)
@example(key=KEY, encoding="plain", levels=[in_json_with_slashes, in_json, in_json_with_slashes])
@example(key="\\" * 12, encoding="plain", levels=[in_json] * 3)
@example(key='"' * 12, encoding="plain", levels=[in_json] * 3)
@example(key="/" * 12, encoding="url", levels=[])
@example(key="sk-?>?>?>?>?>", encoding="base64", levels=[in_json_with_slashes])
@example(key="sk-<script>&'x'", encoding="plain", levels=[in_json_for_a_page, in_json])
def test_no_encoding_of_a_key_survives(key, encoding, levels):
    shown = ENCODINGS[encoding](key)
    for level in levels:
        shown = level(shown)
    redacted = Secret(key).redact(f"you sent {shown}, and")
    assert shown not in redacted
    assert redacted.startswith("you sent ")
    assert redacted.endswith(", and")


def test_headers_that_are_echoed_as_json_inside_json_inside_json(dialect):
    headers = json.dumps({"authorization": f"Bearer {KEY}", "path": quote(KEY, safe="")})
    for echo in (headers, json.dumps({"upstream": headers})):  # the body is the outermost level
        with serve(dialect.error(400, "invalid", message=echo)) as server:
            (response,) = call(dialect, server, max_retries=0)
        for text in (response.error, response.raw):
            assert text.count("[redacted]") == 2
            assert "sk-planted" not in text
            assert "0123456789abcdef" not in text


def test_ordinary_keys_have_few_forms_and_dummies_no_encodings():
    assert Secret("sk-proj_0123456789")._forms == ["c2stcHJval8wMTIzNDU2Nzg5", "sk-proj_0123456789"]
    assert Secret("none").redact("none bm9uZQ", short=True) == "[redacted] bm9uZQ"


def test_headers_of_the_environment_are_refused(monkeypatch):
    """The SDK would add them to every request, a beta or another price among them, and no request key would say so."""
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-beta: something-new")
    with pytest.raises(ProviderError, match="ANTHROPIC_CUSTOM_HEADERS") as caught:
        make_provider(spec_for(AnthropicDialect(), "http://127.0.0.1:9"), model="m", max_tokens=5, retry="none")
    assert "something-new" not in str(caught.value)
