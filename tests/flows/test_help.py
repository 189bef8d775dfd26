"""Every command says what it does: help texts are markup, and a stray bracket in one breaks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import typer.main
from typer.testing import CliRunner

from flows.cli import app


def commands(group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_every_command_has_help(path):
    shown = CliRunner().invoke(app, [*path, "--help"])
    assert shown.exit_code == 0, shown.output
    assert "Usage:" in shown.output
