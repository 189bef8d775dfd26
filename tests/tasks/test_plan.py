"""The plan: which shards there are, in which order, and what depends on what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.study import Study
from tasks.plan import Shard, judge_shards, measured_shards, source_shards


def study(
    *, replicates: int = 4, shard_cells: int = 10, seed: int = 0, source: int = 0, judge: bool = False, extra: Sequence[dict] = ()
) -> Study:
    body = {
        "study": "s",
        "benchmark": {"name": "starter"},
        "stacks": [{"name": name, "model": "m", "provider": {"name": "oracle"}} for name in ("a", "b")],
        "conditions": [
            {"name": "replay", "kind": "replay", "source": {"condition": "live", "replicate": source}},
            {"name": "live", "kind": "live"},
            {"name": "cold", "kind": "temperature-zero"},
            *extra,
        ],
        "replicates": replicates,
        "analysis": {"seed": seed},
        "limits": {"shard_cells": shard_cells},
    }
    if judge:
        body["judge"] = {"conditions": [{"name": "j", "model": "m", "provider": {"name": "oracle"}}], "repeats": 3}
    return Study.model_validate(body)


@settings(max_examples=40, deadline=None)
@given(
    replicates=st.integers(1, 6),
    shard_cells=st.integers(1, 40),
    n_tasks=st.integers(1, 60),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_every_cell_is_planned_once_and_replays_come_after_their_source(replicates, shard_cells, n_tasks, seed, data) -> None:
    source, live, replayed = (data.draw(st.integers(0, replicates - 1)) for _ in range(3))
    extra = [
        {"name": "twice", "kind": "reverify", "source": {"condition": "replay", "replicate": replayed}},
        {"name": "again", "kind": "reverify", "source": {"condition": "live", "replicate": live}},
    ]
    plan = study(replicates=replicates, shard_cells=shard_cells, seed=seed, source=source, extra=extra)
    shards = measured_shards(plan, n_tasks)
    cells = Counter((s.stack, s.condition, s.replicate, task) for s in shards for task in range(s.start, s.stop))
    assert set(cells.values()) == {1}
    assert len(cells) == 2 * 5 * replicates * n_tasks
    assert max(s.cells for s in shards) <= shard_cells
    assert len({s.name for s in shards}) == len(shards)
    place = {shard: index for index, shard in enumerate(shards)}
    for shard in shards:
        origins = source_shards(plan, shard, n_tasks)
        assert all(place[origin] < place[shard] for origin in origins)
        # A recording holds the whole replicate, a reverification takes its own block.
        blocks = [(origin.start, origin.stop) for origin in origins]
        kind = plan.condition(shard.condition).kind
        if kind == "reverify":
            assert blocks == [(shard.start, shard.stop)]
        elif kind == "replay":
            assert {task for start, stop in blocks for task in range(start, stop)} == set(range(n_tasks))
        assert (shard.purpose == "reverify") == (kind == "reverify")


def test_conditions_are_interleaved_in_permuted_blocks() -> None:
    shards = measured_shards(study(replicates=12, shard_cells=100), 50)
    blocks = [[s.condition for s in shards if s.replicate == r and s.condition != "replay" and s.stack == "a"] for r in range(12)]
    assert all(sorted(block) == ["cold", "live"] for block in blocks)
    assert len({tuple(block) for block in blocks}) == 2  # both orders occur
    replicates = [s.replicate for s in shards]
    assert replicates == sorted(replicates)  # a replicate ends before the next begins


def test_the_order_is_drawn_from_the_seed() -> None:
    one, same, other = (measured_shards(study(replicates=8, seed=seed), 50) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert set(one) == set(other)


def test_names_say_what_a_shard_is() -> None:
    assert Shard("gpt", "live", 3, 0, 500).name == "measure~gpt~live~r0003~t00000-00499"
    judging = judge_shards(study(judge=True, shard_cells=500), 30)
    assert {s.name for s in judging if s.replicate == 2} == {"judge~a~j~r0002~t00000-00029", "judge~b~j~r0002~t00000-00029"}
    assert len(judging) == 6
