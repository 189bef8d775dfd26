"""The protocol: what its digest covers and what it leaves out."""

from __future__ import annotations

import hashlib

import pytest

from evalnoise.studyfile.load import load_study
from schemas.protocol import Lineage, Protocol, digested_study
from tests.flows.conftest import ROOT


def digest(*changes: str) -> str:
    study = load_study(ROOT / "studies" / "starter.yaml", changes)
    protocol = Protocol(
        study=digested_study(study),
        replicates=study.replicates,
        limit=None,
        benchmark="starter",
        benchmark_sha256="0" * 64,
        benchmark_files=(),
        n_tasks=49,
        recordings={},
        prompts={},
        executors={},
        checkers={},
        measurement={"extractor": 1},
    )
    assert protocol.digest() == hashlib.sha256(protocol.canonical()).hexdigest()
    assert Protocol.model_validate_json(protocol.canonical()) == protocol
    return protocol.digest()


@pytest.mark.parametrize(
    "change",
    [
        "limits.concurrency=3",
        "limits.max_cost=12.5",
        "limits.requests_per_minute=60",
        "limits.tokens_per_minute=60000",
        "limits.patience=5",
        "prices=my-prices.toml",
        "stacks.0.verifier.workers=7",
        "stacks.0.provider.latency=1.5",
        "conditions.live.provider.latency=1.5",
    ],
)
def test_how_fast_and_how_far_is_not_covered(change: str) -> None:
    assert digest(change) == digest()


@pytest.mark.parametrize(
    "change",
    [
        "replicates=9",
        "stacks.0.model=other",
        "stacks.0.prompt=hello",
        "stacks.0.retry=none",
        "stacks.0.provider.seed=1",
        "stacks.0.verifier.inputs_cap=5",
        "conditions.live.provider.alpha=0.5",
        "judge.repeats=2",
        "analysis.seed=4",
        "analysis.deltas=[0.03]",
        "limits.shard_cells=100",
        "night=2026-11-29",
    ],
)
def test_what_a_row_means_is_covered(change: str) -> None:
    assert digest(change) != digest()


def test_where_a_file_lies_is_not_covered(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("EVALNOISE_SHARED", "/one/place")
    one = digested_study(load_study(ROOT / "studies" / "cruxeval.yaml"))
    monkeypatch.setenv("EVALNOISE_SHARED", "/another")
    assert digested_study(load_study(ROOT / "studies" / "cruxeval.yaml")) == one


def test_a_lineage_is_covered_and_a_protocol_without_one_has_no_trace_of_it() -> None:
    plain = Protocol(
        study={"study": "s"}, replicates=2, limit=None, benchmark="b", benchmark_sha256="0" * 64, benchmark_files=(), n_tasks=1,
        recordings={}, prompts={}, executors={}, checkers={}, measurement={},
    )  # fmt: skip
    assert b"lineage" not in plain.canonical()
    past = Lineage(predecessor="1" * 64, why="w is wide")
    successor = plain.model_copy(update={"lineage": past})
    assert b'"lineage":{"blind":false,"predecessor":"1' in successor.canonical()
    assert Protocol.model_validate_json(successor.canonical()) == successor
    others = [past.model_copy(update={"why": "another"}), past.model_copy(update={"predecessor": "2" * 64})]
    digests = {one.digest() for one in (plain, successor, *(plain.model_copy(update={"lineage": other}) for other in others))}
    assert len(digests) == 4
