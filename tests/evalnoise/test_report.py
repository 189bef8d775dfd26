"""The summary in a terminal of 80 columns and as a page: names and intervals whole, what is undefined explained."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from rich.console import Console

from evalnoise.report import terminal
from evalnoise.report.markdown import as_markdown
from evalnoise.report.numbers import counted
from evalnoise.report.summary import Summary, verification_sentences

REASON = "no task was measured twice: a variance needs 2 runs"
SENTENCE = "w, live - temperature-zero: not resolved, somewhat +0.0556 [-0.0269, +0.1380], 95 % over new tasks (paired t)"


def floor(condition: str, stack: str = "oracle", **changes):
    plain = {
        "stack": stack, "condition": condition, "n_tasks": 1640, "n_replicates": 10, "n_unmeasured": 12, "score": 0.5278,
        "score_run_sd": 0.0833, "w": 0.08333, "w_lo": 0.01, "w_hi": 0.16667, "w_bench_lo": 0.02965, "w_bench_hi": 0.17744,
        "w_gaffke_lo": 0.009, "w_gaffke_hi": 0.18, "variable_tasks": 23, "delta": 0.02, "runs": 273, "runs_lo": 1,
        "runs_hi": 546, "runs_recommended": 273, "w_undefined": "", "near_limit": 0, "n_missing": 0, "n_measured": 16_400,
    }  # fmt: skip
    return plain | changes


def undefined(condition: str):
    missing = dict.fromkeys(
        ("score_run_sd", "w", "w_lo", "w_hi", "w_bench_lo", "w_bench_hi", "variable_tasks", "runs", "runs_recommended")
    )
    return floor(condition, **missing, w_undefined=REASON)


def summary(*rows, judge: str = "judge-very-noisy", newest: bool = True) -> Summary:
    truths = [{"stack": row["stack"], "condition": row["condition"], "value": 0.09427} for row in rows]
    names = ("w", "w_true", "variable_tasks", "disagreement", "false_accepts", "false_rejects", "unparsed_share")
    judges = [
        {"stack": "oracle", "condition": judge, "estimate": f"verdict_{name}", "value": 0.5, "lo": None, "hi": None, "covers": ""}
        for name in names
    ]
    contrast = {
        "stack": "oracle", "condition_a": "live", "condition_b": "temperature-zero", "estimate": "w", "covers": "population",
        "lo": -0.0269, "hi": 0.138, "method": "paired t", "note": "", "sentence": SENTENCE, "headline": True,
    }  # fmt: skip
    return Summary("s", "f" * 64, rows, truths, [contrast], judges, [], [], newest)


@pytest.fixture
def shown(monkeypatch):
    def show(found: Summary, width: int = 80, *, tty: bool = True) -> list[str]:
        console = Console(width=width, force_terminal=tty, color_system=None, highlight=False, markup=False)
        monkeypatch.setattr(terminal, "Console", lambda **_: console)
        with console.capture() as capture:
            terminal.print_summary(found, Path("x"))
        return [line.rstrip() for line in capture.get().splitlines()]

    return show


def test_all_three_tables_fit_80_columns(shown):
    lines = shown(summary(floor("live"), undefined("temperature-zero")))
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    rows = [line.split() for line in lines]
    assert ["live", "1640", "10", "12", "0.5278", "0.0833", "0.08333", "0.09427", "23"] in rows
    assert ["temperature-zero", "1640", "10", "12", "0.5278", *["undefined"] * 2, "0.09427", "undefined"] in rows
    assert "live 0.08333 [0.01000, 0.16667] [0.02965, 0.17744] 273 [1, 546]" in [" ".join(row) for row in rows]
    assert ["judge-very-noisy", "0.50000", "0.50000", "0", "0.500", "0", "0", "0.500"] in rows


def test_columns_have_more_room_where_there_is_some(shown):
    line = "live              0.08333  [0.01000, 0.16667]  [0.02965, 0.17744]  273 [1, 546]"
    rows = [floor("live"), floor("temperature-zero")]
    assert line in shown(summary(*rows), 100)
    assert line.replace("  [", " [") not in shown(summary(*rows), 100)


def test_a_long_name_folds_and_numbers_do_not(shown):
    lines = shown(summary(floor("temperature-zero", "gpt-4.1-mini"), floor("live", "another-stack-of-mine")))
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= 80
    assert (
        "".join(line.split()[0] for line in lines if line.startswith(("gpt-4.1-mini", "temperature"))).count("temperature-zero")
        == 2
    )
    assert sum("[0.01000, 0.16667]" in line for line in lines) == 2


def test_what_is_undefined_is_explained_once_per_reason(shown):
    lines = shown(
        summary(undefined("live"), undefined("cold"), floor("replay", w_bench_lo=None, w_bench_hi=None, w_undefined="no"))
    )
    text = " ".join(" ".join(lines).split())
    assert text.count(f"undefined for live, cold: {REASON}.") == 1
    assert "undefined for replay: no." in text
    assert "undefined for" not in " ".join(shown(summary(floor("live", w_undefined="of another method"))))


def test_sentences_break_at_words_and_never_inside_an_interval(shown):
    lines = shown(summary(floor("live")), 72)
    start = lines.index("Contrasts") + 1
    assert lines[start : start + 2] == [
        "  w, live - temperature-zero: not resolved, somewhat +0.0556",
        "    [-0.0269, +0.1380], 95 % over new tasks (paired t)",
    ]
    assert f"  {SENTENCE}" in shown(summary(floor("live")), 80, tty=False)


def test_a_small_pilot_is_told_what_to_plan_with(shown):
    said = " ".join(" ".join(shown(summary(floor("live", runs_recommended=455), floor("cold")))).split())
    assert "plan with the cautious budget of runs: live 455." in said
    assert "Small pilots" not in " ".join(shown(summary(floor("live"))))


def test_few_variable_tasks_show_gaffkes_interval_and_none_no_upper_budget(shown):
    nothing = {
        "w": 0.0,
        "w_lo": 0.0,
        "w_hi": 0.0,
        "w_gaffke_lo": 0.0,
        "w_gaffke_hi": 0.004,
        "variable_tasks": 0,
        "runs": 1,
        "runs_hi": 1,
    }
    lines = [" ".join(line.split()) for line in shown(summary(floor("live", variable_tasks=19), floor("replay", **nothing)))]
    assert "live 0.08333 [0.00900, 0.18000]* [0.02965, 0.17744] 273 [1, 546]" in lines
    assert "replay 0.00000 [0.00000, 0.00400]* [0.02965, 0.17744] >= 1" in lines
    assert any(line.startswith("* Gaffke's interval") for line in lines)
    assert not any("*" in line for line in shown(summary(floor("live"))))
    page = as_markdown(summary(floor("replay", **nothing)))
    assert "&gt;= 1" in page
    assert "Gaffke" in page


def test_the_page_cannot_be_broken_by_text_from_outside() -> None:
    page = as_markdown(summary(floor("a|b<script>alert(1)</script>\n# no `x` [y](z)")))
    (line,) = [line for line in page.splitlines() if "script" in line]
    assert "<script" not in page
    assert line.count("|") - line.count("\\|") == 14
    assert "\\[y\\](z)" in line


def test_the_query_shows_this_protocol(shown):
    assert shown(summary(floor("live")))[-1] == "  evalnoise sql 'from noise_floor' --store x"
    query = "\"from noise_floor_all where protocol like 'ffffffffffff%'\""
    assert shown(summary(floor("live"), newest=False))[-1] == f"  evalnoise sql {query} --store x"


def test_the_page_has_the_reasons_too():
    page = as_markdown(summary(undefined("live"), floor("cold")))
    assert f"\n- undefined for oracle live: {REASON}.\n" in page
    assert "undefined for" not in as_markdown(summary(floor("live")))


def again(**changes):
    return floor("again", **({"n_tasks": 49, "n_replicates": 5, "w": 0.0, "w_bench_lo": 0.0, "w_bench_hi": 0.00606} | changes))


def flip(number: int, condition: str = "again", stack: str = "oracle"):
    return {"stack": stack, "condition": condition, "task_id": f"t/{number}", "reasons": "pass 4, cpu-limit 1"}


def verification(rows, flips=()) -> list[str]:
    found = dataclasses.replace(summary(*rows), reverified=frozenset({"again"}), flips=flips)
    return verification_sentences(found, lambda row: row["condition"])


def test_a_verifier_without_noise_is_a_number_too():
    assert verification([floor("live"), again(variable_tasks=0)]) == [
        "verifier noise, again: 0 of 49 tasks flipped in 5 verifications (w 0 [0, 0.00606])"
    ]
    assert verification([floor("live")]) == []
    # One verification has no variance: the table says why.
    assert verification([{**undefined("again"), "n_tasks": 49}]) == []


def test_three_flipping_tasks_are_named():
    varied = again(variable_tasks=5, w=0.02, w_bench_lo=None, w_bench_hi=None)
    head = "verifier noise, again: 5 of 49 tasks flipped in 5 verifications (w 0.02): "
    three = ", ".join(f"t/{number} (pass 4, cpu-limit 1)" for number in range(3))
    flips = [flip(9, stack="other"), *map(flip, range(3))]
    assert verification([varied], flips) == [head + three]
    assert verification([varied], [*flips, flip(3), flip(4)]) == [f"{head}{three}, 2 more (view verifier_noise)"]


def test_tasks_near_a_limit_are_told_in_one_line(shown):
    rows = [floor("live", near_limit=2), floor("cold"), again(variable_tasks=0, near_limit=1)]
    told = "tasks near a limit of time, whose verdict may hang on the machine's speed (view near_limit_tasks): live 2, again 1"
    assert verification(rows)[1:] == [told]
    lines = shown(summary(*rows))
    assert " ".join(" ".join(lines).split()).count(told) == 1
    assert lines[lines.index("Verification") + 1].startswith("  tasks near a limit")
    page = as_markdown(summary(*rows))
    assert "## Verification\n\n- tasks near a limit of time" in page
    assert "oracle live 2, oracle again 1" in page
    assert "Verification" not in as_markdown(summary(floor("live"))) + "".join(shown(summary(floor("live"))))


def test_tasks_that_preflight_left_out_are_told_under_the_scores(shown):
    lost = {"stack": "oracle", "lost": 2, "tasks": 4}
    told = "2 of 4 tasks are not measured: preflight, see the checks."
    found = dataclasses.replace(summary(floor("live")), left_out=[lost])
    lines = shown(found)
    assert f"  {told}" in lines[: lines.index("How sure w is, and runs per arm that resolve a difference of scores")]
    assert f"- {told}\n" in as_markdown(found)
    assert "not measured" not in "".join(shown(summary(floor("live")))) + as_markdown(summary(floor("live")))
    several = dataclasses.replace(summary(floor("live"), floor("live", "b")), left_out=[lost | {"lost": 1}])
    assert "  oracle: 1 of 4 tasks is not measured: preflight, see the checks." in shown(several)
    both = dataclasses.replace(several, left_out=[lost, lost | {"stack": "b"}])
    assert f"  {told}" in shown(both)


def test_a_w_that_cannot_be_true_is_marked(shown):
    impossible = {"w": 1 / 3, "w_lo": 1 / 3, "w_hi": 1 / 3, "w_bench_lo": 0.11413, "w_bench_hi": 0.25, "runs": 6541}
    impossible |= {"runs_lo": 6541, "runs_hi": 6541}
    lines = [" ".join(line.split()) for line in shown(summary(floor("live", **impossible), floor("cold", w=0.25)))]
    # A budget's interval of width zero is none.
    assert "live 0.33333! [0.33333, 0.33333] [0.11413, 0.25000] 6541" in lines
    assert "! w is above 1/4, which no true w is: too few replicates. Its interval for new runs ends at 1/4" in " ".join(lines)
    assert not any("!" in line for line in lines if line.startswith("cold"))
    page = as_markdown(summary(floor("live", **impossible)))
    assert "0.33333\\! " in page
    assert "- \\! w is above 1/4" in page
    assert "above 1/4" not in "".join(shown(summary(floor("live")))) + as_markdown(summary(floor("live")))
    told = "(w 0.333 [0.114, 0.25], above 1/4, which no true w is: too few replicates)"
    assert verification([again(**impossible, variable_tasks=49)])[0].endswith(told)


def test_counted():
    assert [counted(1, "task"), counted(2, "task"), counted(0, "reply", "replies")] == ["1 task", "2 tasks", "0 replies"]


def test_answers_that_are_not_complete_and_missing_cells_are_told_by_condition(shown):
    """Hard inputs 2, 3 and 11."""
    none = dict.fromkeys(("n_truncated", "n_refused", "n_filtered", "n_empty", "n_malformed", "n_infrastructure"), 0)
    bounds = {"n_missing": 10, "n_measured": 90, "score_missing_fail": 0.8, "score_missing_pass": 0.9}
    answers = [
        {"stack": "oracle", "condition": "live", "n_answers": 100, **none},
        {"stack": "oracle", "condition": "j", "n_answers": 50, **none, "n_truncated": 39, "n_infrastructure": 1},
    ]
    found = dataclasses.replace(summary(floor("live", **bounds)), answers=answers)
    told = [
        "j: 39 truncated, 1 not taken of 50 answers.",
        "live: 10 of 100 cells without an outcome; the score would be 0.8000 had they all failed, 0.9000 had they all passed.",
    ]
    lines = shown(found, 200)
    assert [line.strip() for line in lines if line.strip() in told] == told
    page = as_markdown(found).replace("\\", "")
    assert all(f"oracle {sentence}" in page for sentence in told)
