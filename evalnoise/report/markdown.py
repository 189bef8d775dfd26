"""The summary as a markdown page."""

from __future__ import annotations

import html
from collections.abc import Iterable

from evalnoise.report.numbers import (
    ABOVE,
    STAR,
    above,
    for_new_tasks,
    interval,
    marked_w,
    missing_reasons,
    number,
    planning_advice,
    runs,
)
from evalnoise.report.summary import Summary, answer_sentences, left_out_sentences, main_sentences, true_w, verification_sentences

_HEADER = (
    "stack", "condition", "tasks", "replicates", "unmeasured", "score", "run SD", "w", "population", "benchmark", "variable",
    "runs", "true w",
)  # fmt: skip


def as_markdown(summary: Summary) -> str:
    """A page with the noise floor, the verifier's own noise, the contrasts, the judges and the checks. Outside text is escaped."""
    parts = [f"# Noise study {_safe(summary.study)}", f"Protocol `{summary.protocol}`", "## Noise floor", _noise_floor(summary)]
    missing = missing_reasons(summary.noise_floor, lambda row: f"{row['stack']} {row['condition']}")
    starred = [STAR] if any(for_new_tasks(row).endswith("*") for row in summary.noise_floor) else []
    impossible = [ABOVE] if any(above(row["w"]) for row in summary.noise_floor) else []
    answers = answer_sentences(summary, lambda row: f"{row['stack']} {row['condition']}")
    advice = planning_advice(summary.noise_floor, lambda row: f"{row['stack']} {row['condition']}")
    notes = [*left_out_sentences(summary), *answers, *starred, *impossible, *advice, *missing]
    parts += [_bullets(notes)] if notes else []
    verified = verification_sentences(summary, lambda row: f"{row['stack']} {row['condition']}")
    parts += ["## Verification", _bullets(verified)] if verified else []
    parts += ["## Contrasts", _bullets(main_sentences(summary))]
    if summary.judges:
        parts += ["## Judges", _judges(summary)]
    parts += ["## Checks", _bullets(f"{row['severity']}: {row['sentence']}" for row in summary.checks)]
    return "\n\n".join(parts) + "\n"


def _noise_floor(summary: Summary) -> str:
    lines = [_line(_HEADER), _line("---" for _ in _HEADER)]
    for row in summary.noise_floor:
        truth = true_w(summary, row)
        cells = (
            row["stack"], row["condition"], row["n_tasks"], row["n_replicates"], row["n_unmeasured"], number(row["score"]),
            number(row["score_run_sd"]), marked_w(row["w"]), for_new_tasks(row),
            interval(row["w_bench_lo"], row["w_bench_hi"], 5), row["variable_tasks"], runs(row),
            "" if truth is None else number(truth, 5),
        )  # fmt: skip
        lines.append(_line(map(str, cells)))
    return "\n".join(lines)


def _judges(summary: Summary) -> str:
    header = ("stack", "condition", "estimate", "value", "interval", "covers")
    lines = [_line(header), _line("---" for _ in header)]
    for row in summary.judges:
        cells = (
            row["stack"], row["condition"], row["estimate"], number(row["value"]), interval(row["lo"], row["hi"]), row["covers"],
        )  # fmt: skip
        lines.append(_line(map(str, cells)))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_safe(cell) for cell in cells) + " |"


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {_safe(sentence)}" for sentence in sentences) or "None."


def _safe(text: str) -> str:
    """Text that cannot become markup: HTML escaped, markdown's own characters escaped, one line."""
    flat = html.escape(" ".join(text.split()))
    return "".join(f"\\{c}" if c in "\\`*_[]|#<>!" else c for c in flat)
