"""`evalnoise sql`, `status`, `show`, `budget`, `catalog` as a user types them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from evalnoise.store.store import Store
from flows.cli import app
from flows.views.show import _block
from flows.views.sql import Format, write_rows
from tests.support.small_store import GOOD, HOSTILE, build, digest

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "store"
    build(folder)
    return folder


def run(*arguments, code=0, **environment) -> str:
    result = RUNNER.invoke(app, [str(a) for a in arguments], env=environment)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output if code else result.stdout


def sql(root, query, form="csv", code=0) -> str:
    return run("sql", query, "--store", root, "--format", form, code=code)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestSql:
    def test_csv_is_exact(self, root):
        floats = "0.3095::double a, 0.1+0.2::double b, 1e-7::double c, 342125/1000000 d"
        query = f"select {floats}, null e, '' f, 'x,\"y\"' g, true h, 170141183460469231731687303715884105727 i"
        assert sql(root, query) == (
            'a,b,c,d,e,f,g,h,i\n0.3095,0.30000000000000004,1e-07,0.342125,,"","x,""y""",true,170141183460469231731687303715884105727\n'
        )

    def test_csv_of_nested_values_and_times(self, root):
        times = "timestamptz '2026-01-02 03:04:05+01' c, date '2026-01-02' d"
        query = f"select [1, null] a, {{'x': 0.5}} b, {times}, 'ab'::blob e, 'nan'::double f, 1.50::decimal(5,2) g"
        assert sql(root, query).splitlines()[1] == '"[1, null]","{""x"": 0.5}",2026-01-02 02:04:05+00:00,2026-01-02,6162,nan,1.50'

    def test_csv_survives_a_round_trip(self, root):
        text = sql(root, f"select candidate from generations where candidate_sha256 = '{digest(HOSTILE)}'")
        assert list(csv.reader(io.StringIO(text, newline=""))) == [["candidate"], [HOSTILE]]

    def test_json_is_one_array(self, root):
        query = "select range a, null b, 'nan'::double c, [1.5] d, \x27\x1b\x27 e, 1 as a from range(2)"
        text = sql(root, query, "json")
        assert json.loads(text) == [{"a": i, "b": None, "c": None, "d": [1.5], "e": "\x1b", "a_1": 1} for i in range(2)]
        assert "\x1b" not in text
        assert json.loads(sql(root, "select 1 where false", "json")) == []

    def test_table_aligns_and_escapes(self, root):
        text = sql(
            root, "select replicate, candidate from generations where condition = 'live' and position = 1 order by 1", "table"
        )
        first, rule, *rows = text.splitlines()
        assert first.split() == ["replicate", "candidate"]
        assert set(rule) == {"-", " "}
        assert rows[0] == r"        0  def f(x):\n    return x\n"
        assert r"\x1b[2J" in rows[1]
        assert "\x1b" not in text
        assert "\u202e" not in text

    def test_table_stops(self, root):
        lines = sql(root, "select range from range(5000)", "table").splitlines()
        assert len(lines) == 1003
        assert lines[-1] == "… more rows: the table stops at 1000; --format csv writes all"
        assert len(sql(root, "select range from range(5000)").splitlines()) == 5001

    def test_views_are_there(self, root):
        assert sql(root, "select condition, count(*) n from outcomes group by 1 order by 1") == "condition,n\nlive,6\nreplay,6\n"

    def test_csv_on_a_terminal_is_escaped(self):
        out = Terminal()
        write_rows(duckdb.execute("select 'b' || chr(27) || '[2J' as \"a\x1b\""), Format.CSV, out)
        assert out.getvalue() == "a\\x1b\nb\\x1b[2J\n"

    def test_a_table_wider_than_the_terminal_stands_upright(self, monkeypatch):
        monkeypatch.setenv("COLUMNS", "19")
        query = "select 'aaaaaaaaaaaa' as first, 1.5::double as second from range(2)"
        out = Terminal()
        write_rows(duckdb.execute(query), Format.TABLE, out)
        assert out.getvalue() == "first   aaaaaaaaaaa\n        a\nsecond  1.5\n\nfirst   aaaaaaaaaaa\n        a\nsecond  1.5\n"
        monkeypatch.setenv("COLUMNS", "80")
        out = Terminal()
        write_rows(duckdb.execute(query), Format.TABLE, out)
        assert out.getvalue().splitlines()[0] == "first         second"

    def test_upright_text_is_whole(self, monkeypatch):
        words = " ".join(f"word{i}" for i in range(60))
        monkeypatch.setenv("COLUMNS", "40")
        out = Terminal()
        write_rows(duckdb.execute(f"select 1 as id, '{words}' as note, repeat('x', 90) as long, '' as none"), Format.TABLE, out)
        lines = out.getvalue().splitlines()
        assert max(map(len, lines)) <= 40
        assert "…" not in out.getvalue()
        assert " ".join(line[6:] for line in lines if "word" in line) == words
        assert "".join(line[6:] for line in lines if "x" in line) == "x" * 90
        assert (lines[0], lines[1], lines[-1]) == ("id    1", "note  word0 word1 word2 word3 word4", "none")

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            ("selec 1", "Parser Error: syntax error at or near"),
            ("select * from outcome", "outcomes"),
            ("select 1/'x'", "Conversion Error"),
            ("", "expected one query, found nothing"),
            ("/* only a comment */", "expected one query, found nothing"),
            ("select 1; select 2", "expected one query, found 2"),
            ("select 1; drop view outcomes;", "expected one query, found 2"),
            ("drop view outcomes", "The catalog is read-only. To keep a result, redirect the output or use: copy"),
            ("create table t (a int)", "The catalog is read-only."),
        ],
    )
    def test_mistakes(self, root, query, message):
        assert message in sql(root, query, code=2)

    @pytest.mark.parametrize("query", ["select 7 a;", "select 7 a; -- done", "pivot (select 7 x, 'a' y) on y using first(x)"])
    def test_one_statement_may_end_in_a_semicolon_or_mean_several(self, root, query):
        assert sql(root, query) == "a\n7\n"

    def test_unknown_format_and_missing_store(self, root, tmp_path):
        assert "--format xml: expected table, csv or json" in sql(root, "select 1", "xml", code=2)
        assert "expected a store, found no such folder" in sql(tmp_path / "none", "select 1", code=6)

    def test_store_from_the_environment(self, root):
        assert run("sql", "select 1 a", "--format", "csv", EVALNOISE_STORE=str(root)) == "a\n1\n"

    def test_results_can_be_copied_out(self, root, tmp_path):
        sql(root, f"copy (select 7 a) to '{tmp_path / 'x.csv'}' (header)")
        assert (tmp_path / "x.csv").read_text() == "a\n7\n"

    def test_closed_pipe_is_quiet(self, root):
        command = f"{sys.executable} -m flows sql 'select range from range(300000)' --store '{root}' --format csv | head -1"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
        assert (done.stdout, done.stderr) == ("range\n", "")


class TestStatus:
    def test_counts_and_cost(self, root):
        text = run("status", "--store", root)
        header, _, heading, line = text.splitlines()[:4]
        names = ["protocol", "frozen", "(UTC)", "state", "tasks", "repl.", "sealed", "sent", "cost", "unpriced"]
        assert header.split() == names
        assert heading == "study demo"
        assert line.split()[-7:] == ["stopped", "3", "2", "6/7", "4", "$0.2500", "2"]

    def test_a_named_study_lists_what_is_missing(self, root, tmp_path):
        assert "missing analysis" in run("status", "demo", "--store", root)
        assert "missing analysis" not in run("status", "--store", root)
        file = tmp_path / "s.yaml"
        stacks = "[{name: a, model: m, provider: {name: oracle}}]"
        file.write_text(f"study: demo\nbenchmark: {{name: starter}}\nstacks: {stacks}\nconditions: [{{name: live, kind: live}}]\n")
        assert "missing analysis" in run("status", file, "--store", root)

    def test_unknown_study(self, root):
        assert "expected the study 'nope', found demo" in run("status", "nope", "--store", root, code=6)

    def test_empty_store(self, tmp_path):
        Store.open(tmp_path / "s")
        assert "No study was frozen" in run("status", "--store", tmp_path / "s")

    def test_complete(self, tmp_path):
        made = build(tmp_path)
        from evalnoise.store.store import PartitionWrite
        from schemas.tables import CHECKS

        made.commit("analysis", [PartitionWrite(CHECKS, {}, [], "000")])
        assert run("status", "--store", tmp_path).splitlines()[3].split()[-7:-3] == ["complete", "3", "2", "7/7"]

    @pytest.mark.parametrize(
        ("pid", "host", "state"), [(os.getpid(), None, "running"), (2**22 + 1, None, "stopped"), (1, "elsewhere", "running")]
    )
    def test_who_is_at_work(self, tmp_path, pid, host, state):
        made = build(tmp_path)
        facts = {"host": host or socket.gethostname(), "pid": pid, "started": "2026-01-01T00:00:00+00:00", "command": ""}
        (made.path.parent / "lock.json").write_text(json.dumps(facts))
        text = run("status", "--store", tmp_path)
        assert state in text
        assert ("is at work" in text) == (state == "running")

    def test_a_damaged_file_is_an_error_with_a_remedy(self, tmp_path):
        made = build(tmp_path)
        next(made.path.glob("calls/**/*.parquet")).write_bytes(b"not parquet")
        assert "expected a Parquet file" in run("status", "--store", tmp_path, code=6)


class TestShow:
    def test_everything_of_a_task(self, root):
        text = run("show", "Human/1", "--store", root, COLUMNS="130")
        assert "Human/1  tiny, position 1, function" in text
        assert "Write f for task 1.\n[red]\\x1b[31m\n" in text
        assert re.search(r"\na, live\npassed +1 of 2 *\nreplicate 0 +pass +A *\nreplicate 1 +fail +B +mismatch", text)
        assert "fail: mismatch: input 0: expected 1, found \\x1b[5m2" in text
        assert "[bold red]x[/]" in text
        assert not {"\x1b", "\x07", "\u202e"} & set(text)

    def test_candidates_stand_side_by_side_when_there_is_room(self, root):
        def lines(width):
            # What Rich takes for a terminal, of that size and without colours.
            terminal = {"FORCE_COLOR": "1", "TERM": "dumb", "LINES": "25", "COLUMNS": str(width)}
            return run("show", "Human/1", "--condition", "live", "--store", root, **terminal).splitlines()

        assert any("A  replicate 0 " in line and "B  replicate 1" in line for line in lines(130))
        assert not any("A  replicate 0 " in line and "B  replicate 1" in line for line in lines(80))
        assert not any(line.endswith(" ") for width in (80, 130) for line in lines(width))

    def test_the_same_candidate_has_one_letter_everywhere(self, root):
        text = run("show", "Human/0", "--store", root, COLUMNS="130")
        assert text.count("A  replicates 0, 1") == 2
        assert "B" not in text
        assert text.count(GOOD.splitlines()[1]) == 1
        assert "as under a, live" in text

    def test_verdicts(self, root):
        text = run("show", "Human/1", "--store", root, COLUMNS="130")
        assert "unparsed (no verdict line)" in text
        assert "pass 80" in run("show", "Human/0", "--store", root, COLUMNS="130")

    def test_condition(self, root):
        text = run("show", "Human/1", "--condition", "replay", "--store", root, COLUMNS="130")
        assert "a, replay" in text
        assert "a, live" not in text
        assert "mismatch" not in text
        assert "There are: judge, live, replay." in run("show", "Human/1", "--condition", "repaly", "--store", root, code=6)

    def test_a_task_that_cannot_be_measured(self, root):
        text = run("show", "Human/2", "--store", root, COLUMNS="130")
        assert "not measurable by stack a: oom" in text
        assert "passed       0 of 0" in text
        assert "reference-unusable" in text

    def test_unknown_task_and_study(self, root):
        assert "Did you mean Human/" in run("show", "Human/9", "--store", root, code=6)
        assert "expected a task 'x'" in run("show", "x", "--study", "nope", "--store", root, code=6)

    def test_the_newest_protocol_wins(self, tmp_path):
        build(tmp_path)
        newer = build(tmp_path, replicates=3)
        assert f"protocol {newer.protocol[:12]}" in run("show", "Human/0", "--store", tmp_path)
        other = build(tmp_path, study="other")
        assert "study other" in run("show", "Human/0", "--store", tmp_path)
        assert f"protocol {newer.protocol[:12]}" in run("show", "Human/0", "--study", "demo", "--store", tmp_path)
        assert other.protocol != newer.protocol

    def test_long_texts_are_cut(self):
        assert _block("a\nb\nc", lines=2) == "a\nb\n… cut"
        assert _block("a\nb\n", lines=2) == "a\nb"
        assert len(_block("x" * 100_000)) < 13_000


class TestBudget:
    def test_json(self):
        text = run("budget", "--w", "0.03013", "--tasks", "164", "--delta", "0.02", "--json")
        found = json.loads(text)
        assert found["runs"] == 8
        assert (found["w"], found["tasks"], found["delta"], found["alpha"], found["power"]) == (0.03013, 164, 0.02, 0.05, 0.8)
        assert found["covers"] == "benchmark"
        assert found["method"]

    def test_words(self):
        text = run("budget", "--w", "0.03013", "--tasks", "164", "--delta", "0.02")
        assert text.splitlines()[0] == "8 runs per arm resolve a difference of 0.02 on 164 tasks (alpha 0.05, power 0.8)."
        one = run("budget", "--w", "0.001", "--tasks", "1", "--delta", "0.5")
        assert one.startswith("1 run per arm resolves a difference of 0.5 on 1 task (alpha")
        assert "nothing varied" in run("budget", "--w", "0", "--tasks", "164", "--delta", "0.02")

    def test_alpha_and_power(self):
        more = run("budget", "--w", "0.03013", "--tasks", "164", "--delta", "0.02", "--alpha", "0.01", "--power", "0.9", "--json")
        assert json.loads(more)["runs"] == 14

    @pytest.mark.parametrize(
        ("w", "tasks", "delta", "message"),
        [
            ("0.6", 5, "0.1", "--w is a variance"),
            ("nan", 5, "0.1", "--w is a variance"),
            ("0.1", 0, "0.1", "at least 1 task"),
            ("0.1", 5, "0", "delta"),
            ("0.1", 5, "1e-200", "too small"),
            ("x", 5, "1", ""),
        ],
    )
    def test_mistakes(self, w, tasks, delta, message):
        assert message in run("budget", "--w", w, "--tasks", tasks, "--delta", delta, code=2)


class TestCatalog:
    def test_rebuild_after_a_move(self, tmp_path):
        build(tmp_path / "a")
        run("catalog", "--store", tmp_path / "a")
        (tmp_path / "a").rename(tmp_path / "b")
        assert run("catalog", "--store", tmp_path / "b").strip() == str(tmp_path / "b" / "evalnoise.duckdb")
        assert sql(tmp_path / "b", "select count(*) n from outcomes") == "n\n12\n"

    def test_missing(self, tmp_path):
        assert "expected a store" in run("catalog", "--store", tmp_path / "none", code=6)
        assert not (tmp_path / "none").exists()


def test_times_of_calls_are_utc(root):
    assert (
        sql(root, "select distinct sent_at from calls")
        == f"sent_at\n{datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).isoformat(sep=' ')}\n"
    )
