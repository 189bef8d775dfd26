"""What a run shows while it works: a bar that fits the terminal, or plain lines."""

from __future__ import annotations

import sys

import pytest
from rich.console import Console

from flows.views.progress import Bar, _Lines, describe, describe_briefly, watching
from tasks.progress import Tally

SHARD = "measure~oracle~temperature-zero~r0003~t00000-00048"


def tally(**changes) -> Tally:
    plain = {"cells_planned": 900, "cells_done": 60, "cells_resumed": 8, "failures": 3, "calls": 70, "cost_usd": 0.12}
    return Tally(**(plain | {"stage": SHARD} | changes))


def drawn(width: int, shown: Tally, elapsed: float = 0.0) -> str:
    bar = Bar()
    bar.update(shown)
    bar.begun -= elapsed
    console = Console(width=width, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(bar)
    (line,) = capture.get().splitlines()
    assert len(line) <= width
    return line


class TestBar:
    def test_the_essentials_are_there_at_80_columns(self):
        line = drawn(80, tally(), 5.76)
        assert "68/900 cells, 3 unmeasured, $0.12, 1:20 left" in line
        assert line.index("68/900") == 11
        assert "━━━━━" in drawn(80, tally(cells_done=442, stage=""))

    def test_unpriced_calls_push_the_shard_out_first(self):
        line = drawn(80, tally(cost_unknown=12))
        assert "68/900 cells, 3 unmeasured, $0.12 + 12 unpriced, 0:00 left" in line
        assert "t00000" not in line

    def test_the_end_of_a_shard_stays(self):
        assert drawn(80, tally()).rstrip().endswith("…zero~r0003~t00000-00048")

    def test_wide_terminals_show_all(self):
        assert f"8 resumed, 3 unmeasured or unparsed, 70 calls, $0.1200, 0:00 left {SHARD}" in drawn(180, tally())
        assert "calls" not in drawn(120, tally())
        assert SHARD in drawn(120, tally())

    def test_before_the_plan(self):
        assert "freeze" in drawn(80, Tally(stage="freeze"))
        assert "preparing" in drawn(80, Tally())


class TestWords:
    @pytest.mark.parametrize(
        ("changes", "left"),
        [
            ({"cells_done": 0}, "? left"),
            ({"cells_done": 0, "cells_resumed": 900}, "0:00 left"),
            ({"cells_done": 892}, "0:00 left"),
            ({"cells_planned": 0, "cells_done": 0, "cells_resumed": 0}, "? left"),
            ({"cells_done": 446}, "1:00 left"),
            ({"cells_done": 1, "cells_planned": 90}, "1:21:00 left"),
        ],
    )
    def test_time_left(self, changes, left):
        assert describe(tally(**changes), 60.0).endswith(f", {left}")
        assert describe_briefly(tally(**changes), 60.0).endswith(f", {left}")

    def test_cost(self):
        assert ", 70 calls, $0.1200 + 12 unpriced, " in describe(tally(cost_unknown=12), 1)
        assert ", $0.12 + 12 unpriced, " in describe_briefly(tally(cost_unknown=12), 1)
        assert ", $0.0012, " in describe_briefly(tally(cost_usd=0.0012), 1)
        assert ", $0.00, " in describe_briefly(tally(cost_usd=0.0), 1)

    def test_what_was_sent_again_and_what_the_limit_leaves(self):
        shown = tally(sendings_repeated=4, max_cost=5.0, spent=1.75)
        assert ", 70 calls (4 requests sent again), $1.7500 of $5.00, " in describe(shown, 1)
        assert ", $1.75 of $5.00, " in describe_briefly(shown, 1)
        shown = tally(max_cost=5.0, spent=1.75, held=0.5, cost_unknown=1)
        assert ", 70 calls, $1.7500 + $0.5000 held of $5.00, " in describe(shown, 1)
        assert ", $1.75 + $0.50 held of $5.00, " in describe_briefly(shown, 1)
        assert "70 calls (1 request sent again), $0.1200," in describe(tally(sendings_repeated=1), 1)

    def test_singular(self):
        text = describe(tally(cells_planned=1, cells_done=0, cells_resumed=1, calls=1, calls_reused=1, rechecks=1), 1)
        assert text == (
            "1/1 cell, 1 resumed, 3 unmeasured or unparsed, 1 call, $0.1200, 1 answer from the journal, 1 re-check, 0:00 left"
        )


class TestLines:
    def test_outside_a_terminal(self, capsys):
        with watching() as watcher:
            watcher.update(tally(cells_done=0, cells_resumed=900, stage=""))
            watcher.update(tally())
        assert capsys.readouterr().err == (
            "evalnoise: 900/900 cells, 900 resumed, 3 unmeasured or unparsed, 70 calls, $0.1200, 0:00 left\n"
        )

    def test_a_terminal_without_cursor_gets_lines(self, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "dumb")
        with watching() as watcher:
            assert isinstance(watcher, _Lines)
