"""Checks in SQL about calls and answers: for each one a row that must be found and one that must not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest

from schemas.checks import check_queries
from schemas.responses import MaxShare
from tests.support.check_tables import empty_tables, found, put, sentence

NOON = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
LONG = "x" * 80


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    return empty_tables()


def answers(connection: duckdb.DuckDBPyConnection, **classes: int) -> None:
    for name, count in classes.items():
        for _ in range(count):
            put(connection, "generations", response_class=name, candidate_sha256="x")


def request(**body: Any) -> str:
    return json.dumps({"body": body, "model": "m", "provider": "openai"}, separators=(",", ":"))


def over_and_under(tables: duckdb.DuckDBPyConnection, check: str, *, most: float) -> None:
    """Up to the largest share the check warns, above it blocks; a request that was not taken is no answer."""
    assert found(tables, check) == []
    under = int(most * 10)
    answers(tables, **{check: under}, complete=10 - under, infrastructure=30)
    assert found(tables, check) == [("a", "live", "warning", False, float(under))]
    answers(tables, **{check: 1})
    assert found(tables, check) == [("a", "live", "error", True, under + 1.0)]
    assert f"{under + 1} of 11 answers" in sentence(tables, check)


def test_truncated(tables) -> None:
    over_and_under(tables, "truncated", most=0.2)


def test_truncated_answers_of_a_judge_block_as_well(tables) -> None:
    for number in range(10):
        put(tables, "verdicts", condition="j", repeat=0, response_class="truncated" if number < 8 else "complete")
    assert found(tables, "truncated") == [("a", "j", "error", True, 8.0)]


def test_refusal(tables) -> None:
    over_and_under(tables, "refusal", most=0.5)


def test_filtered(tables) -> None:
    over_and_under(tables, "filtered", most=0.5)


def test_empty(tables) -> None:
    over_and_under(tables, "empty", most=0.5)


def test_malformed(tables) -> None:
    over_and_under(tables, "malformed", most=0.2)


@pytest.mark.parametrize("name", MaxShare.model_fields)
def test_the_share_that_blocks_is_the_one_that_stops_a_run(name) -> None:
    assert f"n > {MaxShare.model_fields[name].default:g} * n_answers AS blocks" in check_queries()[name]


def test_not_taken(tables) -> None:
    put(tables, "outcomes", outcome="unmeasured", reason="provider")
    put(tables, "outcomes", outcome="fail", reason="mismatch")
    assert found(tables, "not_taken") == []
    put(tables, "outcomes", outcome="fail", reason="provider")
    assert found(tables, "not_taken") == [("a", "live", "warning", False, 1.0)]


def test_no_candidate(tables) -> None:
    put(tables, "generations", response_class="complete", candidate_sha256="x")
    for kind in ("infrastructure", "refusal", "empty"):
        put(tables, "generations", response_class=kind, candidate_sha256=None)
    assert found(tables, "no_candidate") == []
    put(tables, "generations", response_class="complete", candidate_sha256=None)
    assert found(tables, "no_candidate") == [("a", "live", "warning", False, 1.0)]


def test_repeated_ids(tables) -> None:
    for number in range(3):
        put(tables, "calls", provider="openai", response_id=f"id{number}", task_id=f"t{number}", attempt=0, sending=0)
    for task in ("t8", "t9"):
        put(tables, "calls", provider="openai", response_id="", task_id=task, attempt=0, sending=0)
    put(tables, "calls", provider="anthropic", response_id="id0", task_id="t0", attempt=0, sending=0)
    # A call that was sent again and got the answer that its first sending had got.
    put(tables, "calls", provider="openai", response_id="id0", task_id="t0", attempt=0, sending=1)
    assert found(tables, "repeated_ids") == []
    # A cache between two conditions.
    put(tables, "calls", provider="openai", response_id="id1", condition="cold", task_id="t1", attempt=0, sending=0)
    assert sorted(found(tables, "repeated_ids")) == [("a", "cold", "error", True, 1.0), ("a", "live", "error", True, 1.0)]


def test_repeated_ids_of_thirty_replicates_with_one_answer(tables) -> None:
    """Hard input 5: one stored answer, thirty times over."""
    for replicate in range(30):
        put(tables, "calls", provider="openai", response_id="one", task_id="t", attempt=0, replicate=replicate)
    assert found(tables, "repeated_ids") == [("a", "live", "error", True, 30.0)]


def test_repeated_ids_of_a_server_that_draws_them_from_few_numbers(tables) -> None:
    """Ids that stand for several texts tell nothing, so they do not block; at temperature 0 a few have one text by chance."""
    for number in range(6):
        facts = {"task_id": f"t{number}", "attempt": 0, "replicate": 0, "request_key": "k"}
        put(tables, "calls", provider="openai", response_id=f"chatcmpl-{number % 2}", **facts)
        put(tables, "generations", text_sha256=f"text {number}", **facts)
    for replicate in range(2):
        facts = {"task_id": "same", "attempt": 0, "replicate": replicate, "request_key": "k"}
        put(tables, "calls", provider="openai", response_id="chatcmpl-9", **facts)
        put(tables, "generations", text_sha256="one text", **facts)
    assert found(tables, "repeated_ids") == [("a", "live", "warning", False, 6.0)]
    assert "ids tell no answers apart" in sentence(tables, "repeated_ids")


def test_repeated_ids_of_a_judge(tables) -> None:
    for repeat in range(3):
        facts = {"condition": "j", "task_id": "t", "attempt": 0, "replicate": repeat, "purpose": "judge"}
        put(tables, "calls", provider="openai", response_id="one", **facts)
        put(tables, "verdicts", condition="j", task_id="t", repeat=repeat, text="pass")
    assert found(tables, "repeated_ids") == [("a", "j", "error", True, 3.0)]


def test_from_cache(tables) -> None:
    """Hard input 5: the server says that it stored the answer."""
    put(tables, "calls", from_cache=False)
    put(tables, "calls", from_cache=None)
    assert found(tables, "from_cache") == []
    put(tables, "calls", from_cache=True)
    assert found(tables, "from_cache") == [("a", "live", "error", True, 1.0)]


def texts(
    connection: duckdb.DuckDBPyConnection, *, tasks: int, varied: int = 0, length: int = 80, body: dict[str, Any] | None = None
) -> None:
    """Two replicates of tasks, the first so many with two texts, at temperature 0.7 unless the body says otherwise."""
    sent = request(**({"temperature": 0.7} if body is None else body))
    for task in range(tasks):
        for replicate in range(2):
            cell = {"task_id": f"t{task}", "replicate": replicate, "attempt": 0}
            put(connection, "calls", purpose="generate", provider="openai", request=sent, **cell)
            digest = f"{task} {replicate if task < varied else 0}"
            put(connection, "generations", response_class="complete", text="x" * length, text_sha256=digest, **cell)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"tasks": 10}, [("a", "live", "error", True, 10.0)]),
        ({"tasks": 10, "body": {}}, [("a", "live", "error", True, 10.0)]),
        ({"tasks": 9}, [("a", "live", "warning", False, 9.0)]),
        ({"tasks": 10, "varied": 2}, [("a", "live", "warning", False, 8.0)]),
        ({"tasks": 10, "varied": 3}, []),
        ({"tasks": 4}, []),
        ({"tasks": 10, "length": 79}, []),
        # Hard input 5: at temperature 0 one text alone is allowed.
        ({"tasks": 10, "body": {"temperature": 0}}, []),
        ({"tasks": 10, "body": {"temperature": 0.0}}, []),
    ],
)
def test_one_text(tables, facts, expected) -> None:
    texts(tables, **facts)
    assert found(tables, "one_text") == expected


def test_one_text_of_a_replay_is_as_it_must_be(tables) -> None:
    for replicate in range(2):
        for task in range(10):
            cell = {"task_id": f"t{task}", "replicate": replicate, "attempt": 0, "condition": "replay"}
            put(tables, "generations", response_class="complete", text=LONG, text_sha256="same", **cell)
    assert found(tables, "one_text") == []


@pytest.mark.parametrize(
    ("body", "provider", "replicates", "fires"),
    [
        ({"seed": 7, "temperature": 0.7}, "openai", 2, True),
        ({"seed": 7}, "openai", 2, True),
        ({"seed": 7, "temperature": 0}, "openai", 2, False),
        ({"temperature": 0.7}, "openai", 2, False),
        ({"seed": 7, "temperature": 0.7}, "openai", 1, False),
        ({"seed": 7, "temperature": 0.7}, "oracle", 2, False),
    ],
)
def test_fixed_seed(tables, body, provider, replicates, fires) -> None:
    for replicate in range(replicates):
        put(tables, "calls", provider=provider, replicate=replicate, request=request(**body))
    assert found(tables, "fixed_seed") == ([("a", "live", "warning", False, 7.0)] if fires else [])


def test_served_model(tables) -> None:
    put(tables, "calls", served_model="m-1")
    put(tables, "calls", served_model="")
    put(tables, "calls", served_model="m-2", condition="cold")
    assert found(tables, "served_model") == []
    put(tables, "calls", served_model="m-2")
    assert found(tables, "served_model") == [("a", "live", "error", True, 2.0)]


@pytest.mark.parametrize(
    ("check", "severity", "blocks", "begins"),
    [
        ("served_model", "error", True, "several models answered"),
        ("fingerprint", "warning", False, "the provider changed its system"),
    ],
)
def test_fingerprint_and_served_model_say_when_they_changed(tables, check, severity, blocks, begins) -> None:
    """Hard input 34: an alias that is pointed at another model in mid-study."""
    for hours, name in enumerate(["z-old", "z-old", "a-new", "a-new"]):
        put(tables, "calls", **{check: name}, answered_at=NOON + timedelta(hours=hours))
        if hours == 1:
            assert found(tables, check) == []
    assert found(tables, check) == [("a", "live", severity, blocks, 2.0)]
    said = sentence(tables, check)
    assert begins in said
    assert said.endswith(
        "z-old (2, 2026-05-01 12:00:00 to 2026-05-01 13:00:00), a-new (2, 2026-05-01 14:00:00 to 2026-05-01 15:00:00)."
    )


def test_fingerprint_names_four_and_counts_the_rest(tables) -> None:
    for number in range(6):
        put(tables, "calls", fingerprint=f"fp-{number}", answered_at=NOON + timedelta(minutes=number))
    assert sentence(tables, "fingerprint").endswith("12:03:00) and 2 more.")


@pytest.mark.parametrize(
    ("asked", "served", "fires"),
    [
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o-mini", "gpt-4o-mini", False),
        ("gpt-4o", "GPT-4o", False),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", False),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", False),
        ("smollm2", "/models/SmolLM2-135M.gguf", False),
        ("gpt-4o", "", False),
        ("gpt-4o", "gpt-3.5-turbo", True),
        ("gpt-4o-mini", "gpt-4o", True),
    ],
)
def test_requested_model(tables, asked, served, fires) -> None:
    put(tables, "calls", model=asked, served_model=served)
    assert found(tables, "requested_model") == ([("a", "live", "warning", False, 1.0)] if fires else [])
    if fires:
        assert sentence(tables, "requested_model") == f"a, live: {asked} was asked for, and 1 answer came from {served}."


def test_usage_missing(tables) -> None:
    put(tables, "calls", answered=True, response_class="complete", input_tokens=0, output_tokens=5)
    put(tables, "calls", answered=True, response_class="infrastructure")
    put(tables, "calls", answered=False, response_class="infrastructure")
    assert found(tables, "usage_missing") == []
    put(tables, "calls", answered=True, response_class="complete", input_tokens=3)
    put(tables, "calls", answered=True, response_class="truncated", output_tokens=3)
    assert found(tables, "usage_missing") == [("a", "live", "info", False, 2.0)]


def test_answers_lost(tables) -> None:
    put(tables, "calls", answered=True)
    assert found(tables, "answers_lost") == []
    put(tables, "calls", answered=False)
    assert found(tables, "answers_lost") == [("a", "live", "warning", False, 1.0)]
    assert "the provider may have billed it." in sentence(tables, "answers_lost")


def test_answers_unused(tables) -> None:
    for key in ("k", "other"):
        for sending in (0, 1):
            row = {"task_id": "t", "attempt": 1, "request_key": key, "purpose": "generate", "sending": sending}
            put(tables, "calls", **row)
    put(tables, "generations", task_id="t", attempt=1, request_key="k")
    put(tables, "calls", task_id="t", attempt=0, request_key="k", purpose="judge", condition="j")
    assert found(tables, "answers_unused") == [("a", "live", "warning", False, 1.0)]
    assert "1 request of a second attempt was paid for and not used" in sentence(tables, "answers_unused")


@pytest.mark.parametrize(("calls", "severity"), [(10, "info"), (9, "warning")])
def test_asked_again(tables, calls: int, severity: str) -> None:
    for number in range(calls):
        put(tables, "calls", task_id=f"t{number}", attempt=0, sending=0, request_key="k")
    # The retry rule's attempt is another call.
    put(tables, "calls", task_id="t1", attempt=1, sending=0, request_key="k")
    assert found(tables, "asked_again") == []
    put(tables, "calls", task_id="t0", attempt=0, sending=1, request_key="k")
    put(tables, "calls", task_id="t0", attempt=0, sending=2, request_key="k")
    assert found(tables, "asked_again") == [("a", "live", "info", False, 1.0)]
    if severity == "warning":
        put(tables, "calls", task_id="t2", attempt=0, sending=1, request_key="k")
        assert found(tables, "asked_again") == [("a", "live", severity, False, 2.0)]
    assert sentence(tables, "asked_again").endswith("requests in all.")
