"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_STORE = Path("evalnoise-store")

MOST_RESAMPLES = 10_000_000
"""As in a study's `analysis`."""
MOST = 10**12
"""Of tasks, samples or runs that are only reckoned with: floats count far beyond it without a gap."""
_OWN = ("studies", "protocols", "recordings", "evalnoise.duckdb", "evalnoise.duckdb.wal")
IN_STORE = "expected a place outside the store's own files, which would be lost"

StudyFile = Annotated[Path, typer.Argument(help="The study file (YAML).", metavar="STUDY")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N tasks, in the benchmark's order.", metavar="N")]
Replicates = Annotated[int | None, typer.Option("--replicates", min=1, help="Replicates instead of the study's.", metavar="R")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Change a value of the study: path=value. Repeatable.", metavar="PATH=VALUE")
]
StoreOption = Annotated[Path, typer.Option("--store", envvar="EVALNOISE_STORE", help="Folder that holds results.", metavar="DIR")]


def check_finite(**values: float | None) -> None:
    """Refuse infinities and NaN; names are those of options, with _ for -."""
    for name, value in values.items():
        if value is not None and not math.isfinite(value):
            raise misuse(f"--{name.replace('_', '-')} {value!r}: expected a finite number")


def check_output(option: str, path: Path, *stores: Path, apart: Mapping[str, Path | None] | None = None) -> None:
    """Refuse, before any work, a place that no result can go to: no folder, or a file that would be lost.

    Lost would be the files that a store lives by, and those of `apart`: each input and each other output of the command under
    the name that the user knows it by.
    """
    try:
        folder, there, lost = path.is_dir(), path.parent.is_dir(), any(in_store(path, store) for store in stores)
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise misuse(f"{option} {path}: expected a place that can be written, found: {error.strerror}") from None
    if folder:
        raise misuse(f"{option} {path}: expected the name of a file, found a folder")
    if not there:
        raise misuse(f"{option} {path}: expected a folder that is there, found no {path.parent}")
    if lost:
        raise misuse(f"{option} {path}: {IN_STORE}")
    refuse_same(option, path, apart or {})


def refuse_same(option: str, path: Path, apart: Mapping[str, Path | None]) -> None:
    """Refuse an output that is, by whatever name, the same file as one that the command reads or writes besides."""
    for name, other in apart.items():
        if other is not None and _same(path, other):
            raise misuse(f"{option} {path}: expected another file than {name} {other}, which would be overwritten")


def _same(one: Path, other: Path) -> bool:
    try:
        if one.exists() and other.exists():
            return one.samefile(other)
        # Names that differ in case alone may become one file; one that is there and one that is not are two.
        return one.exists() == other.exists() and str(one.resolve()).casefold() == str(other.resolve()).casefold()
    except (OSError, RuntimeError):  # links in a circle; what cannot be looked at is refused where it is opened
        return False


def in_store(path: Path, store: Path) -> bool:
    """Whether a path is one of a store's own files or folders, or below one."""
    target, root = path.resolve(), store.resolve()
    return bool({root / name for name in _OWN} & {target, *target.parents})


def misuse(message: str) -> typer.Exit:
    """Print what is wrong with the command, and give the exception to raise for it: exit code 2."""
    from flows.cli_errors import printable
    from schemas.errors import ExitCode

    typer.secho(f"error: {printable(message)}", fg=typer.colors.RED, err=True)
    return typer.Exit(ExitCode.USAGE)
