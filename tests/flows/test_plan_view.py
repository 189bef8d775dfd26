"""What `evalnoise plan` says of cost and of the DAG."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.views.plan import Line, Stage, cost_sentence, limit_warning, plan_lines, stages
from schemas.study import Study
from tasks.freeze import resolve
from tests.support.stages import body

LINE = Line("a", "live", "openai", "gpt-x", 1, 0, 10, 10, 10, 100, 100, 1.25)
JUDGE = {"repeats": 4, "conditions": [{"name": "j", "model": "m", "provider": {"name": "oracle"}}]}


def lines(*costs: float | None, model: str = "gpt-x") -> list[Line]:
    return [dataclasses.replace(LINE, cost_most=cost, model="priced" if cost is not None else model) for cost in costs]


class TestCost:
    @pytest.mark.parametrize(
        ("costs", "sentence"),
        [
            ((1.25, 0.5), "Estimated cost: at most $1.75."),
            ((0.0,), "Estimated cost: at most $0.00."),
            ((None, None), "Cost unknown: no price or no limit of output for gpt-x (openai)."),
            ((None, 0.0), "Cost unknown: no price or no limit of output for gpt-x (openai)."),
            ((None, 0.5), "Cost unknown: no price or no limit of output for gpt-x (openai). All else: estimated at most $0.50."),
        ],
    )
    def test_sentence(self, costs, sentence):
        assert cost_sentence(lines(*costs)) == sentence

    def test_every_unpriced_model_is_named(self):
        found = cost_sentence([*lines(None), *lines(None, model="other")])
        assert found == "Cost unknown: no price or no limit of output for gpt-x (openai), other (openai)."

    def test_limit(self):
        assert limit_warning(lines(1.25, 0.5), None) == ""
        assert limit_warning(lines(1.25, 0.5), 1.75) == ""
        above = "the estimated cost of at most $1.75 is above limits.max_cost, $1.50: a run may stop there."
        assert limit_warning(lines(1.25, 0.5), 1.5) == above
        assert limit_warning(lines(1.25, 0.5, None), 1.5) == above
        refused = "the cost is unknown, so limits.max_cost, $1.50, cannot be kept and a run is refused."
        assert limit_warning(lines(1.25, None), 1.5) == refused


class TestDag:
    def test_replay_and_judge(self):
        study = Study.model_validate(body(judge=JUDGE, limits={"shard_cells": 4}))
        assert stages(study, 6) == [
            Stage("freeze", None, "-"),
            Stage("load", 1, "freeze"),
            Stage("preflight", 1, "load"),
            Stage("measure", 12, "preflight", "live, cold (permuted blocks)"),
            Stage("record", None, "live replicate 0"),
            Stage("replay", 6, "record", "replay"),
            Stage("judge", 8, "replay replicate 0", "j"),
            Stage("analyse", 1, "all of these"),
            Stage("report", None, "analyse"),
        ]

    def test_reverify_stands_behind_what_it_verifies_again(self):
        again = [
            {"name": "again", "kind": "reverify", "source": {"condition": "live", "replicate": 2}},
            {"name": "twice", "kind": "reverify", "source": {"condition": "replay"}},
        ]
        study = Study.model_validate(body(conditions=[*body()["conditions"], *again], limits={"shard_cells": 4}))
        found = {stage.name: stage for stage in stages(study, 6)}
        assert list(found) == ["freeze", "load", "preflight", "measure", "record", "replay", "reverify", "analyse", "report"]
        assert found["measure"] == Stage("measure", 12, "preflight", "live, cold (permuted blocks)")
        assert found["replay"] == Stage("replay", 6, "record", "replay")
        assert found["reverify"] == Stage("reverify", 12, "live replicate 2, replay replicate 0", "again, twice")

    def test_the_least(self):
        study = Study.model_validate(body(conditions=[{"name": "live", "kind": "live"}]))
        assert [stage.name for stage in stages(study, 6)] == ["freeze", "load", "preflight", "measure", "analyse", "report"]
        assert stages(study, 6)[3] == Stage("measure", 3, "preflight", "live")


def plan(tmp_path: Path, *changes: str) -> tuple[str, str]:
    file = tmp_path / "s.yaml"
    file.write_text(
        "study: humaneval\nbenchmark: {name: starter}\nreplicates: 1\n"
        "stacks: [{name: a, model: gpt-x, provider: {name: openai},"
        " verifier: {executor: process, unsandboxed_providers: [openai]}}]\n"
        "conditions: [{name: live, kind: live}, {name: temperature-zero, kind: temperature-zero},"
        " {name: replay, kind: replay, source: {condition: live}}]\n"
    )
    sets = [part for change in changes for part in ("--set", change)]
    arguments = ["plan", str(file), "--store", str(tmp_path / "store"), "--limit", "1", *sets]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_an_unpriced_plan(tmp_path):
    out, err = plan(tmp_path, "limits.max_cost=0.5")
    assert out.startswith("Study humaneval: 1 task of starter, 1 replicate.\n")
    assert "Cost unknown: no price or no limit of output for gpt-x (openai)." in out
    assert "$0.00; " not in out
    assert "warning: the cost is unknown, so limits.max_cost, $0.50, cannot be kept and a run is refused." in err
    assert re.search(r"^measure +2  preflight +live, temperature-zero \(permuted blocks\) *$", out, re.MULTILINE)
    assert re.search(r"^temperature-zero +1 +0 .+ unknown\n\(openai\)", out, re.MULTILINE)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_plan_above_its_limit(tmp_path):
    prices = ("stacks.0.provider.input_usd_per_million=1", "stacks.0.provider.output_usd_per_million=1000")
    out, err = plan(tmp_path, *prices, "limits.max_cost=2")
    assert "Estimated cost: at most $2.05. Limit: $2.00, kept before each request." in out
    assert "Prices by the table" not in out
    assert "warning: the estimated cost of at most $2.05 is above limits.max_cost, $2.00: a run may stop there." in err
    assert "limits.max_cost" not in plan(tmp_path, *prices, "limits.max_cost=3")[1]


def test_a_price_of_the_list_is_used_and_said_to_be_checked(tmp_path):
    out, _ = plan(tmp_path, "stacks.0.model=gpt-4o-mini-2024-07-18", "stacks.0.max_tokens=1000000")
    # Two calls of a million tokens at $0.60, and a few hundred tokens in.
    assert "Estimated cost: at most $1.20. Limit: none." in out
    assert re.search(r"Prices by the table 20\d\d-\d\d-\d\d [0-9a-f]{12}: they change, so check them", out)


def test_reverify_calls_nobody_and_verifies_every_cell_once(tmp_path):
    conditions = [{"name": "live", "kind": "live"}, {"name": "again", "kind": "reverify", "source": {"condition": "live"}}]
    study = resolve(Study.model_validate(body(conditions=conditions, replicates=4)), limit=6)
    live, again = plan_lines(study, set())
    # The stack retries, so the live run may verify two candidates a cell; only the last of them is verified again.
    assert (live.provider, live.calls_most, live.verifications_most) == ("oracle", 48, 48)
    assert again == Line("a", "again", "frozen", "m", 4, 0, 0, 0, 24, 0, 0, 0.0)


def test_second_attempts_with_feedback_are_counted_with_the_answers_that_they_hold():
    found = {}
    for rule in ("none", "resample", "with-feedback"):
        stack = body()["stacks"][0] | {"retry": rule, "max_tokens": 100, "retry_prompt": "x" * 40}
        conditions = [{"name": "live", "kind": "live"}]
        (found[rule],) = plan_lines(resolve(Study.model_validate(body(stacks=[stack], conditions=conditions)), limit=6), set())
    plain, again, told = found.values()
    assert [(line.calls_least, line.calls_most, line.verifications_most) for line in found.values()] == [
        (18, 18, 18), (18, 36, 36), (18, 36, 36),
    ]  # fmt: skip
    assert told.output_tokens_most == again.output_tokens_most == 2 * plain.output_tokens_most == 3600
    # Each of 18 second requests holds an answer of 100 tokens and ten of feedback beside the prompt.
    assert told.input_tokens - again.input_tokens == 18 * 110


@pytest.mark.parametrize(("limit", "tokens", "cost"), [(5000, 18 * 5000, 18 * 5000 / 1e6), (-1, 18 * 100, None)])
def test_a_limit_of_output_in_extra_counts(limit, tokens, cost):
    provider = {
        "name": "openai",
        "input_usd_per_million": 0,
        "output_usd_per_million": 1,
        "extra": {"max_completion_tokens": limit},
    }
    stack = body()["stacks"][0] | {"max_tokens": 100, "provider": provider, "retry": "none"}
    study = Study.model_validate(body(stacks=[stack], conditions=[{"name": "live", "kind": "live"}]))
    (line,) = plan_lines(resolve(study, limit=6), set())
    assert (line.output_tokens_most, line.cost_most) == (tokens, cost)
