"""The harness of `perf.generate` at a small size: every arm answers all its calls, and ours journals and makes rows of them."""

from __future__ import annotations

import pytest

from perf.generate import Measured, compare, in_a_process, report, serving


def test_every_arm_makes_all_its_calls() -> None:
    found = compare(60, 1)
    assert list(found) == ["sdk", "ours", "http"]
    assert all(len(runs) == 1 and runs[0].rate > 0 and runs[0].early_memory > 0 for runs in found.values())


def test_an_arm_that_fails_is_not_a_figure() -> None:
    import subprocess

    with pytest.raises(subprocess.CalledProcessError):
        in_a_process("ours", "http://127.0.0.1:9/v1", 3)


@pytest.mark.parametrize(("ours", "code"), [(86.0, 0), (84.0, 1)])
def test_the_goal_is_a_ratio_of_the_same_alternation(ours, code, capsys) -> None:
    def run(rate: float) -> Measured:
        return Measured(rate, 1.0, 2**20, 2**21)

    found = {"sdk": [run(100.0), run(200.0)], "ours": [run(ours), run(2 * ours)], "http": [run(200.0), run(400.0)]}
    assert report(found, 10) == code
    out = capsys.readouterr().out
    assert f"evalnoise / bare SDK loop 0.{ours:.0f} (goal 0.85), / bare HTTP loop 0.{ours / 2:.0f}, / ideal 0.10" in out
    assert "memory +1.0 MiB" in out


def test_the_server_answers_after_its_latency_with_over_a_kilobyte() -> None:
    import json
    import time
    import urllib.request

    with serving() as url:
        begun = time.monotonic()
        request = urllib.request.Request(f"{url}/chat/completions", data=b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            body = answer.read()
    assert time.monotonic() - begun >= 0.05
    assert len(body) >= 1024
    assert json.loads(body)["choices"][0]["message"]["content"].endswith("Answer: 42")
