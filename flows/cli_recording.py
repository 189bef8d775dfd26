"""`evalnoise recording`: make, import, list, show, compare and verify recordings; `evalnoise coupling`: may two sides share one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli_errors import guarded
from flows.cli_options import DEFAULT_STORE, StoreOption, misuse

app = typer.Typer(no_args_is_help=True)

_FORMATS = "evalplus, cruxeval, openai-batch, anthropic-batch or jsonl"
NameOption = Annotated[
    str | None, typer.Option("--name", help="The recording's name. Default: one that says where it comes from.", metavar="NAME")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON value.")]
AllOption = Annotated[bool, typer.Option("--all", help="All lines, not the first twenty of a kind.")]
SideA = Annotated[str, typer.Argument(help="A recording, or STUDY/STACK/CONDITION (and /rN: one replicate).", metavar="A")]
SideB = Annotated[str, typer.Argument(help="The other one.", metavar="B")]
Recording = Annotated[str, typer.Argument(help="A recording: its name in the store, or its folder.", metavar="RECORDING")]


@app.command()
@guarded
def make(
    study: Annotated[
        str, typer.Argument(help="A study's name or file (its newest protocol), or a protocol's first digits.", metavar="STUDY")
    ],
    *,
    condition: Annotated[str, typer.Option("--condition", help="The live condition to record.", metavar="C")],
    stack: Annotated[str | None, typer.Option("--stack", help="The stack. Default: the only one.", metavar="S")] = None,
    replicates: Annotated[
        list[int] | None, typer.Option("--replicate", min=0, help="A replicate. Repeatable. Default: all.", metavar="R")
    ] = None,
    name: NameOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Make a recording of sealed replicates of a live condition."""
    from evalnoise.store.store import Store
    from flows.cli_query import study_name
    from flows.views.recording import print_sealed
    from tasks.record import fresh_conditions, seal_condition
    from tasks.selection import find_protocol

    opened = Store.open(store, create=False)
    found, protocol = find_protocol(opened, study_name(study) or study)
    stacks = [str(one["name"]) for one in protocol.study["stacks"]]
    _check_name(name)
    if stack is None and len(stacks) > 1:
        raise misuse(f"expected --stack, because the study has several: {', '.join(stacks)}")
    if stack is not None and stack not in stacks:
        raise misuse(f"--stack {stack}: expected one of {', '.join(stacks)}")
    if condition not in fresh_conditions(protocol):
        raise misuse(
            f"--condition {condition}: expected a live condition ({', '.join(fresh_conditions(protocol)) or 'there is none'})"
        )
    if f"{stack or stacks[0]}/{condition}" in protocol.recordings:
        # What it knows of its answers, such as who served them, is in that recording and not in the study.
        raise misuse(f"--condition {condition}: its answers come from a recording; replay that one, a copy would hold less of them")
    wanted = sorted(set(replicates or range(protocol.replicates)))
    folder, manifest = seal_condition(
        opened, found, protocol, stack=stack or stacks[0], condition=condition, replicates=wanted, name=name
    )
    print_sealed(folder, manifest)


@app.command("import")
@guarded
def import_(
    form: Annotated[str, typer.Argument(help=f"The files' format: {_FORMATS}.", metavar="FORMAT")],
    files: Annotated[list[Path], typer.Argument(help="Files, in any order; for evalplus folders too.", metavar="FILE…")],
    *,
    name: Annotated[str, typer.Option("--name", help="The recording's name.", metavar="NAME")],
    order: Annotated[
        str, typer.Option("--order", help="`time` if repeats of a task are in the order of time, else `unknown`.", metavar="ORDER")
    ] = "unknown",
    prompts: Annotated[
        Path | None, typer.Option("--prompts", help="evalplus: the benchmark's file, for completions.", metavar="FILE")
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Batches: leave out ids that got no answer, and list them.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Import other tools' files as a recording."""
    from evalnoise.recordings.importing import Form, read_files, seal_imported
    from evalnoise.store.recordings import RecordingFolder
    from evalnoise.store.store import Store
    from flows.views.recording import print_sealed

    if form not in set(Form):
        raise misuse(f"{form}: expected one of the formats {_FORMATS}")
    if order not in ("time", "unknown"):
        raise misuse(f"--order {order}: expected time or unknown")
    _check_name(name)
    found = read_files(Form(form), files, prompts=prompts, allow_missing=allow_missing)
    folder = RecordingFolder.named(Store.open(store).root, name)
    print_sealed(folder, seal_imported(folder, Form(form), found, order="time" if order == "time" else "unknown"))


@app.command("list")
@guarded
def list_(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """List the recordings of a store."""
    from evalnoise.store.recordings import recordings_in
    from evalnoise.store.store import Store
    from flows.views.recording import print_list

    print_list(recordings_in(Store.open(store, create=False).root), as_json=as_json)


@app.command()
@guarded
def show(
    recording: Recording,
    task: Annotated[str | None, typer.Option("--task", help="What this task was asked and answered.", metavar="TASK")] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show what a recording holds."""
    from flows.views.recording import print_recording
    from schemas.errors import StoreError
    from tasks.selection import find_recording

    folder = find_recording(store, recording)
    rows = folder.read()
    if task is not None and all(row.task_id != task for row in rows):
        remedy = "Check the id; the benchmark's own ids are used."
        raise StoreError(str(folder.path), expected=f"responses of task {task!r}", found="none", remedy=remedy)
    print_recording(folder, rows, task=task, as_json=as_json)


@app.command()
@guarded
def diff(
    a: SideA, b: SideB, store: StoreOption = DEFAULT_STORE, everything: AllOption = False, as_json: JsonOption = False
) -> None:
    """Show requests that only one side has, and answers to the same request whose texts or classes differ."""
    from evalnoise.recordings.compare import difference
    from flows.views.recording import print_difference
    from tasks.selection import find_side

    one, other = find_side(store, a), find_side(store, b)
    print_difference(one, other, difference(one.rows, other.rows), everything=everything, as_json=as_json)


@app.command()
@guarded
def verify(
    recordings: Annotated[
        list[str] | None, typer.Argument(help="Recordings: names or folders. Default: all of the store.", metavar="[RECORDING…]")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Check every digest and count of recordings, and whether this version can replay them."""
    from evalnoise.recordings.opening import check_versions
    from evalnoise.store.recordings import recordings_in
    from evalnoise.store.store import Store
    from flows.views.recording import say
    from tasks.selection import find_recording

    named = [find_recording(store, text) for text in recordings or ()]
    for folder in named or recordings_in(Store.open(store, create=False).root):
        folder.verify()
        check_versions(folder.path, folder.manifest)
        say(f"{folder.path}: {folder.manifest.occurrences} responses, digest {folder.manifest.digest}")


def coupling(
    a: SideA, b: SideB, store: StoreOption = DEFAULT_STORE, everything: AllOption = False, as_json: JsonOption = False
) -> None:
    """Say whether two configurations may share a recording: each task has the same requests on both sides. Exit code 9: not."""
    from evalnoise.recordings.compare import coupling as coupled
    from flows.views.recording import print_coupling
    from schemas.errors import ExitCode
    from tasks.selection import find_side

    one, other = find_side(store, a), find_side(store, b)
    found = coupled(one.rows, other.rows, labels=(one.label, other.label))
    print_coupling(one, other, found, everything=everything, as_json=as_json)
    if not found.valid:
        raise typer.Exit(ExitCode.BLOCKED)


def _check_name(name: str | None) -> None:
    from evalnoise.store.recordings import is_name

    if name is not None and not is_name(name):
        raise misuse(
            f"--name {name[:80]!r}: expected at most 200 lower-case letters, digits, dots, dashes, underscores and tildes, "
            "the first of them a letter or a digit"
        )
