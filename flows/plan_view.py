"""What `evalnoise plan` shows: shards, calls, verifications, tokens and cost, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalnoise.prompts import render
from evalnoise.store.store import Store
from schemas.study import AnthropicProvider, JudgeSpec, OpenAIProvider, ProviderSpec
from tasks.freeze import Plan
from tasks.plan import Shard, judge_shards, measured_shards

_CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English and code; `plan` says that its token figures are estimates."""


@dataclass(frozen=True, slots=True)
class Line:
    """One (stack, condition) of a plan."""

    stack: str
    condition: str
    provider: str
    """`recording` where nothing is called."""
    shards: int
    sealed: int
    calls_least: int
    """Calls without any retry by the retry rule."""
    calls_most: int
    verifications_most: int
    input_tokens: int
    """Estimated for `calls_most`."""
    output_tokens_most: int
    cost_most: float | None
    """US dollars for `calls_most`; None: no prices in the study."""


def plan_lines(plan: Plan, sealed: set[Shard]) -> list[Line]:
    """The lines of a plan, conditions first, judge conditions after."""
    study, n = plan.study, plan.protocol.n_tasks
    measured = measured_shards(study, n)
    lines = []
    for condition in study.conditions:
        for stack in study.stacks:
            spec = study.provider(stack, condition)
            prompts = sum(len(render(stack.prompt, task=task)) for task in plan.benchmark.tasks)
            attempts = 2 if stack.retry == "resample" else 1
            live = condition.source is None and spec.name != "recording"
            shards = [s for s in measured if (s.stack, s.condition) == (stack.name, condition.name)]
            lines.append(
                _line(
                    (stack.name, condition.name, condition.kind, spec if live else None), shards, sealed,
                    repeats=study.replicates, cells=n, attempts=attempts, prompt_characters=prompts, max_tokens=stack.max_tokens,
                )
            )  # fmt: skip
    for judge in study.judge.conditions if study.judge else ():
        for stack in study.stacks:
            shards = [s for s in judge_shards(study, n) if (s.stack, s.condition) == (stack.name, judge.name)]
            prompts = sum(len(judge.prompt) + len(task.prompt) + len(task.reference) for task in plan.benchmark.tasks)
            repeats = study.judge.repeats if study.judge else 0
            lines.append(
                _line(
                    (stack.name, judge.name, "judge", judge.provider), shards, sealed,
                    repeats=repeats, cells=n, attempts=1, prompt_characters=prompts, max_tokens=judge.max_tokens,
                )
            )  # fmt: skip
    return lines


def _line(
    who: tuple[str, str, str, ProviderSpec | JudgeSpec | None],
    shards: list[Shard],
    sealed: set[Shard],
    *,
    repeats: int,
    cells: int,
    attempts: int,
    prompt_characters: int,
    max_tokens: int,
) -> Line:
    stack, condition, kind, spec = who
    calls = cells * repeats if spec else 0
    input_tokens = attempts * repeats * prompt_characters // _CHARACTERS_PER_TOKEN if spec else 0
    output_tokens = calls * attempts * max_tokens
    return Line(
        stack=stack,
        condition=condition,
        provider=spec.name if spec else "recording",
        shards=len(shards),
        sealed=sum(shard in sealed for shard in shards),
        calls_least=calls,
        calls_most=calls * attempts,
        verifications_most=0 if kind == "judge" else cells * repeats * attempts,
        input_tokens=input_tokens,
        output_tokens_most=output_tokens,
        cost_most=_cost(spec, input_tokens, output_tokens),
    )


def _cost(spec: ProviderSpec | JudgeSpec | None, input_tokens: int, output_tokens: int) -> float | None:
    if not isinstance(spec, OpenAIProvider | AnthropicProvider):
        return 0.0
    if spec.input_usd_per_million is None or spec.output_usd_per_million is None:
        return None
    return (input_tokens * spec.input_usd_per_million + output_tokens * spec.output_usd_per_million) / 1e6


def print_plan(plan: Plan, store: Path) -> None:
    """Print the plan of a study against what the store already holds."""
    console = Console()
    sealed = _sealed(plan, store)
    lines = plan_lines(plan, sealed)
    study, protocol = plan.study, plan.protocol
    console.print(f"Study {study.study}: {protocol.n_tasks} tasks of {protocol.benchmark}, {study.replicates} replicates.")
    console.print(f"Protocol {plan.digest}")
    for name, info in plan.executors.items():
        console.print(f"Stack {name}: checker {plan.checkers[name]}, executor {info.kind}, Python {info.python}.")
    console.print(
        "freeze > load tasks > preflight > measure (permuted blocks over conditions) > record > replay"
        + (" > judge" if study.judge else "") + " > analyse > report",
        style="dim", soft_wrap=True,
    )  # fmt: skip
    console.print(_table(lines))
    total = [line.cost_most for line in lines]
    known = sum(cost for cost in total if cost is not None)
    unknown = "; some prices are not in the study, so the real cost is higher" if None in total else ""
    console.print(f"Cost at most ${known:.2f}{unknown}. Limit: {_limit(study.limits.max_cost)}.")
    console.print(
        "Checks and tokens out are upper limits. Tokens in are estimated at four characters each, all retries counted.",
        style="dim",
        soft_wrap=True,
    )


def _limit(max_cost: float | None) -> str:
    return "none" if max_cost is None else f"${max_cost:.2f} (shown, not yet enforced)"


def _sealed(plan: Plan, store: Path) -> set[Shard]:
    if not store.exists():
        return set()
    study_store = Store.open(store).study(plan.study.study, plan.digest)
    shards = (*measured_shards(plan.study, plan.protocol.n_tasks), *judge_shards(plan.study, plan.protocol.n_tasks))
    live = study_store.manifest.live
    return {shard for shard in shards if shard.name in live}


def _table(lines: list[Line]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("condition")
    for name in ("shards", "sealed", "calls", "checks", "tokens in", "tokens out", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    several = len({line.stack for line in lines}) > 1
    for line in lines:
        calls = str(line.calls_least) if line.calls_least == line.calls_most else f"{line.calls_least}-{line.calls_most}"
        cost = "unknown" if line.cost_most is None else f"${line.cost_most:.2f}"
        numbers = (line.shards, line.sealed, calls, line.verifications_most, f"~{line.input_tokens}", line.output_tokens_most)
        name = f"{line.stack} {line.condition}" if several else line.condition
        table.add_row(Text(f"{name} ({line.provider})"), *map(str, numbers), cost)
    return table
