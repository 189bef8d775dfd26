"""The commands that measure: `run`, and `extend` and `retry`, which go on from what is sealed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flows.cli_options import DEFAULT_STORE, Limit, Overrides, Replicates, StoreOption, StudyFile, misuse


def run(
    study: StudyFile,
    *,
    store: StoreOption = DEFAULT_STORE,
    limit: Limit = None,
    replicates: Replicates = None,
    overrides: Overrides = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only this condition, and what it depends on. Repeatable.", metavar="CONDITION"),
    ] = None,
) -> None:
    """Run a study, or resume it: the same command continues where a stopped run ended."""
    from evalnoise.studyfile.load import opened_study
    from flows.runner import run_study
    from tasks.rerun import Rerun

    rest = _run_command(study, store, limit=limit, replicates=replicates, overrides=overrides)
    with opened_study(study, overrides or ()) as found:
        run_study(found, Rerun(only=tuple(only or ())), store=store, limit=limit, replicates=replicates, rest=rest)


def extend(
    study: StudyFile,
    *,
    replicates: Annotated[int, typer.Option("--replicates", min=2, help="Replicates that there are to be.", metavar="R")],
    store: StoreOption = DEFAULT_STORE,
    why: Annotated[str | None, typer.Option("--why", help="Why there are more; kept for ever.", metavar="TEXT")] = None,
    predecessor: Annotated[
        str | None, typer.Option("--from", help="First digits of the protocol to extend. Default: the newest.", metavar="PROTOCOL")
    ] = None,
    limit: Limit = None,
    overrides: Overrides = None,
) -> None:
    """Add replicates to a study: a successor inherits all that is sealed, measures the rest, and says that it is not blind."""
    from evalnoise.studyfile.load import opened_study
    from flows.runner import run_study
    from tasks.rerun import NEWEST, Rerun

    if predecessor is not None and (not predecessor or not set(predecessor) <= set("0123456789abcdef")):
        raise misuse(f"--from {predecessor}: expected the first digits of a protocol, as `evalnoise status` shows them")
    rerun = Rerun(extend_from=predecessor or NEWEST, why=why)
    with opened_study(study, overrides or ()) as found:
        run_study(found, rerun, store=store, limit=limit, replicates=replicates)


def retry(
    study: StudyFile,
    *,
    unmeasured: Annotated[
        bool, typer.Option("--unmeasured", help="Sealed cells without an outcome, for a reason that can pass.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    limit: Limit = None,
    replicates: Replicates = None,
    overrides: Overrides = None,
) -> None:
    """Ask sealed cells without an outcome again, where the reason can pass, and redo what was made from them."""
    from evalnoise.studyfile.load import opened_study
    from flows.runner import run_study
    from tasks.rerun import Rerun

    if not unmeasured:
        raise misuse("say which cells are asked again: --unmeasured")
    rest = _run_command(study, store, limit=limit, replicates=replicates, overrides=overrides)
    with opened_study(study, overrides or ()) as found:
        run_study(found, Rerun(retry_unmeasured=True), store=store, limit=limit, replicates=replicates, rest=rest)


def _run_command(study: Path, store: Path, *, limit: int | None, replicates: int | None, overrides: list[str] | None) -> str:
    """The command that runs all of a study."""
    words = ["evalnoise", "run", str(study), "--store", str(store)]
    words += [] if limit is None else ["--limit", str(limit)]
    words += [] if replicates is None else ["--replicates", str(replicates)]
    return shlex.join([*words, *(word for change in overrides or () for word in ("--set", change))])
