"""The view `costs`: every sending counts once, and what is unknown is counted apart, never as nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import evalnoise
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store
from schemas.tables import CALLS
from tests.schemas.test_sql import make_protocol
from tests.support.small_store import row

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    opened = Store.open(tmp_path)
    protocol = make_protocol("demo", 2)
    opened.freeze(protocol)
    made = opened.study("demo", protocol.digest())

    def sending(position: int, **facts):
        plain = {"purpose": "generate", "answered": True, "response_class": "complete", "sent_at": AT, "answered_at": AT}
        return row(CALLS, made, position, **(plain | {"prices": "study"} | facts))

    keys = {"stack": "a", "condition": "live"}
    first = [
        # Hard input 32: a request that was billed, cut off, and billed again.
        sending(0, sending=0, response_class="infrastructure", cost_usd=None),
        sending(0, sending=1, cost_usd=0.25, input_tokens=100, output_tokens=50, cached_tokens=30, reasoning_tokens=20),
        sending(1, sending=0, answered=False, response_class="infrastructure", cost_usd=None, answered_at=None),
        sending(1, sending=1, response_class="infrastructure", cost_usd=0.0),
        sending(1, sending=2, cost_usd=0.5, input_tokens=7, output_tokens=3),
        sending(1, attempt=1, sending=0, cost_usd=None, response_class="malformed", prices=""),
    ]
    second = [sending(0, sending=0, cost_usd=0.125, input_tokens=1, output_tokens=2, prices="2026-01-01 abc")]
    made.commit("one", [PartitionWrite(CALLS, keys | {"replicate": 0}, first, "a")])
    made.commit("two", [PartitionWrite(CALLS, keys | {"replicate": 1}, second, "a")])
    judged = [sending(0, sending=0, purpose="judge", cost_usd=None, prices="")]
    made.commit("three", [PartitionWrite(CALLS, {"stack": "a", "condition": "j", "replicate": 0}, judged, "a")])
    return tmp_path


def test_every_sending_is_in_the_total_and_the_unknown_ones_are_counted(store) -> None:
    connection = evalnoise.connect(store)
    found = connection.execute("select * exclude (study, protocol, benchmark) from costs order by condition desc").fetchall()
    connection.close()
    assert found == [
        ("a", "live", "generate", 4, 7, 3, 1, 108, 30, None, 55, 20, 0.875, 3, 0, 0.0, "2026-01-01 abc; study"),
        ("a", "j", "judge", 1, 1, 0, 0, None, None, None, None, None, None, 1, 0, 0.0, ""),
    ]
