"""The oracle: rates that are known, draws that are the same everywhere, answers that are real."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.providers.base import CallContext
from evalnoise.providers.make import make_provider
from evalnoise.providers.oracle import rate, true_rates, true_w, uniform
from schemas.provider import OracleJudge, OracleProvider
from schemas.records import Outcome, Reason, Reference, ResponseClass, Task, TaskKind

TASK = Task("t/1", TaskKind.FUNCTION, "add two", "def add(a, b):\n    return a + b\n", "add")
MUTANT = "def add(a, b):\n    return a - b"
REFERENCE = Reference("t/1", Outcome.PASS, Reason.PASS, mutant=MUTANT)
CONTEXT = CallContext(TASK, "s", "live", 0, 0, REFERENCE)
IDS = [f"task/{n}" for n in range(2000)]


def answer(spec, context=CONTEXT, prompt="p"):
    provider = make_provider(spec, model="oracle-1", max_tokens=100, retry="none")
    return asyncio.run(provider.send(provider.request(prompt, context), context))


def passed(response) -> bool:
    assert ("return a + b" in response.text) != ("return a - b" in response.text)
    return "return a + b" in response.text


def certain(task_id, wanted):
    """A spec under which the task's rate is 0 or 1."""
    return next(s for s in (OracleProvider(name="oracle", seed=n, stable=1.0) for n in range(100)) if rate(s, task_id) == wanted)


def test_uniform_is_what_it_was_on_every_machine():
    # Fixed values: a change of the hash or its framing is a change of `versions.ORACLE`.
    assert uniform(0, "pass", "s", "live", "t/1", 0, 0) == 0.06539335205436714
    spec = OracleProvider(name="oracle", seed=7)
    assert true_rates(spec, IDS[:3], "none").tolist() == [0.844481352, 0.014288318, 0.039591091]
    cold = spec.model_copy(update={"temperature": 0.0})
    assert true_rates(cold, IDS[:3], "none").tolist() == [1.0, 0.0, 0.039591091]


def test_uniform_keeps_its_parts_apart():
    assert len({uniform("a", "b"), uniform("ab"), uniform("a,b"), uniform("a", 1), uniform("a", "1")}) == 5


@given(st.lists(st.one_of(st.integers(), st.text()), max_size=4))
def test_uniform_is_in_the_unit_interval(parts):
    assert 0 <= uniform(*parts) < 1


def test_uniform_is_uniform():
    draws = np.array([uniform(n) for n in range(20_000)])
    assert abs(draws.mean() - 0.5) < 4 * math.sqrt(1 / 12 / 20_000)
    assert abs(draws.var() - 1 / 12) < 0.002


def test_rates_follow_the_spec():
    spec = OracleProvider(name="oracle", seed=3, alpha=0.3, beta=0.2, stable=0.4)
    rates = true_rates(spec, IDS, "none")
    unstable = (rates > 0) & (rates < 1)
    assert abs(unstable.mean() - 0.6) < 4 * math.sqrt(0.24 / 2000)
    assert abs(rates.mean() - 0.6) < 0.05
    # E[p(1-p)] of a Beta(a, b) is ab / ((a+b)(a+b+1)).
    assert abs(true_w(rates) - 0.6 * 0.3 * 0.2 / (0.5 * 1.5)) < 0.005


def test_at_temperature_zero_a_quarter_of_the_unstable_tasks_stays_unstable():
    warm = OracleProvider(name="oracle", seed=3, stable=0.2)
    cold = warm.model_copy(update={"temperature": 0.0})
    hot = true_rates(warm, IDS, "none")
    cool = true_rates(cold, IDS, "none")
    unstable = (cool > 0) & (cool < 1)
    assert abs(unstable.mean() - 0.8 / 4) < 4 * math.sqrt(0.16 / 2000)
    assert np.array_equal(cool[unstable], hot[unstable])
    settled = (hot > 0) & (hot < 1) & ~unstable
    assert np.array_equal(cool[settled], np.where(hot[settled] >= 0.5, 1.0, 0.0))
    always = ~((hot > 0) & (hot < 1))
    assert np.array_equal(cool[always], hot[always])


def test_other_temperatures_do_not_change_rates():
    specs = [OracleProvider(name="oracle", temperature=t) for t in (0.1, 0.7, 2.0)]
    first, *others = [true_rates(spec, IDS[:100], "none") for spec in specs]
    assert all(np.array_equal(first, other) for other in others)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**40), stable=st.floats(0, 1))
def test_rates_are_probabilities_and_the_retry_rule_acts_on_them(seed, stable):
    spec = OracleProvider(name="oracle", seed=seed, stable=stable)
    rates = true_rates(spec, IDS[:50], "none")
    assert ((rates >= 0) & (rates <= 1)).all()
    assert np.array_equal(true_rates(spec, IDS[:50], "resample"), 1 - (1 - rates) ** 2)
    assert np.array_equal(true_rates(spec, IDS[:50][::-1], "none"), rates[::-1])


def test_a_task_without_a_mutant_always_passes():
    spec = certain(TASK.id, 0.0)
    assert true_rates(spec, ["t/1", "t/1b"], "none", without_mutant={"t/1"})[0] == 1.0
    assert passed(answer(spec, replace(CONTEXT, reference=replace(REFERENCE, mutant=""))))


def test_true_w():
    assert true_w(np.array([0.0, 0.5, 1.0, 0.1])) == pytest.approx((0.25 + 0.09) / 4)
    with pytest.raises(ValueError, match="no tasks"):
        true_w(np.array([]))


def test_draws_meet_the_rate_and_depend_on_every_part_of_the_cell():
    spec = OracleProvider(name="oracle", seed=1, stable=0.0, alpha=2.0, beta=2.0)
    p = rate(spec, TASK.id)
    assert 0.05 < p < 0.95
    results = [passed(answer(spec, replace(CONTEXT, replicate=n))) for n in range(400)]
    assert abs(np.mean(results) - p) < 4 * math.sqrt(p * (1 - p) / 400)
    for other in ({"stack": "z"}, {"condition": "z"}, {"attempt": 1}):
        differs = [passed(answer(spec, replace(CONTEXT, replicate=n, **other))) for n in range(60)]
        assert differs != results[:60]


def test_the_same_cell_is_answered_with_the_same_bytes():
    spec = OracleProvider(name="oracle", seed=1)
    assert answer(spec) == answer(spec)
    ids = {answer(spec, replace(CONTEXT, replicate=n)).response_id for n in range(20)}
    assert len(ids) == 20


@pytest.mark.parametrize(("wanted", "code"), [(1.0, TASK.reference), (0.0, MUTANT)])
def test_the_answer_is_a_program_in_a_fence_with_talk_around(wanted, code):
    response = answer(certain(TASK.id, wanted))
    before, _, rest = response.text.partition("```python\n")
    block, _, after = rest.partition("\n```\n")
    assert block == code.rstrip("\n")
    assert before.strip()
    assert after.strip()
    assert response.response_class is ResponseClass.COMPLETE
    assert (response.served_model, response.cost_usd, response.finish_reason) == ("oracle-1", 0.0, "stop")
    assert json.loads(response.raw)["text"] == response.text


def test_a_fence_is_longer_than_any_in_the_code():
    task = replace(TASK, reference='def add(a, b):\n    """````"""\n    return a + b')
    text = answer(certain(TASK.id, 1.0), replace(CONTEXT, task=task)).text
    assert "\n`````python\n" in text
    assert "\n`````\n" in text


def test_a_literal_is_answered_bare():
    task = Task("t/1", TaskKind.OUTPUT, "f(1)?", "[1, 2]", "f")
    context = replace(CONTEXT, task=task, reference=replace(REFERENCE, mutant="[1, 3]"))
    assert answer(certain("t/1", 1.0), context).text == "[1, 2]"
    assert answer(certain("t/1", 0.0), context).text == "[1, 3]"


def test_without_preflight_there_is_no_answer():
    with pytest.raises(ValueError, match="preflight"):
        answer(OracleProvider(name="oracle"), replace(CONTEXT, reference=None))


def test_latency_is_waited_and_is_not_in_the_key():
    slow, fast = OracleProvider(name="oracle", latency=0.2), OracleProvider(name="oracle")
    keys = {make_provider(s, model="m", max_tokens=9, retry="none").request("p", CONTEXT).key() for s in (slow, fast)}
    assert len(keys) == 1

    async def sixteen():
        provider = make_provider(slow, model="m", max_tokens=9, retry="none")
        request = provider.request("p", CONTEXT)
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(provider.send(request, CONTEXT) for _ in range(16)))
        return asyncio.get_running_loop().time() - began

    assert 0.2 <= asyncio.run(sixteen()) < 1.0


@pytest.mark.parametrize("change", [{"seed": 9}, {"alpha": 1.0}, {"beta": 1.0}, {"stable": 0.9}, {"temperature": 0.0}])
def test_every_option_that_changes_answers_changes_the_key(change):
    base = OracleProvider(name="oracle")
    specs = [base, base.model_copy(update=change)]
    assert len({make_provider(s, model="m", max_tokens=9, retry="none").request("p", CONTEXT).key() for s in specs}) == 2


def test_prompts_with_lone_surrogates_have_a_key():
    provider = make_provider(OracleProvider(name="oracle"), model="m", max_tokens=9, retry="none")
    assert provider.request("a\ud835", CONTEXT).body["messages"][0]["content"] == "a\\ud835"


# The judge.


def judged(spec, executed, replicate=0):
    return answer(spec, replace(CONTEXT, condition="judge", reference=None, executed=executed, replicate=replicate)).text


@pytest.mark.parametrize(("executed", "line"), [(Outcome.PASS, "VERDICT: PASS"), (Outcome.FAIL, "VERDICT: FAIL")])
def test_a_judge_that_never_flips_says_what_execution_said(executed, line):
    first, second = judged(OracleJudge(name="oracle", flip=0.0), executed).splitlines()
    assert first == line
    label, number = second.split(": ")
    assert label == "CONFIDENCE"
    assert 50 <= int(number) <= 100


def test_the_flip_rate_and_the_unparsed_share_are_met():
    spec = OracleJudge(name="oracle", seed=2, flip=0.2, unparsed=0.25)
    texts = [judged(spec, Outcome.PASS, n) for n in range(800)]
    unparsed = sum("VERDICT" not in t for t in texts)
    flipped = sum(t.startswith("VERDICT: FAIL") for t in texts)
    assert abs(unparsed / 800 - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 800)
    assert abs(flipped / (800 - unparsed) - 0.2) < 4 * math.sqrt(0.16 / 600)


@pytest.mark.parametrize("executed", [None, Outcome.UNMEASURED])
def test_a_judge_that_knows_nothing_gives_no_verdict(executed):
    assert "VERDICT" not in judged(OracleJudge(name="oracle"), executed)
