"""The commands that plan: `budget`, `power`, `ranking`, `design`."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli_options import DEFAULT_STORE, MOST, StoreOption, check_finite, misuse

_ARM = "An arm: STUDY/STACK/CONDITION, shortened where there is only one."
ArmArgument = Annotated[str, typer.Argument(help=_ARM, metavar="ARM")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object.")]
Delta = Annotated[
    float | None, typer.Option("--delta", help="Difference of scores to resolve. Default: the study's first.", metavar="D")
]
Alpha = Annotated[float | None, typer.Option("--alpha", help="Two-sided error level. Default: the study's, or 0.05.")]
Power = Annotated[float | None, typer.Option("--power", help="Power. Default: the study's, or 0.8.")]


def budget(
    arms: Annotated[
        list[str] | None, typer.Argument(help=f"{_ARM} A second one: the two are compared. Without: --w.", metavar="[ARM] [OTHER]")
    ] = None,
    *,
    w: Annotated[float | None, typer.Option("--w", help="Within-task variance of each arm.", metavar="W")] = None,
    w_b: Annotated[float | None, typer.Option("--w-b", help="That of the second arm, if it is another.", metavar="W")] = None,
    tasks: Annotated[int | None, typer.Option("--tasks", max=MOST, help="Tasks in the benchmark.", metavar="N")] = None,
    delta: Delta = None,
    runs_a: Annotated[
        int | None,
        typer.Option("--runs-a", max=MOST, help="Runs of the first arm, if they are fixed: how many of the second?", metavar="R"),
    ] = None,
    price_a: Annotated[float | None, typer.Option("--price-a", help="Price of a run of the first arm.", metavar="P")] = None,
    price_b: Annotated[float | None, typer.Option("--price-b", help="Price of a run of the second arm.", metavar="P")] = None,
    alpha: Alpha = None,
    power: Power = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Say how many runs per arm resolve a difference of scores between two arms on the same tasks.

    From numbers (--w, --tasks, --delta), or from one or two measured arms of a store.
    """
    if arms:
        if (w, w_b, tasks) != (None, None, None):
            raise misuse("expected either arms or --w and --tasks, found both")
        if len(arms) > 2:
            raise misuse(f"expected one or two arms, found {len(arms)}; `evalnoise ranking` takes more")
        if len(arms) == 1 and (runs_a, price_a, price_b) != (None, None, None):
            raise misuse("--runs-a and --price-a, --price-b are for two arms: name the second, or give --w and --w-b")
        from flows.views.arms_budget import print_arms_budget

        with _said():
            print_arms_budget(
                store,
                arms,
                delta=delta,
                alpha=alpha,
                power=power,
                runs_a=runs_a,
                prices=_prices(price_a, price_b),
                as_json=as_json,
            )
        return
    if w is None or tasks is None or delta is None:
        lacking = [name for name, value in (("--w", w), ("--tasks", tasks), ("--delta", delta)) if value is None]
        raise misuse(f"expected an arm of a store, or --w, --tasks and --delta; {', '.join(lacking)} not given")
    from flows.views.budget import print_number_budget

    arms_w, prices = (w, w if w_b is None else w_b), _prices(price_a, price_b)
    plan = {"alpha": 0.05 if alpha is None else alpha, "power": 0.8 if power is None else power}
    with _said():
        pair = None
        if runs_a is not None or prices is not None or w_b is not None:
            from evalnoise.stats.planning.two_arms import pair_for

            pair = pair_for(arms_w, tasks, delta, runs_a=runs_a, prices=prices, **plan)
        print_number_budget(arms_w, tasks, delta, **plan, pair=pair, priced=prices is not None, as_json=as_json)


def power(
    arm: ArmArgument,
    *,
    delta: Delta = None,
    runs: Annotated[
        int | None, typer.Option("--runs", min=1, max=MOST, help="Runs per arm. Default: the arm's own, of each task.", metavar="R")
    ] = None,
    runs_b: Annotated[
        int | None, typer.Option("--runs-b", min=1, max=MOST, help="Runs of the second arm, if they are others.", metavar="R")
    ] = None,
    alpha: Alpha = None,
    simulations: Annotated[int, typer.Option("--simulations", min=1, max=1_000_000, help="Simulated comparisons.")] = 4_000,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed. Default: the study's.")] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Simulate how often a difference is found: spread over tasks, concentrated in a few, or mixed; beside what the formula says.

    The second arm is the measured one made worse by --delta; at --delta 0 the share is that of false alarms.
    """
    from flows.views.power import print_power

    with _said():
        print_power(store, arm, delta=delta, runs=(runs, runs_b), alpha=alpha, simulations=simulations, seed=seed, as_json=as_json)


def ranking(
    arms: Annotated[list[str], typer.Argument(help=f"{_ARM} At least two.", metavar="ARM ARM…")],
    *,
    level: Annotated[float, typer.Option("--level", help="Chance of the right order that runs are planned for.")] = 0.95,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Order arms by score, and say of each pair of neighbours how likely the order is wrong and how many runs settle it."""
    if len(arms) < 2:
        raise misuse("expected at least two arms, found 1")
    from flows.views.ranking import print_ranking

    with _said():
        print_ranking(store, arms, level=level, as_json=as_json)


def design(
    arm: Annotated[
        str | None, typer.Argument(help=f"{_ARM} It may be a judge's. Its variances are taken. Without: --task.", metavar="[ARM]")
    ] = None,
    *,
    task: Annotated[float | None, typer.Option("--task", help="Variance between tasks.", metavar="V")] = None,
    generation: Annotated[
        float | None, typer.Option("--generation", help="Variance between generations of a task.", metavar="V")
    ] = None,
    grader: Annotated[float | None, typer.Option("--grader", help="Variance between grades of a generation.", metavar="V")] = None,
    half_width: Annotated[float | None, typer.Option("--half-width", help="Half width of a score to reach.", metavar="H")] = None,
    effect: Annotated[
        float | None,
        typer.Option("--effect", help="Difference of two arms to detect; the variances are then the difference's.", metavar="D"),
    ] = None,
    price_generation: Annotated[
        float | None, typer.Option("--price-generation", help="Price of a generation.", metavar="P")
    ] = None,
    price_grade: Annotated[float, typer.Option("--price-grade", help="Price of a grade.", metavar="P")] = 0.0,
    price_task: Annotated[float, typer.Option("--price-task", help="Price of a new task.", metavar="P")] = 0.0,
    max_tasks: Annotated[
        int | None, typer.Option("--max-tasks", max=MOST, help="The most tasks that there are.", metavar="N")
    ] = None,
    max_generations: Annotated[
        int | None, typer.Option("--max-generations", max=MOST, help="The most of a task.", metavar="K")
    ] = None,
    max_grades: Annotated[int | None, typer.Option("--max-grades", max=MOST, help="The most of a generation.", metavar="G")] = None,
    level: Annotated[float, typer.Option("--level", help="Confidence level of half widths.")] = 0.95,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided error level of an effect's test.")] = 0.05,
    power: Annotated[float, typer.Option("--power", help="Power for an effect.")] = 0.8,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show half widths over tasks, generations and grades, and the cheapest design for a half width or an effect."""
    if half_width is not None and effect is not None:
        raise misuse("expected --half-width or --effect, found both")
    if price_generation is None and (half_width is not None or effect is not None):
        raise misuse("a cheapest design needs prices: give --price-generation, and --price-grade if grades cost something")
    if arm is None and (task is None or generation is None):
        raise misuse("expected an arm of a store, or --task and --generation")
    if arm is not None and (task, generation, grader) != (None, None, None):
        raise misuse("expected either an arm or its variances, found both")
    if arm is not None and effect is not None:
        raise misuse("--effect needs the variances of a difference: give --task and --generation; one arm has its own alone")
    check_finite(price_generation=price_generation, price_grade=price_grade, price_task=price_task)
    check_finite(task=task, generation=generation, grader=grader)
    from evalnoise.stats.planning.design import Bounds, Prices, Variances
    from flows.views.design import Wanted, measured, print_design

    with _said():
        given = Variances(task=task or 0.0, generation=generation or 0.0, grader=grader or 0.0)
        found = (given, Bounds(), {}) if arm is None else measured(store, arm)
        components, held, said = found
        print_design(
            components,
            Prices(generation=price_generation or 0.0, grade=price_grade, task=price_task),
            Bounds(tasks=max_tasks, generations=held.generations or max_generations, grades=held.grades or max_grades),
            Wanted(half_width=half_width, effect=effect, level=level, alpha=alpha, power=power),
            **said,
            as_json=as_json,
        )


def _prices(price_a: float | None, price_b: float | None) -> tuple[float, float] | None:
    check_finite(price_a=price_a, price_b=price_b)
    if price_a is None and price_b is None:
        return None
    if price_a is None or price_b is None:
        raise misuse("prices are of both arms: give --price-a and --price-b")
    return price_a, price_b


class _said:  # noqa: N801 - used as a function
    """What the statistics refuse, as the user's mistake: exit code 2."""

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Turn a ValueError into a message."""
        if isinstance(error, ValueError):
            raise misuse(str(error).replace("w_a", "--w").replace("w_b", "--w-b")) from None
