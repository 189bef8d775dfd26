"""The summary of a finished protocol, read from the catalog's views: what the terminal, the markdown page and Prefect show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalnoise.report.numbers import above, counted
from evalnoise.store.catalog import connect
from evalnoise.store.store import Store
from schemas.errors import BlockedError

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Summary:
    """Rows of the views for one protocol, as dictionaries by column."""

    study: str
    protocol: str
    noise_floor: Sequence[Row]
    truths: Sequence[Row]
    """Rows of `estimates` named w_true: what the oracle's rates imply."""
    contrasts: Sequence[Row]
    judges: Sequence[Row]
    """Rows of `estimates` about judge conditions."""
    budgets: Sequence[Row]
    checks: Sequence[Row]
    newest: bool
    """Whether the view `noise_floor` shows this protocol, and not a later one of the same study."""
    reverified: frozenset[str] = frozenset()
    """Conditions of kind `reverify`."""
    flips: Sequence[Row] = ()
    """Rows of `verifier_noise` for their candidates that both passed and failed."""
    left_out: Sequence[Row] = ()
    """`stack`, `lost` and `tasks` of each stack whose preflight left tasks out."""
    answers: Sequence[Row] = ()
    """Rows of `answer_counts`, judge conditions too."""


_QUERIES = {
    "noise_floor": "select * from noise_floor_all where study = $study and protocol = $protocol order by stack, condition",
    "truths": "select * from estimates where study = $study and protocol = $protocol and estimate = 'w_true' order by all",
    "contrasts": "select * from contrasts where study = $study and protocol = $protocol order by all",
    "judges": (
        "select * from estimates where study = $study and protocol = $protocol and estimate like 'verdict_%'"
        " order by stack, condition, estimate, note <> '', method desc, covers"
    ),
    "budgets": "select * from budgets where study = $study and protocol = $protocol order by all",
    "checks": "select * from checks where study = $study and protocol = $protocol order by blocks desc, severity, sentence",
    "answers": "select * from answer_counts where study = $study and protocol = $protocol order by stack, condition",
    "left_out": (
        "select stack, count(*) filter (outcome <> 'pass') as lost, count(*) as tasks from preflight"
        " where study = $study and protocol = $protocol group by stack having lost > 0 order by stack"
    ),
}


_FLIPS = """
select * from verifier_noise
where study = $study and protocol = $protocol and flipped order by stack, condition, position, candidate_sha256
"""
_FLIPS_SHOWN = 3
_PAIRS_SHOWN = 12
_NEWEST = "select 1 as shown from noise_floor where study = $study and protocol = $protocol limit 1"


def read_summary(store: Path, study: str, protocol: str) -> Summary:
    """The summary of one protocol. Raises StoreError."""
    connection = connect(store)
    try:
        found = {name: _rows(connection, query, study, protocol) for name, query in _QUERIES.items()}
        newest = bool(_rows(connection, _NEWEST, study, protocol))
        conditions = Store.open(store, create=False).protocol(protocol).study.get("conditions", ())
        reverified = frozenset(condition["name"] for condition in conditions if condition["kind"] == "reverify")
        flips = _rows(connection, _FLIPS, study, protocol) if reverified else []
    finally:
        connection.close()
    flips = [row for row in flips if row["condition"] in reverified]
    return Summary(study=study, protocol=protocol, newest=newest, reverified=reverified, flips=flips, **found)


def _rows(connection: Any, query: str, study: str, protocol: str) -> list[Row]:
    result = connection.execute(query, {"study": study, "protocol": protocol})
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def refuse_blocked(summary: Summary) -> None:
    """Raise BlockedError when a check says that the numbers must not be used."""
    blocking = [check for check in summary.checks if check["blocks"]]
    if blocking:
        raise BlockedError(
            f"study {summary.study}, protocol {summary.protocol[:12]}",
            expected="no blocking check",
            found=f"{len(blocking)}: {blocking[0]['sentence'].rstrip('.')}",
            remedy="The numbers are kept, but do not decide anything on them.",
        )


def true_w(summary: Summary, row: Row) -> float | None:
    """The oracle's w of a row's stack and condition, if the stack is an oracle's."""
    for truth in summary.truths:
        if (truth["stack"], truth["condition"]) == (row["stack"], row["condition"]):
            value: float | None = truth["value"]
            return value
    return None


def judge_rows(summary: Summary) -> list[dict[str, Any]]:
    """One row per stack and judge condition: `stack`, `condition`, and each estimate's row by its name without `verdict_`."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in summary.judges:
        key = (row["stack"], row["condition"])
        name = row["estimate"].removeprefix("verdict_")
        # Several intervals of one estimate: the first stands for it, one without a note if there is any; SQL has all.
        found.setdefault(key, {"stack": key[0], "condition": key[1]}).setdefault(name, row)
    return list(found.values())


def main_sentences(summary: Summary) -> list[str]:
    """One sentence per contrast, of the score and of w; of many pairs of stacks the first. The view `contrasts` has all methods."""
    told = [row for row in summary.contrasts if row["headline"]]
    # Rows older than the column have null there.
    between = [row for row in told if row.get("stack_b") not in {None, row.get("stack")}]
    within = [str(row["sentence"]) for row in told if row.get("stack_b") in {None, row.get("stack")}]
    more = len(between) - _PAIRS_SHOWN
    rest = [f"{counted(more, 'more pair')} of stacks: view contrasts, or `evalnoise compare`"] if more > 0 else []
    return within + [str(row["sentence"]) for row in between[:_PAIRS_SHOWN]] + rest


def left_out_sentences(summary: Summary) -> list[str]:
    """How many of the benchmark's tasks no condition measures, by stack; one sentence where all stacks lost as many."""
    stacks = {row["stack"] for row in summary.noise_floor}
    counts: dict[tuple[int, int], list[str]] = {}
    for row in summary.left_out:
        counts.setdefault((row["lost"], row["tasks"]), []).append(row["stack"])
    return [
        f"{'' if stacks <= set(names) else ', '.join(names) + ': '}{lost} of {counted(tasks, 'task')}"
        f" {'is' if lost == 1 else 'are'} not measured: preflight, see the checks."
        for (lost, tasks), names in counts.items()
    ]


_CLASSES = {
    "n_truncated": "truncated", "n_refused": "refused", "n_filtered": "filtered", "n_empty": "empty", "n_malformed": "malformed",
    "n_infrastructure": "not taken",
}  # fmt: skip


def answer_sentences(summary: Summary, name: Callable[[Row], str]) -> list[str]:
    """How many answers were not complete, and what the score would be with the cells that have no outcome; by condition."""
    told = []
    for row in summary.answers:
        counts = [f"{row[column]} {word}" for column, word in _CLASSES.items() if row[column]]
        if counts:
            told.append(f"{name(row)}: {', '.join(counts)} of {counted(row['n_answers'], 'answer')}.")
    for row in summary.noise_floor:
        if row["n_missing"]:
            bounds = f"{row['score_missing_fail']:.4f} had they all failed, {row['score_missing_pass']:.4f} had they all passed"
            cells = counted(row["n_missing"] + row["n_measured"], "cell")
            told.append(f"{name(row)}: {row['n_missing']} of {cells} without an outcome; the score would be {bounds}.")
    return told


def verification_sentences(summary: Summary, name: Callable[[Row], str]) -> list[str]:
    """What is known of the verifier's own noise: a sentence per reverify condition, and one on tasks near a limit of time."""
    rows = [row for row in summary.noise_floor if row["condition"] in summary.reverified and row["w"] is not None]
    near = [f"{name(row)} {row['near_limit']}" for row in summary.noise_floor if row["near_limit"]]
    told = f"tasks near a limit of time, whose verdict may hang on the machine's speed (view near_limit_tasks): {', '.join(near)}"
    return [_verifier_noise(summary, row, name(row)) for row in rows] + ([told] if near else [])


def _verifier_noise(summary: Summary, row: Row, name: str) -> str:
    flips = [flip for flip in summary.flips if (flip["stack"], flip["condition"]) == (row["stack"], row["condition"])]
    flipped = f"{row['variable_tasks']} of {counted(row['n_tasks'], 'task')} flipped"
    said = f"verifier noise, {name}: {flipped} in {row['n_replicates']} verifications (w {row['w']:.3g}"
    if row["w_bench_lo"] is not None and row["w_bench_hi"] is not None:
        said += f" [{row['w_bench_lo']:.3g}, {row['w_bench_hi']:.3g}]"
    said += ", above 1/4, which no true w is: too few replicates" if above(row["w"]) else ""
    shown = [f"{flip['task_id']} ({flip['reasons']})" for flip in flips[:_FLIPS_SHOWN]]
    if len(flips) > _FLIPS_SHOWN:
        shown.append(f"{len(flips) - _FLIPS_SHOWN} more (view verifier_noise)")
    return f"{said})" + (f": {', '.join(shown)}" if shown else "")
