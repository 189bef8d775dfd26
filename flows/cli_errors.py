"""How errors leave the command line: a sentence on stderr and a documented exit code, never a traceback for a user's mistake."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TextIO, TypeVar

import typer

from schemas.errors import EvalnoiseError, ExitCode

P = ParamSpec("P")
R = TypeVar("R")


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """The command with its typed errors printed and turned into exit codes."""

    @functools.wraps(command)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except EvalnoiseError as error:
            typer.secho(f"error: {printable(str(error))}", fg=typer.colors.RED, err=True)
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:
            # The reader went away, as `head` does; Python must not complain about it at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.OK) from None
        except KeyboardInterrupt:
            raise _stopped() from None
        except Exception as error:
            if not _interrupted(error):
                raise
            raise _stopped() from None

    return inner


def _stopped() -> typer.Exit:
    typer.secho("stopped. What was sealed or journalled is kept; the same command continues.", fg=typer.colors.YELLOW, err=True)
    return typer.Exit(ExitCode.INTERRUPTED)


def _interrupted(error: Exception) -> bool:
    """Whether DuckDB made this of Ctrl-C: in a query that runs, it takes the place of KeyboardInterrupt."""
    # By its name, so that commands that need no DuckDB do not wait for it.
    return type(error).__name__ == "InterruptException" or (type(error) is RuntimeError and str(error) == "Query interrupted")


def printable(text: str) -> str:
    """Text that may come from a candidate or a provider, safe to print: control characters become escapes."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


class ShowWarnings:
    """One line for each of evalnoise's own warnings; others are for developers, who see them in the tests."""

    def __init__(self) -> None:
        # Python's own memory of what it showed is emptied by any library that touches the filters, as Prefect does.
        self._shown: set[str] = set()

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        _filename: str,
        _lineno: int,
        _file: TextIO | None = None,
        _line: str | None = None,
    ) -> None:
        """Take the place of `warnings.showwarning`."""
        said = printable(str(message))
        if (
            category.__module__.partition(".")[0] in {"flows", "tasks", "verifiers", "evalnoise", "schemas"}
            and said not in self._shown
        ):
            self._shown.add(said)
            typer.secho(f"warning: {said}", fg=typer.colors.YELLOW, err=True)
