"""`evalnoise show` in a terminal. Every text of a provider or a candidate is hostile: escaped, and never read as markup."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.cli_errors import printable
from flows.show_data import Row, TaskView

_MAX_LINES = 120
_MAX_CHARACTERS = 12_000
_COLUMN = 56
"""Characters that a candidate beside another one should have at least."""
_STYLES = {"pass": "green", "fail": "red", "unmeasured": "yellow", "unparsed": "yellow"}


def print_task(view: TaskView, console: Console | None = None) -> None:
    """Print the prompt, then each condition's outcomes and distinct candidates, then the judges' verdicts."""
    console = console or Console(highlight=False)
    task = view.task
    console.print(Text(_safe(f"{task['task_id']}  {task['benchmark']}, position {task['position']}, {task['kind']}"), style="bold"))
    console.print(Text(_safe(f"study {view.study}, protocol {view.protocol[:12]}"), style="dim"))
    for row in view.preflight:
        if row["outcome"] != "pass":
            said = f"not measurable by stack {row['stack']}: {row['reason']} {row['detail']}"
            console.print(Text(_block(said), style="yellow"))
    console.print(Text("\nPrompt", style="bold"))
    console.print(Text(_block(task["prompt"])))
    letters = _letters(view)
    shown: dict[str, str] = {}
    for (stack, condition), outcomes in groupby(view.outcomes, key=lambda row: (row["stack"], row["condition"])):
        console.print()
        console.print(Text(_safe(f"{stack}, {condition}"), style="bold"))
        console.print(_outcomes(list(outcomes), view, letters))
        console.print(_candidates(view, (stack, condition), letters, shown, console.width))
    if view.verdicts:
        console.print(Text("\nVerdicts", style="bold"))
        console.print(_verdicts(view, letters))
    if not view.outcomes and not view.verdicts:
        console.print(Text("\nNo outcome of this task is sealed yet.", style="yellow"))


def _letters(view: TaskView) -> dict[str, str]:
    """A short name for each distinct candidate of the task, in the order in which they appear: A to Z, then A1 and so on."""
    digests = dict.fromkeys(str(row["candidate_sha256"]) for row in view.generations if row["candidate_sha256"])
    return {digest: f"{chr(ord('A') + i % 26)}{i // 26 or ''}" for i, digest in enumerate(digests)}


def _outcomes(rows: list[Row], view: TaskView, letters: dict[str, str]) -> Table:
    """One column per replicate: the outcome, why, and the candidates of its attempts."""
    attempts: dict[int, list[str]] = defaultdict(list)
    for row in view.generations:
        if (row["stack"], row["condition"]) == (rows[0]["stack"], rows[0]["condition"]):
            attempts[row["replicate"]].append(letters.get(row["candidate_sha256"]) or str(row["response_class"]))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    passed = sum(row["outcome"] == "pass" for row in rows)
    measured = sum(row["outcome"] != "unmeasured" for row in rows)
    table.add_row(Text("passed", style="dim"), Text(f"{passed} of {measured}"))
    for row in rows:
        table.add_row(
            Text(f"replicate {row['replicate']}", style="dim"),
            Text(_safe(row["outcome"]), style=_STYLES.get(row["outcome"], "")),
            Text(_safe(" > ".join(attempts[row["replicate"]]))),
            Text(_safe("" if row["reason"] == row["outcome"] else row["reason"])),
        )
    return table


def _candidates(view: TaskView, where: tuple[str, str], letters: dict[str, str], shown: dict[str, str], width: int) -> Table:
    """The distinct candidates of one condition side by side, as many as the terminal has room for in a row.

    `shown` maps the candidates whose text was printed before to where that was, and is added to.
    """
    mine = [row for row in view.generations if (row["stack"], row["condition"]) == where]
    texts: dict[str, Text] = {}
    for row in mine:
        digest = row["candidate_sha256"]
        if digest and digest not in texts:
            before = shown.setdefault(digest, ", ".join(where))
            first_time = before == ", ".join(where)
            texts[digest] = Text(_block(row["candidate"])) if first_time else Text(f"as under {_safe(before)}", style="dim")
    across = max(1, min(len(texts), width // _COLUMN))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(1, 3, 0, 0), expand=True)
    for _ in range(across):
        table.add_column(ratio=1, overflow="fold")
    cells = [_candidate(view, mine, digest, text, letters) for digest, text in texts.items()]
    for start in range(0, len(cells), across):
        table.add_row(*cells[start : start + across])
    return table


def _candidate(view: TaskView, mine: list[Row], digest: str, text: Text, letters: dict[str, str]) -> Text:
    """One candidate: its letter, where it came from, how it was verified, and its text."""
    cells = {(row["replicate"], row["attempt"]) for row in mine if row["candidate_sha256"] == digest}
    condition = mine[0]["condition"]
    checks = [
        row
        for row in view.executions
        if row["condition"] == condition and row["stack"] == mine[0]["stack"] and row["candidate_sha256"] == digest
    ]
    said = dict.fromkeys(_verification(row) for row in checks)
    result = Text()
    result.append(f"{letters[digest]}  ", style="bold")
    result.append(f"replicates {', '.join(str(replicate) for replicate in sorted({cell[0] for cell in cells}))}\n", style="dim")
    for line, outcome in said:
        result.append(f"{line}\n", style=_STYLES.get(outcome, ""))
    return result.append(text)


def _verification(row: Row) -> tuple[str, str]:
    """The verification in a line, and its outcome."""
    parts = [row["outcome"], "" if row["reason"] == row["outcome"] else row["reason"], row["detail"]]
    return _block(": ".join(part for part in parts if part), lines=6), row["outcome"]


def _verdicts(view: TaskView, letters: dict[str, str]) -> Table:
    """One row per judge condition and candidate: what every repeat said."""
    repeats = sorted({row["repeat"] for row in view.verdicts})
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("stack", "judge", "candidate", "executed", *(f"repeat {repeat}" for repeat in repeats)):
        table.add_column(name)
    key = ("stack", "condition", "candidate_sha256", "reference_outcome")
    rows: dict[tuple[str, ...], dict[int, Row]] = defaultdict(dict)
    for row in view.verdicts:
        rows[tuple(row[name] for name in key)][row["repeat"]] = row
    for (stack, condition, digest, reference), by_repeat in sorted(rows.items()):
        name = letters.get(digest, digest[:8])
        cells = [Text(_safe(text)) for text in (stack, condition, name)]
        cells.append(Text(_safe(reference), style=_STYLES.get(reference, "")))
        table.add_row(*cells, *_said(by_repeat, repeats))
    return table


def _said(by_repeat: dict[int, Row], repeats: list[int]) -> Iterator[Text]:
    for repeat in repeats:
        row = by_repeat.get(repeat)
        if row is None:
            yield Text("")
            continue
        confidence = "" if row["confidence"] is None else f" {row['confidence']:g}"
        reason = f" ({row['reason']})" if row["reason"] else ""
        yield Text(_safe(f"{row['verdict']}{confidence}{reason}"), style=_STYLES.get(row["verdict"], ""))


def _safe(text: str) -> str:
    """One line that no terminal can misread."""
    return printable(text).replace("\n", "\\n")


def _block(text: str, *, lines: int = _MAX_LINES) -> str:
    """Several lines that no terminal can misread, cut to a readable length."""
    rows = printable(text[:_MAX_CHARACTERS].replace("\r\n", "\n").expandtabs(4)).rstrip("\n").split("\n")
    cut = len(rows) > lines or len(text) > _MAX_CHARACTERS
    return "\n".join([*rows[:lines], *(["… cut"] if cut else [])])
