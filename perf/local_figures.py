"""What `perf.local_model` prints at its end, from the store alone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import evalnoise

_FLOOR = """
select condition, n_tasks, n_replicates, score, w, w_bench_lo, w_bench_hi, w_gaffke_lo, w_gaffke_hi, variable_tasks
from noise_floor where protocol = ? order by condition
"""
_CLASSES = """
select condition, string_agg(number || ' ' || response_class, ', ' order by response_class)
from (select condition, response_class, count(*) as number from outcomes where protocol = ? group by all) group by all
"""
_TEXTS = """
select condition, count(*) filter (texts > 1), count(*)
from (
  select condition, task_id, count(distinct text_sha256) as texts from generations where protocol = ? group by all
) group by all order by all
"""
_CALLS = """
select sent_at, answered_at, input_tokens, cached_tokens, output_tokens from calls
where protocol = ? and answered and output_tokens is not null
"""
_REPLAYED = """
select
  count(*),
  count(*) filter (
    replay.outcome is not distinct from live.outcome and replay.candidate_sha256 is not distinct from live.candidate_sha256
  )
from outcomes as replay join outcomes as live using (protocol, stack, task_id)
where protocol = ? and replay.condition = 'replay' and live.condition = 'live' and live.replicate = 0
"""


def print_figures(store: str, seconds: dict[str, float], total: float, server_bytes: int | None) -> None:
    """Print the figures of the newest protocol of each study in the store, and what this command took."""
    connection = evalnoise.connect(store)

    def rows(query: str, *values: str) -> list[tuple[Any, ...]]:
        return connection.execute(query, list(values)).fetchall()

    for study, protocol in rows("select distinct study, protocol from noise_floor order by all"):
        print(f"\n== {study}, protocol {protocol[:12]}")
        texts = {row[0]: row[1:] for row in rows(_TEXTS, protocol)}
        classes = dict(rows(_CLASSES, protocol))
        for condition, *numbers in rows(_FLOOR, protocol):
            _print_condition(condition, numbers, texts[condition], classes[condition])
        cells, equal = rows(_REPLAYED, protocol)[0]
        if cells:
            print(f"replay: {equal} of {cells} outcomes and candidates equal to those of live, replicate 0")
        _print_calls(rows(_CALLS, protocol))
    connection.close()
    parts = ", ".join(f"{name} {value / 60:.1f}" for name, value in seconds.items())
    print(f"\nthis command: {total / 60:.1f} minutes ({parts})")
    if server_bytes is not None:
        print(f"model server: {server_bytes / 2**20:.0f} MiB at its peak")


def _print_condition(condition: str, numbers: list[Any], texts: tuple[int, int], classes: str) -> None:
    tasks, replicates, score, w, low, high, gaffke_low, gaffke_high, variable = numbers
    print(f"{condition}, {tasks} tasks x {replicates}: score {_number(score)}, answers {classes}")
    print(f"  w {_number(w)}, over new runs {_interval(low, high)}, over new tasks {_interval(gaffke_low, gaffke_high)} (Gaffke)")
    print(f"  of {texts[1]} tasks, {texts[0]} got more than one text and {variable} more than one outcome")


def _print_calls(calls: list[tuple[Any, ...]]) -> None:
    busy = busy_seconds([(sent, answered) for sent, answered, *_ in calls])
    inputs, cached, outputs = (sum(row[place] or 0 for row in calls) for place in (2, 3, 4))
    print(
        f"{len(calls)} calls, {inputs} tokens in, {cached} of them from the prompt cache, {outputs} tokens out; "
        f"calls were in flight for {busy / 60:.1f} minutes: {outputs / busy:.0f} tokens out per second"
    )


def busy_seconds(spans: list[tuple[datetime, datetime]]) -> float:
    """How long at least one span was open. A stop between two runs is in none."""
    total, end = 0.0, None
    for first, last in sorted(spans):
        begin = first if end is None else max(first, end)
        if last > begin:
            total += (last - begin).total_seconds()
            end = last
    return total


def _interval(low: float | None, high: float | None) -> str:
    return f"[{_number(low)}, {_number(high)}]"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.5f}"
