"""The limit of cost through whole studies: what earlier runs spent counts, what is answered stays, and nothing is paid twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.sending.log import CallLog
from evalnoise.sending.prices import price_table
from evalnoise.store.store import Store
from schemas.errors import BudgetError, StudyError
from schemas.study import StarterBenchmark, Study
from tasks.freeze import resolve
from tasks.plan import measured_shards
from tasks.spending import buyers, check_prices, purse_of
from tests.support import stages
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve

WIRE = OpenAIDialect()
TASKS = load_benchmark(StarterBenchmark(name="starter")).tasks[:6]
EACH = (1000 * 1.0 + 100 * 10.0) / 1e6
"""What every answer costs: $0.002. By its bytes and 300 tokens of output it could have cost more: about $0.004."""


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")


class Model:
    """Answers by the canonical solution, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, received: Received) -> Reply:
        self.calls += 1
        prompt = received.body["messages"][0]["content"]
        task = next(task for task in TASKS if task.prompt in prompt)
        return WIRE.answer(f"```python\n{task.reference}\n```", answer_id=f"id-{self.calls}", usage=(1000, 100))


def study(url: str, *, priced: bool = True, **changes) -> Study:
    provider = {"name": "openai", "base_url": f"{url}/v1", "max_retries": 0, "timeout": 5.0, "temperature": 0.7}
    if priced:
        provider |= {"input_usd_per_million": 1.0, "output_usd_per_million": 10.0}
    stack = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS, "max_tokens": 300}
    plain = {"stacks": [stack], "conditions": [{"name": "live", "kind": "live"}], "replicates": 2}
    return Study.model_validate(stages.body(**(plain | changes)))


def test_a_run_stops_before_it_passes_the_limit_and_a_raised_one_goes_on(tmp_path) -> None:
    model = Model()
    with serve(script=model) as server:
        with pytest.raises(BudgetError, match=r"\$0\.02.*spent.*needs at most") as caught:
            stages.run(study(server.url, limits={"max_cost": 0.021, "concurrency": 4}), tmp_path / "s", limit=6)
        first = model.calls
        assert first * EACH <= 0.021
        assert first * EACH > 0.021 - 0.005
        assert "the call for task starter/" in str(caught.value)
        # The first shard was sealed, the second has its answers in the journal; the same limit buys nothing more.
        with pytest.raises(BudgetError):
            stages.run(study(server.url, limits={"max_cost": 0.021, "concurrency": 4}), tmp_path / "s", limit=6)
        assert model.calls == first
        stages.run(study(server.url, limits={"max_cost": 1.0}), tmp_path / "s", limit=6, analysed=False)
    assert model.calls == 12
    totals = "select calls, sendings, lost_sendings, cost_usd, cost_unknown, prices from costs"
    assert stages.rows(tmp_path / "s", totals) == [(12, 12, 0, pytest.approx(12 * EACH), 0, "study")]
    assert len(Store.open(tmp_path / "s").studies()) == 1, "prices and limits are not part of the protocol"


def test_sealed_journalled_and_lost_sendings_all_count(tmp_path) -> None:
    model = Model()
    with serve(script=model) as server:
        plan = resolve(study(server.url, limits={"max_cost": 1.0}), limit=6)
        with stages.opened(plan.study, tmp_path / "s") as shop:
            from tasks.shard import measure_shard

            first, second = measured_shards(plan.study, 6)
            measure_shard(shop, first)
            journal = shop.study_store.journal(second.name)
            provider = shop.provider("a", plan.study.conditions[0])
            prompt = "p" * 1000
            request = provider.request(prompt, None)

            async def lose() -> None:
                await CallLog(journal, "lost#0", request).sent(datetime.now(UTC))

            asyncio.run(lose())
            purse = purse_of(plan, shop.study_store, price_table(None))
    assert purse.spent == pytest.approx(6 * EACH)
    assert purse.held == pytest.approx((len(request.canonical()) * 1.0 + 300 * 10.0) / 1e6)
    assert purse.max_cost == 1.0


def test_an_unknown_price_is_refused_before_the_first_call_with_what_to_do(tmp_path) -> None:
    plan = resolve(study("http://127.0.0.1:9", priced=False, limits={"max_cost": 1.0}), limit=6)
    with pytest.raises(BudgetError, match=r"none for m \(openai\).*input_usd_per_million") as caught:
        check_prices(plan)
    assert "docs/guide/costs.md" in caught.value.remedy
    check_prices(resolve(study("http://127.0.0.1:9", priced=False), limit=6))


def test_a_table_of_ones_own_prices_a_local_server_too(tmp_path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(
        'date = 2026-01-02\ncurrency = "USD"\n[[model]]\nprovider = "openai"\nnames = ["m"]\ninput = 1.0\noutput = 10.0\n'
    )
    model = Model()
    with serve(script=model) as server:
        priced = study(server.url, priced=False, limits={"max_cost": 1.0}, prices=str(path))
        check_prices(resolve(priced, limit=6))
        stages.run(priced, tmp_path / "s", limit=6, analysed=False)
    ((cost, source),) = stages.rows(tmp_path / "s", "select cost_usd, prices from costs")
    assert cost == pytest.approx(12 * EACH)
    assert source.startswith("2026-01-02 ")


def test_a_table_that_cannot_be_read_is_said_at_once() -> None:
    with pytest.raises(StudyError, match="prices: expected a readable file"):
        check_prices(resolve(Study.model_validate(stages.body(prices="/none/prices.toml")), limit=6))


def test_who_buys_and_at_what_price() -> None:
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "cold", "kind": "temperature-zero"},
        {"name": "replay", "kind": "replay", "source": {"condition": "live"}},
        {"name": "again", "kind": "reverify", "source": {"condition": "live"}},
    ]
    judge = {"conditions": [{"name": "j", "model": "k", "provider": {"name": "oracle"}}]}
    found = buyers(study("http://127.0.0.1:9", conditions=conditions, judge=judge), price_table(None))
    assert [(b.stack, b.condition, b.provider, b.model, b.price and b.price.output) for b in found] == [
        ("a", "live", "openai", "m", 10.0),
        ("a", "cold", "openai", "m", 10.0),
        ("a", "j", "oracle", "k", 0.0),
    ]


def test_a_shard_that_is_being_asked_again_counts_by_its_journal(tmp_path) -> None:
    """A retry that is broken off has sendings that no sealed row has yet."""
    from evalnoise.store.retries import Retry

    with serve(script=Model()) as server:
        plan = resolve(study(server.url, limits={"max_cost": 1.0}), limit=6)
        stages.run(plan.study, tmp_path / "s", limit=6, analysed=False)
        opened = Store.open(tmp_path / "s").study(plan.study.study, plan.digest)
        (first, _) = measured_shards(plan.study, 6)
        retry = Retry(1, "2026-01-02T03:04:05+00:00", {first.name: frozenset({TASKS[0].id})}, {})
        opened.mark("retry", **retry.line())
        before = purse_of(plan, opened, price_table(None))

        async def send() -> None:
            from evalnoise.providers.base import Request

            request = Request("openai", "m", {"max_tokens": 300, "messages": []})
            log = CallLog(opened.journal(first.name), "again#0", request)
            await log.sent(datetime.now(UTC))

        asyncio.run(send())
        after = purse_of(plan, opened, price_table(None))
    assert (before.spent, before.held) == (pytest.approx(12 * EACH), 0.0)
    assert after.spent == pytest.approx(12 * EACH)
    assert after.held > 300 * 10 / 1e6
