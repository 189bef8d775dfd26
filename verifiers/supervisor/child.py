"""Runs one candidate inside its own process and writes what came of it, line by line, to a file. Standard library alone.

Nothing here is secret or trusted once the candidate's code has begun: whoever reads the file takes values from it and
compares them elsewhere. Each line is a letter and a text in ASCII; `verifiers.jobs.Line` says which letters there are.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schemas.values import TooLargeError, UnencodableError, decode, encode, seems_still
from verifiers.supervisor.answers import CONSTRUCTORS, compile_answer
from verifiers.supervisor.trial import Trial

_FILE = "<candidate>"
_MESSAGE = 200
_OPERAND = "_evalnoise_operand"


class _Report:
    """Writes lines at once, so that what was learnt before a crash is not lost."""

    def __init__(self, file: int, cap: int, budget: int) -> None:
        self._file = file
        self._cap = cap
        self._budget = budget or None

    def line(self, letter: str, text: str = "") -> None:
        data = f"{letter}{text}\n".encode("ascii")
        while data:
            data = data[os.write(self._file, data) :]

    def output(self, value: object) -> bool:
        """Whether the value could be sent."""
        most = self._cap if self._budget is None else min(self._cap, self._budget)
        try:
            text = encode(value, max_bytes=most)
        except TooLargeError as error:
            self.line("l", json.dumps(str(error)))
        except (UnencodableError, RecursionError) as error:
            self.line("u", json.dumps(str(error)))
        else:
            self.line("o", text)
            if self._budget is not None:
                self._budget -= len(text)
            return True
        return False

    def arguments(self, arguments: object, before: str, *, send: bool) -> None:
        """Whether the call changed its arguments, and to what."""
        if not send and seems_still(arguments, before):
            return
        try:
            after = encode(arguments, max_bytes=max(2 * len(before), self._cap))
        except (TooLargeError, UnencodableError, RecursionError):
            after = ""
        if after != before:
            self.line("a", after if send else "")

    def exception(self, error: BaseException, letter: str = "x") -> None:
        if isinstance(error, SystemExit):
            self.line("q")
            return
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        try:
            message = str(error)
        except BaseException:
            message = ""
        self.line(letter, json.dumps({"type": name[:_MESSAGE], "message": message[:_MESSAGE], "line": self._where(error)}))

    def _where(self, error: BaseException) -> int:
        """The last line of the candidate that the exception passed through; 0 where there is none."""
        found = 0
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _FILE:
                found = trace.tb_lineno
            trace = trace.tb_next
        return found

    def syntax(self, error: BaseException) -> None:
        line = getattr(error, "lineno", None) or 0
        message = str(getattr(error, "msg", None) or error)
        body = {"type": type(error).__name__, "message": message[:_MESSAGE], "line": line}
        self.line("s", json.dumps(body))


def run(job: Mapping[str, Any], file: int) -> None:
    """Run the job and write its lines. Returns when the candidate is done; its threads may still run."""
    if "verifiers" in sys.modules:
        _hide()
    random.seed(0)
    report = _Report(file, job["output"], job["outputs"])
    _MODES[job["mode"]](job, report)
    report.line(".")


def _hide() -> None:
    """A candidate's imports should find what a plain Python has."""
    for name in [name for name in sys.modules if name.split(".", 1)[0] in {"schemas", "verifiers"}]:
        del sys.modules[name]


def _compile(source: str, report: _Report, file: str = _FILE) -> types.CodeType | None:
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        report.syntax(error)
        return None


def _module(codes: Sequence[types.CodeType], report: _Report) -> dict[str, Any] | None:
    """The namespace after running the codes, one after the other; None where one raised, which is reported."""
    module = types.ModuleType("candidate")
    sys.modules["candidate"] = module
    try:
        for code in codes:
            exec(code, module.__dict__)
    except BaseException as error:
        report.exception(error, "i")
        return None
    return module.__dict__


def _calls(job: Mapping[str, Any], report: _Report) -> None:
    # Compiled apart, so that a candidate may begin with `from __future__` and its line numbers are its own.
    preamble = _compile(job["preamble"], report, "<preamble>")
    code = _compile(job["source"], report) if preamble else None
    namespace = _module((preamble, code), report) if preamble and code else None
    if namespace is None:
        return
    entry_point = namespace.get(job["entry_point"])
    if not callable(entry_point):
        report.line("m")
        return
    limits = job["input_limits"] or (0.0,) * len(job["inputs"])
    for text, limit in zip(job["inputs"], limits, strict=True):
        if not _call(entry_point, text, limit, job, report):
            return


def _call(entry_point: Callable[..., Any], text: str, limit: float, job: Mapping[str, Any], report: _Report) -> bool:
    """Call the entry point on one input and say what came of it; whether to go on with the next."""
    given: Any = decode(text, max_bytes=len(text))
    arguments, keywords = given if job["keywords"] else (given, {})
    started = time.process_time()
    if limit:
        # Its default action ends the process. Twice the limit, so that border cases are measured.
        signal.setitimer(signal.ITIMER_PROF, 2 * limit)
    error = value = None
    try:
        value = entry_point(*arguments, **keywords)
    except BaseException as raised:
        error = raised
    if limit:
        signal.setitimer(signal.ITIMER_PROF, 0)
        report.line("t", f"{time.process_time() - started:.6f}")
    if error is not None:
        report.exception(error)
        goes_on = not (job["stop"] or isinstance(error, SystemExit))
    else:
        goes_on = report.output([value, arguments] if job["arguments"] == "output" else value) or job["skip"]
    # Plain values cannot be changed: what can is written with a bracket or brace of its own.
    if goes_on and job["arguments"] in {"look", "send"} and ("{" in text or text.count("[") > 1):
        report.arguments(given, text, send=job["arguments"] == "send")
    return bool(goes_on)


def _expression(job: Mapping[str, Any], report: _Report) -> None:
    try:
        code = compile_answer(job["answer"], _FILE)
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        report.syntax(error)
        return
    try:
        value = eval(code, {"__builtins__": dict(CONSTRUCTORS)})  # noqa: S307 - literals and constructors alone
    except BaseException as error:
        report.exception(error)
    else:
        report.output(value)


class _Operand:
    """Stands where CRUXEval's rule has the expected output: notes what it is compared with, and answers as told."""

    __hash__ = None  # type: ignore[assignment]  # like the lists and dicts that it stands for

    def __init__(self, report: _Report | None, *, answer: bool) -> None:
        self._report = report
        self._answer = answer

    def __eq__(self, other: object) -> bool:
        report, self._report = self._report, None
        if report is not None:
            report.output(other)
        return self._answer

    @property
    def compared(self) -> bool:
        return self._report is None


def _published(job: Mapping[str, Any], report: _Report) -> None:
    code = _compile(f"{job['source']}\nassert {_OPERAND} == {job['answer']}", report)
    if code is None:
        return
    for answer in (True, False):
        operand = _Operand(report if answer else None, answer=answer)
        try:
            exec(code, {_OPERAND: operand})
        except BaseException as error:
            if not operand.compared:
                report.line("n")
            report.exception(error)
        else:
            if not operand.compared:
                report.line("n")
            report.line("k")


def _tests(job: Mapping[str, Any], report: _Report) -> None:
    preamble = _compile(job["preamble"], report, "<preamble>")
    namespace = _module([preamble], report) if preamble else None
    if namespace is None:
        return
    try:
        Trial(job, report.line).run(job["test"], namespace)
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        report.syntax(error)


_MODES: dict[str, Callable[[Mapping[str, Any], _Report], None]] = {
    "calls": _calls,
    "expression": _expression,
    "published": _published,
    "tests": _tests,
}
