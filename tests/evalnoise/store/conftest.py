"""Protocols and rows for the store's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalnoise.store.store import Store, StudyStore
from schemas.protocol import Protocol

MakeProtocol = Callable[..., Protocol]


def make_protocol(study: str = "demo", **changes: Any) -> Protocol:
    facts: dict[str, Any] = {
        "study": {"study": study, "night": None},
        "replicates": 3,
        "limit": None,
        "benchmark": "starter",
        "benchmark_sha256": "0" * 64,
        "benchmark_files": (),
        "n_tasks": 4,
        "recordings": {},
        "prompts": {},
        "executors": {},
        "checkers": {},
        "measurement": {},
    }
    return Protocol(**(facts | changes))


def outcome_rows(study: StudyStore, outcomes: str, ids: list[str] | None = None) -> list[dict[str, Any]]:
    """Rows of `outcomes`, one per letter: p, f or u."""
    names = {"p": "pass", "f": "fail", "u": "unmeasured"}
    return [
        {
            "study": study.study,
            "protocol": study.protocol,
            "benchmark": "starter",
            "task_id": ids[position] if ids else f"task/{position}",
            "position": position,
            "outcome": names[letter],
            "reason": {"p": "pass", "f": "mismatch", "u": "infrastructure"}[letter],
            "score": {"p": 1.0, "f": 0.0, "u": None}[letter],
            "response_class": "complete",
            "attempts": 1,
            "candidate_sha256": None,
        }
        for position, letter in enumerate(outcomes)
    ]


@pytest.fixture
def protocol() -> Protocol:
    return make_protocol()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / 'a store\'s "own" 100%')


@pytest.fixture
def study(store: Store, protocol: Protocol) -> StudyStore:
    store.freeze(protocol)
    return store.study("demo", protocol.digest())


@pytest.fixture(name="make_protocol")
def _make_protocol() -> MakeProtocol:
    return make_protocol


@pytest.fixture(name="outcome_rows")
def _outcome_rows() -> Callable[..., list[dict[str, Any]]]:
    return outcome_rows
