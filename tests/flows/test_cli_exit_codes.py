"""The exit codes and their page."""

from __future__ import annotations

import re
from pathlib import Path

from flows.cli_errors import ShowWarnings
from schemas import errors
from schemas.errors import EvalnoiseError, ExitCode
from verifiers.sandbox.process import NoSandboxWarning

PAGE = Path(__file__).parents[2] / "docs/guide/exit-codes.md"


def test_the_page_lists_every_code_once():
    rows = re.findall(r"^\| (\d+) \| ([A-Z]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(int(number), name) for number, name in rows] == [(int(code), code.name) for code in ExitCode]


def test_every_typed_error_has_a_code_of_its_own():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EvalnoiseError)]
    codes = [kind.exit_code for kind in kinds if kind.__bases__ == (EvalnoiseError,)]
    assert len(set(codes)) == len(codes) == 9
    assert not {ExitCode.OK, ExitCode.INTERNAL, ExitCode.USAGE, ExitCode.INTERRUPTED} & set(codes)


def test_a_warning_is_shown_once_and_those_of_libraries_never(capsys):
    show = ShowWarnings()
    for text in ("no sandbox", "no sandbox", "another"):
        show(NoSandboxWarning(text), NoSandboxWarning, "a.py", 1)
    show("of a library", DeprecationWarning, "a.py", 1)
    assert capsys.readouterr().err == "warning: no sandbox\nwarning: another\n"
