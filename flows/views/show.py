"""`evalnoise show` in a terminal. Every text of a provider or a candidate is hostile: escaped, and never read as markup."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.cli_errors import printable
from flows.views.show_data import Row, TaskView
from schemas.records import Task
from schemas.values import decode

_MAX_LINES = 120
_MAX_CHARACTERS = 12_000
_COLUMN = 56
"""Characters that a candidate beside another one should have at least."""
_ANY_WIDTH = 100_000
_INPUT_SHOWN = 400
_NUMBERED = re.compile(r"(base |plus |)input (\d{1,6})(?=: )")
"""How details begin that are about one input of the task."""
_LEGEND = "X > Y: the first attempt's candidate, then that of the retry."
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
            _put(console, Text(_block(said), style="yellow"))
    console.print(Text("\nPrompt", style="bold"))
    _put(console, Text(_block(task["prompt"])))
    letters = _letters(view)
    shown: dict[str, str] = {}
    explained = False
    for (stack, condition), outcomes in groupby(view.outcomes, key=lambda row: (row["stack"], row["condition"])):
        console.print()
        console.print(Text(_safe(f"{stack}, {condition}"), style="bold"))
        attempts = _attempts(view, (stack, condition), letters)
        _put(console, _outcomes(list(outcomes), attempts))
        if not explained and any(len(names) > 1 for names in attempts.values()):
            console.print(Text(_LEGEND, style="dim"))
            explained = True
        _print_candidates(console, view, (stack, condition), letters, shown)
    if view.not_given:
        console.print()
        _put(console, Text(_safe(f"Failing inputs are not shown: {view.not_given}."), style="dim"))
    if view.verdicts:
        console.print(Text("\nVerdicts", style="bold"))
        _print_verdicts(console, _verdict_rows(view, letters))
    if not view.outcomes and not view.verdicts:
        console.print(Text("\nNo outcome of this task is sealed yet.", style="yellow"))


def names_an_input(view: TaskView) -> bool:
    """Whether a verification failed on an input that could be shown."""
    return any(_NUMBERED.match(row["detail"]) for row in view.executions)


def _put(console: Console, what: Text | Table) -> None:
    """Print without blanks added at the ends of lines; in a terminal within its width, else no text is broken."""
    if isinstance(what, Text) and not console.is_terminal:
        console.print(what, soft_wrap=True)
        return
    options = console.options if console.is_terminal else console.options.update(width=_ANY_WIDTH)
    for line in console.render_lines(what, options, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)


def _letters(view: TaskView) -> dict[str, str]:
    """A short name for each distinct candidate of the task, in the order in which they appear: A to Z, then A1 and so on."""
    digests = dict.fromkeys(str(row["candidate_sha256"]) for row in view.generations if row["candidate_sha256"])
    return {digest: f"{chr(ord('A') + i % 26)}{i // 26 or ''}" for i, digest in enumerate(digests)}


def _attempts(view: TaskView, where: tuple[str, str], letters: dict[str, str]) -> dict[int, list[str]]:
    """By replicate: the candidate of each attempt, or why there is none."""
    attempts: dict[int, list[str]] = defaultdict(list)
    for row in _made(view, where):
        attempts[row["replicate"]].append(letters.get(row["candidate_sha256"]) or str(row["response_class"]))
    return attempts


def _made(view: TaskView, where: tuple[str, str]) -> list[Row]:
    """The generations of a condition; where it generated nothing, its verifications, with the text of each candidate."""
    own = [row for row in view.generations if (row["stack"], row["condition"]) == where]
    if own:
        return own
    texts = {(row["stack"], row["candidate_sha256"]): row["candidate"] for row in view.generations}
    verified = [row for row in view.executions if (row["stack"], row["condition"]) == where]
    return [{**row, "candidate": texts.get((where[0], row["candidate_sha256"]), "")} for row in verified]


def _outcomes(rows: list[Row], attempts: dict[int, list[str]]) -> Table:
    """One line per replicate: the outcome, the candidates of its attempts, and why."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    passed = sum(row["outcome"] == "pass" for row in rows)
    measured = sum(row["outcome"] != "unmeasured" for row in rows)
    table.add_row(Text("passed", style="dim"), Text(f"{passed} of {measured}"))
    for row in rows:
        table.add_row(
            Text(f"replicate {row['replicate']}", style="dim"),
            Text(_safe(row["outcome"]), style=_STYLES.get(row["outcome"], "")),
            Text(_safe(" > ".join(attempts.get(row["replicate"], [])))),
            Text(_safe("" if row["reason"] == row["outcome"] else row["reason"])),
        )
    return table


def _print_candidates(
    console: Console, view: TaskView, where: tuple[str, str], letters: dict[str, str], shown: dict[str, str]
) -> None:
    """Print the distinct candidates of one condition: side by side where the terminal has room, and else one below the other.

    `shown` maps the candidates whose text was printed before to where that was, and is added to.
    """
    mine = _made(view, where)
    texts: dict[str, Text] = {}
    for row in mine:
        digest = row["candidate_sha256"]
        if digest and digest not in texts:
            before = shown.setdefault(digest, ", ".join(where))
            first_time = before == ", ".join(where)
            texts[digest] = Text(_block(row["candidate"])) if first_time else Text(f"as under {_safe(before)}", style="dim")
    cells = [_candidate(view, mine, digest, text, letters) for digest, text in texts.items()]
    across = min(len(cells), console.width // _COLUMN) if console.is_terminal else 1
    if across <= 1:
        for number, cell in enumerate(cells):
            if number:
                console.print()
            _put(console, cell)
        return
    table = Table(box=None, pad_edge=False, show_header=False, padding=(1, 3, 0, 0), expand=True)
    for _ in range(across):
        table.add_column(ratio=1, overflow="fold")
    for start in range(0, len(cells), across):
        table.add_row(*cells[start : start + across])
    _put(console, table)


def _candidate(view: TaskView, mine: list[Row], digest: str, text: Text, letters: dict[str, str]) -> Text:
    """One candidate: its letter, where it came from, how it was verified, and its text."""
    cells = {(row["replicate"], row["attempt"]) for row in mine if row["candidate_sha256"] == digest}
    condition = mine[0]["condition"]
    checks = [
        row
        for row in view.executions
        if row["condition"] == condition and row["stack"] == mine[0]["stack"] and row["candidate_sha256"] == digest
    ]
    said = dict.fromkeys(_verification(row, view.given) for row in checks)
    result = Text()
    result.append(f"{letters[digest]}  ", style="bold")
    replicates = sorted({cell[0] for cell in cells})
    noun = "replicate" if len(replicates) == 1 else "replicates"
    result.append(f"{noun} {', '.join(map(str, replicates))}\n", style="dim")
    for line, outcome in said:
        result.append(f"{line}\n", style=_STYLES.get(outcome, ""))
    return result.append(text)


def _verification(row: Row, given: Task | None) -> tuple[str, str]:
    """The verification in a line, with the input that it failed on below where that is known; and its outcome."""
    parts = [row["outcome"], "" if row["reason"] == row["outcome"] else row["reason"], row["detail"]]
    said = _block(": ".join(part for part in parts if part), lines=6)
    call = _failing_call(given, row["detail"]) if given else ""
    return f"{said}\n  {call}" if call else said, row["outcome"]


def _failing_call(given: Task, detail: str) -> str:
    """The input that a detail is about, as it is named there and as a call; empty where there is none."""
    found = _NUMBERED.match(detail)
    number = int(found[2]) + (given.n_base_inputs if found[1] == "plus " else 0) if found else len(given.inputs)
    if found is None or number >= len(given.inputs):
        return ""
    arguments = decode(given.inputs[number])
    call = f"{given.entry_point}({', '.join(map(repr, arguments))})" if isinstance(arguments, list) else repr(arguments)
    return _safe(f"{found[0]}: {call[:_INPUT_SHOWN]}{'…' if len(call) > _INPUT_SHOWN else ''}")


@dataclass(frozen=True, slots=True)
class _Judged:
    """What one judge condition said of one candidate."""

    stack: str
    judge: str
    candidate: str
    """Its letter, or the beginning of its digest."""
    executed: Text
    said: dict[int, Text]
    """By repeat."""


def _verdict_rows(view: TaskView, letters: dict[str, str]) -> list[_Judged]:
    """One entry per stack, judge condition and candidate."""
    key = ("stack", "condition", "candidate_sha256", "reference_outcome")
    rows: dict[tuple[str, ...], dict[int, Row]] = defaultdict(dict)
    for row in view.verdicts:
        rows[tuple(row[name] for name in key)][row["repeat"]] = row
    return [
        _Judged(
            stack=_safe(stack),
            judge=_safe(judge),
            candidate=letters.get(digest, digest[:8]),
            executed=Text(_safe(reference), style=_STYLES.get(reference, "")),
            said={repeat: _said(row) for repeat, row in sorted(by_repeat.items())},
        )
        for (stack, judge, digest, reference), by_repeat in sorted(rows.items())
    ]


def _print_verdicts(console: Console, rows: list[_Judged]) -> None:
    """A table of repeats, or, where that is wider than the terminal, a line per repeat under each judge's name."""
    table = _verdict_table(rows)
    if console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum <= console.width:
        _put(console, table)
        return
    for row in rows:
        console.print(Text(f"{row.judge} on candidate {row.candidate} of {row.stack}, executed: ", style="dim") + row.executed)
        upright = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        for repeat, said in row.said.items():
            upright.add_row(Text(f"  repeat {repeat}", style="dim"), said)
        _put(console, upright)


def _verdict_table(rows: list[_Judged]) -> Table:
    repeats = sorted({repeat for row in rows for repeat in row.said})
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("stack", "judge", "candidate", "executed", *(f"repeat {repeat}" for repeat in repeats)):
        table.add_column(name)
    for row in rows:
        said = [row.said.get(repeat, Text("")) for repeat in repeats]
        table.add_row(Text(row.stack), Text(row.judge), Text(row.candidate), row.executed, *said)
    return table


def _said(row: Row) -> Text:
    confidence = "" if row["confidence"] is None else f" {row['confidence']:g}"
    reason = f" ({row['reason']})" if row["reason"] else ""
    return Text(_safe(f"{row['verdict']}{confidence}{reason}"), style=_STYLES.get(row["verdict"], ""))


def _safe(text: str) -> str:
    """One line that no terminal can misread."""
    return printable(text).replace("\n", "\\n")


def _block(text: str, *, lines: int = _MAX_LINES) -> str:
    """Several lines that no terminal can misread, cut to a readable length."""
    rows = printable(text[:_MAX_CHARACTERS].replace("\r\n", "\n").expandtabs(4)).rstrip("\n").split("\n")
    cut = len(rows) > lines or len(text) > _MAX_CHARACTERS
    return "\n".join([*rows[:lines], *(["… cut"] if cut else [])])
