"""`limits.max_cost` from the command line: exit code 11, one sentence, and the same command goes on."""

from __future__ import annotations

import threading

import pytest
import yaml

from evalnoise.benchmarks.load import load_benchmark
from schemas.study import StarterBenchmark
from tests.support import stages
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve

pytestmark = pytest.mark.prefect
WIRE = OpenAIDialect()
TASKS = load_benchmark(StarterBenchmark(name="starter")).tasks[:6]


class Model:
    """Answers by the canonical solution; each answer costs $0.002."""

    def __init__(self) -> None:
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Reply:
        with self._lock:
            self.calls += 1
            number = self.calls
        prompt = received.body["messages"][0]["content"]
        task = next(task for task in TASKS if task.prompt in prompt)
        return WIRE.answer(f"```python\n{task.reference}\n```", answer_id=f"id-{number}", usage=(1000, 100))


def test_a_run_that_stops_at_its_limit_of_cost(evalnoise, tmp_path) -> None:
    model, key = Model(), {"OPENAI_API_KEY": "sk-0123456789abcdef"}
    with serve(script=model) as server:
        provider = {"name": "openai", "base_url": f"{server.url}/v1", "input_usd_per_million": 1.0, "output_usd_per_million": 10.0}
        stack = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS, "max_tokens": 300}
        conditions = [{"name": "live", "kind": "live"}, {"name": "cold", "kind": "temperature-zero"}]
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump(stages.body(stacks=[stack], conditions=conditions, replicates=2)))
        run = ("run", path, "--store", tmp_path / "s", "--limit", "6")
        unpriced = ("--set", "stacks.0.provider.output_usd_per_million=", "--set", "limits.max_cost=1")
        refused = evalnoise(*run, *unpriced, **key)
        assert (refused.returncode, model.calls) == (11, 0)
        assert len(refused.stderr.strip().splitlines()) <= 2, refused.stderr
        stopped = evalnoise(*run, "--set", "limits.max_cost=0.03", **key)
        assert stopped.returncode == 11, stopped.stderr
        assert "Traceback" not in stopped.stdout + stopped.stderr
        assert "error: limits.max_cost: expected room for the next request within $0.03" in stopped.stderr
        assert "Raise limits.max_cost and run the same command again" in stopped.stderr
        assert model.calls * 0.002 <= 0.03
        done = evalnoise(*run, "--set", "limits.max_cost=5", **key)
    assert done.returncode == 0, done.stderr
    assert model.calls == 24
    assert ", $0.0480 of $5.00, " in done.stderr
    totals = "select condition, calls, sendings, cost_usd from costs order by 1"
    assert stages.rows(tmp_path / "s", totals) == [
        ("cold", 12, 12, pytest.approx(0.024)),
        ("live", 12, 12, pytest.approx(0.024)),
    ]
