"""What `evalnoise plan` shows: shards, calls, verifications, tokens and cost, before anything is spent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from evalnoise.prompts import render
from evalnoise.report.numbers import counted
from evalnoise.sending.prices import FREE, Price, max_output, price_of, price_table
from evalnoise.store.store import Store
from flows.cli_errors import printable
from flows.views.folding import drawn, folded
from schemas.probes import REFUSAL_TEXT
from schemas.provider import JudgeSpec, ProviderSpec
from schemas.study import Condition, Study
from tasks.freeze import Plan
from tasks.plan import Shard, judge_shards, measured_shards, probe_shards

_CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English and code; `plan` says that its token figures are estimates."""


@dataclass(frozen=True, slots=True)
class Line:
    """One (stack, condition) of a plan."""

    stack: str
    condition: str
    provider: str
    """`recording` where nothing is called, `frozen` where nothing is generated either."""
    model: str
    """As the provider knows it."""
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
    """US dollars for `calls_most`; None: no price is known."""
    prices: str = ""
    """Where the price came from; empty where none is needed or known."""


def plan_lines(plan: Plan, sealed: set[Shard]) -> list[Line]:
    """The lines of a plan, conditions first, judge conditions after."""
    study, n = plan.study, plan.protocol.n_tasks
    measured = measured_shards(study, n)
    table = price_table(study.prices)
    lines = []
    for condition in study.conditions:
        for stack in study.stacks:
            spec = study.provider(stack, condition)
            prompts = sum(len(render(stack.prompt, task=task)) for task in plan.benchmark.tasks)
            attempts = 2 if stack.retry != "none" and condition.kind != "reverify" else 1
            # The second request of `with-feedback` holds the first answer too, and what was wrong with it.
            told = stack.max_tokens + len(stack.retry_prompt) // _CHARACTERS_PER_TOKEN if stack.retry == "with-feedback" else 0
            live = condition.source is None and spec.name != "recording"
            shards = [s for s in measured if (s.stack, s.condition) == (stack.name, condition.name)]
            lines.append(
                _line(
                    (stack.name, condition.name, condition.kind, spec if live else None), shards, sealed, model=stack.model,
                    repeats=study.replicates, cells=n, attempts=attempts, prompt_characters=prompts, max_tokens=stack.max_tokens,
                    told_tokens=told, price=price_of(spec, stack.model, table),
                )
            )  # fmt: skip
    for judge in study.judge.conditions if study.judge else ():
        for stack in study.stacks:
            shards = [s for s in judge_shards(study, n) if (s.stack, s.condition) == (stack.name, judge.name)]
            prompts = sum(len(judge.prompt) + len(task.prompt) + len(task.reference) for task in plan.benchmark.tasks)
            repeats = study.judge.repeats if study.judge else 0
            lines.append(
                _line(
                    (stack.name, judge.name, "judge", judge.provider), shards, sealed, model=judge.model,
                    repeats=repeats, cells=n, attempts=1, prompt_characters=prompts, max_tokens=judge.max_tokens,
                    price=price_of(judge.provider, judge.model, table),
                )
            )  # fmt: skip
    return [*lines, *_probe_lines(plan, sealed)]


def _probe_lines(plan: Plan, sealed: set[Shard]) -> Iterator[Line]:
    """The lines of the judges' probes, if the study has any."""
    study = plan.study
    if study.judge is None or study.judge.probes is None:
        return
    # A probe is on one task; which one is known after preflight, so the longest stands for it.
    tasks = plan.benchmark.tasks
    built_in = ["", REFUSAL_TEXT, max((task.reference for task in tasks), key=len)] if study.judge.probes.built_in else []
    texts = [*built_in, *(probe.candidate for probe in study.judge.probes.own)]
    longest = max(len(task.prompt) for task in tasks)
    for shard, judge in zip(probe_shards(study), study.judge.conditions, strict=True):
        yield _line(
            (shard.stack, f"{judge.name} probes", "judge", judge.provider), [shard], sealed, model=judge.model, repeats=1,
            cells=len(texts), attempts=1, prompt_characters=sum(len(judge.prompt) + longest + len(text) for text in texts),
            max_tokens=judge.max_tokens, price=price_of(judge.provider, judge.model, price_table(study.prices)),
        )  # fmt: skip


def _output_limit(spec: ProviderSpec | JudgeSpec | None, max_tokens: int) -> int | None:
    """The most output tokens of a request: `extra` can hold another limit; None: it has none."""
    extra: dict[str, Any] = getattr(spec, "extra", {})
    return max_output(({} if "max_completion_tokens" in extra else {"max_tokens": max_tokens}) | extra)


def _line(
    who: tuple[str, str, str, ProviderSpec | JudgeSpec | None],
    shards: list[Shard],
    sealed: set[Shard],
    *,
    model: str,
    repeats: int,
    cells: int,
    attempts: int,
    prompt_characters: int,
    max_tokens: int,
    price: Price | None,
    told_tokens: int = 0,
) -> Line:
    stack, condition, kind, spec = who
    calls = cells * repeats if spec else 0
    input_tokens = attempts * repeats * prompt_characters // _CHARACTERS_PER_TOKEN + calls * told_tokens if spec else 0
    limit = _output_limit(spec, max_tokens)
    output_tokens = calls * attempts * (max_tokens if limit is None else limit)
    return Line(
        stack=stack,
        condition=condition,
        provider=spec.name if spec else "frozen" if kind == "reverify" else "recording",
        model=model,
        shards=len(shards),
        sealed=sum(shard in sealed for shard in shards),
        calls_least=calls,
        calls_most=calls * attempts,
        verifications_most=0 if kind == "judge" else cells * repeats * attempts,
        input_tokens=input_tokens,
        output_tokens_most=output_tokens,
        cost_most=0.0
        if spec is None
        else None
        if price is None
        else price.most(input_tokens, None if limit is None else output_tokens),
        prices="" if spec is None or price in (None, FREE) else price.source,
    )


def print_plan(plan: Plan, store: Path) -> None:
    """Print the plan of a study against what the store already holds; on stderr, that it may cost more than its limit."""
    lines = plan_lines(plan, _sealed(plan, store))
    study, protocol = plan.study, plan.protocol
    size = f"{counted(protocol.n_tasks, 'task')} of {protocol.benchmark}, {counted(study.replicates, 'replicate')}"
    _say(f"Study {study.study}: {size}.")
    typer.echo(f"Protocol {plan.digest}")
    for name, info in plan.executors.items():
        runs = "runs no code" if info.kind == "none" else f"executor {info.kind}, Python {info.python}"
        _say(f"Stack {name}: checker {checker_text(protocol.checkers[name])}, {runs}.")
    for name, identity in protocol.providers.items():
        _say(f"Provider of {name}: {checker_text(identity)}.")
    if any(stack.verifier.isolation == "fresh" and plan.executors[stack.name].kind == "docker" for stack in study.stacks):
        _say("Isolation fresh: a container for every candidate, about a second each and a worker's whole time.")
    typer.echo(drawn(_dag_table(stages(study, protocol.n_tasks))) + "\n")
    typer.echo(drawn(_table(lines)))
    _say(f"{cost_sentence(lines)} Limit: {_limit(study.limits.max_cost)}.")
    _say(
        "Calls, checks and tokens out are upper limits, all retries counted. Tokens in are estimated at four characters each.",
        dim=True,
    )
    tables = ", ".join(dict.fromkeys(line.prices for line in lines if line.prices not in ("", "study")))
    if tables:
        _say(f"Prices by the table {tables}: they change, so check them (docs/guide/costs.md).", dim=True)
    warning = limit_warning(lines, study.limits.max_cost)
    if warning:
        typer.secho(f"warning: {warning}", fg=typer.colors.YELLOW, err=True)


def _say(text: str, *, dim: bool | None = None) -> None:
    typer.secho(folded(printable(text)), dim=dim)


def checker_text(identity: Mapping[str, Any]) -> str:
    """A checker, or another package's provider, in few words: name, version, the distribution if that is not evalnoise, options."""
    options = ", ".join(f"{name} {json.dumps(value, allow_nan=False)}" for name, value in identity["options"].items())
    whence = f" of {identity['distribution']}" if identity["distribution"] else ""
    return f"{identity['name']} {identity['version']}{whence}{f' ({options})' if options else ''}"


def _known_cost(lines: list[Line]) -> float:
    return sum(line.cost_most for line in lines if line.cost_most is not None)


def cost_sentence(lines: list[Line]) -> str:
    """What a run costs at most, or that nobody can know it from the study."""
    unpriced = ", ".join(dict.fromkeys(f"{line.model} ({line.provider})" for line in lines if line.cost_most is None))
    known = _known_cost(lines)
    if not unpriced:
        return f"Estimated cost: at most ${known:.2f}."
    rest = f" All else: estimated at most ${known:.2f}." if known else ""
    return f"Cost unknown: no price or no limit of output for {unpriced}.{rest}"


def limit_warning(lines: list[Line], max_cost: float | None) -> str:
    """That the plan may cost more than its limit; empty if it cannot, or if there is no limit."""
    if max_cost is None:
        return ""
    known = _known_cost(lines)
    if known > max_cost:
        return f"the estimated cost of at most ${known:.2f} is above limits.max_cost, ${max_cost:.2f}: a run may stop there."
    if any(line.cost_most is None for line in lines):
        return f"the cost is unknown, so limits.max_cost, ${max_cost:.2f}, cannot be kept and a run is refused."
    return ""


def _limit(max_cost: float | None) -> str:
    return "none" if max_cost is None else f"${max_cost:.2f}, kept before each request"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the DAG."""

    name: str
    shards: int | None
    """Shards that it seals, as `evalnoise status` counts them; None: it seals none."""
    after: str
    """What each of its shards waits for."""
    runs: str = ""
    """The conditions that it runs; empty where that is plain."""


def stages(study: Study, n_tasks: int) -> list[Stage]:
    """The stages of a study in the order in which they may begin."""
    replays = [condition for condition in study.conditions if condition.kind == "replay" and condition.source is not None]
    reverified = [condition for condition in study.conditions if condition.kind == "reverify"]
    fresh = [condition.name for condition in study.conditions if condition.source is None]
    measured = Counter(shard.condition for shard in measured_shards(study, n_tasks))
    order = " (permuted blocks)" if len(fresh) * len(study.stacks) > 1 else ""
    own = " of its stack" if len(study.stacks) > 1 else ""
    probes = probe_shards(study)
    found = [
        Stage("freeze", None, "-"),
        Stage("load", 1, "freeze"),
        Stage("preflight", len(study.stacks), "load"),
        *([Stage("probes", len(probes), "preflight", ", ".join(shard.condition for shard in probes))] if probes else ()),
        Stage("measure", sum(measured[name] for name in fresh), f"preflight{own}", ", ".join(fresh) + order),
    ]
    if replays:
        found.append(Stage("record", None, _sources(replays)))
        found.append(Stage("replay", sum(measured[c.name] for c in replays), "record", ", ".join(c.name for c in replays)))
    if reverified:
        shards = sum(measured[c.name] for c in reverified)
        found.append(Stage("reverify", shards, _sources(reverified), ", ".join(c.name for c in reverified)))
    if study.judge:
        names = ", ".join(condition.name for condition in study.judge.conditions)
        found.append(Stage("judge", len(judge_shards(study, n_tasks)), f"{study.judged_condition().name} replicate 0", names))
    return [*found, Stage("analyse", 1, "all of these"), Stage("report", None, "analyse")]


def _sources(conditions: list[Condition]) -> str:
    """The replicates that the conditions come from."""
    named = [f"{c.source.condition} replicate {c.source.replicate}" for c in conditions if c.source is not None]
    return ", ".join(dict.fromkeys(named))


def _dag_table(rows: list[Stage]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    table.add_column("shards", justify="right", no_wrap=True)
    for name in ("waits for", "conditions"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(row.name, "" if row.shards is None else str(row.shards), row.after, row.runs)
    return table


def _sealed(plan: Plan, store: Path) -> set[Shard]:
    if not store.exists():
        return set()
    study_store = Store.open(store).study(plan.study.study, plan.digest)
    n_tasks = plan.protocol.n_tasks
    shards = (*probe_shards(plan.study), *measured_shards(plan.study, n_tasks), *judge_shards(plan.study, n_tasks))
    live = study_store.manifest.live
    return {shard for shard in shards if shard.name in live}


def _table(lines: list[Line]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("condition", overflow="fold")
    for name in ("shards", "sealed", "calls", "checks", "tokens in", "tokens out", "cost"):
        table.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    several = len({line.stack for line in lines}) > 1
    for line in lines:
        calls = str(line.calls_least) if line.calls_least == line.calls_most else f"{line.calls_least}-{line.calls_most}"
        cost = "unknown" if line.cost_most is None else f"${line.cost_most:.2f}"
        numbers = (line.shards, line.sealed, calls, line.verifications_most, f"~{line.input_tokens}", line.output_tokens_most)
        name = f"{line.stack} {line.condition}" if several else line.condition
        table.add_row(Text(f"{name} ({line.provider})"), *map(str, numbers), cost)
    return table
