"""Runs a task's own test on answers that a candidate gave elsewhere, for checker `asserts`. Standard library alone.

Where the test calls the entry point, the answer is looked up. At the first call without one the test is lost: its verdict no
longer counts, but it runs on, with a value that refuses to be used and with every statement that fails passed over, and says
each further call that does not hang on the missing answer. So one run finds many calls, and none of them holds a result that
the candidate did not give itself: a test that is run on no answers at all tells no expected value by its calls.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import types
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from schemas.values import TooLargeError, UnencodableError, decode, encode

FILE = "<test>"
_CALL_BYTES = 2**20
_MESSAGE = 200
_PASSED_OVER = 2_000
"""Failing statements that a lost test may go on after: a loop that waits for an answer would never end."""
_LOST = "_evalnoise_lost"
_NOTE = "_evalnoise_note"
_NOT_KNOWN = "_evalnoise_not_known"
_UNGUARDED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue),
)


class _Enough(BaseException):
    """There is no more to learn from this run."""


class _Unknown:
    """Stands for an answer that nobody has given yet. Every use of it raises, so that nothing can hang on it."""

    def _refuse(self, *_: object) -> Any:
        raise TypeError("the answer to this call is not known yet")

    __eq__ = __ne__ = __bool__ = __repr__ = __str__ = _refuse
    __hash__ = None  # type: ignore[assignment]  # like a list: no key of a dict


class Trial:
    """One run of a test. Writes lines by the function that it is given; `verifiers.jobs.Line` says which."""

    def __init__(self, job: Mapping[str, Any], line: Callable[[str, str], None]) -> None:
        self._entry_point: str = job["entry_point"]
        self._calls: list[str] = job["inputs"]
        self._answers: list[tuple[str, str, str]] = job["answers"]
        self._most: int = job["most_calls"]
        self._line = line
        self._made = 0
        self._lost = self._ended = False
        self._passed_over = 0
        self._raised: list[tuple[BaseException, int]] = []
        self._namespace: dict[str, Any] = {}

    def run(self, source: str, namespace: dict[str, Any]) -> None:
        """Run the test in the namespace. Raises SyntaxError and its like if it is no program."""
        tree = ast.parse(source, FILE)
        code = _compiled(tree, source)
        self._namespace = namespace
        namespace[self._entry_point] = namespace["candidate"] = entry_point = self._stand_in()
        namespace |= {_LOST: (), _NOTE: self._note, _NOT_KNOWN: _Unknown()}
        error = None
        try:
            exec(code, namespace)
            if _leaves_check_to_us(tree):
                namespace["check"](entry_point)
        except _Enough:
            return
        except BaseException as raised:
            error = raised
        if self._lost or self._ended:
            return
        if error is None:
            self._line("k", str(self._made))
        else:
            self._failed(error)

    def _stand_in(self) -> Callable[..., Any]:
        def entry_point(*arguments: Any, **keywords: Any) -> Any:
            return self._call(arguments, keywords)

        entry_point.__name__ = entry_point.__qualname__ = self._entry_point
        return entry_point

    def _call(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if self._ended:
            raise _Enough
        place, text = self._made, ""
        self._made += 1
        try:
            text = encode([list(arguments), keywords], max_bytes=_CALL_BYTES)
        except (TooLargeError, UnencodableError, RecursionError) as error:
            if not self._lost:
                self._say(error, place)
        known = place < len(self._calls) and text == self._calls[place] and bool(self._answers[place][0])
        if self._lost or not known:
            self._lost = True
            self._namespace[_LOST] = Exception
            if text:
                self._line("c", f"{place} {text}")
        if known:
            return self._answer(place, arguments, keywords)
        if place + 1 >= self._most:
            self._end()
        return _Unknown()

    def _say(self, error: Exception, place: int) -> None:
        letter = "l" if isinstance(error, TooLargeError) else "u"
        self._line(letter, json.dumps(f"arguments of call {place}: {error}"[:_MESSAGE]))
        self._end()

    def _end(self) -> NoReturn:
        self._ended = True
        raise _Enough

    def _note(self) -> None:
        """A statement of a lost test failed and is passed over."""
        self._passed_over += 1
        if self._passed_over >= _PASSED_OVER:
            self._end()

    def _answer(self, place: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        letter, body, after = self._answers[place]
        if after:
            changed: Any = decode(after, max_bytes=len(after))
            positional, named = changed
            pairs = [*zip(arguments, positional, strict=False), *((keywords[name], named[name]) for name in keywords)]
            for old, new in pairs:
                _put(old, new)
        if letter == "x":
            error = _exception(json.loads(body))
            self._raised.append((error, place))
            raise error
        return decode(body, max_bytes=len(body))

    def _failed(self, error: BaseException) -> None:
        """Say which statement failed, and whether it was the candidate's own exception that came through."""
        line, trace = 0, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == FILE:
                line = trace.tb_lineno
            trace = trace.tb_next
        facts = {
            "type": "AssertionError" if isinstance(error, AssertionError) else type(error).__name__[:_MESSAGE],
            "message": str(error)[:_MESSAGE],
            "line": line,
            "call": next((place for raised, place in self._raised if raised is error), -1),
            "last": self._made - 1,
        }
        self._line("f", json.dumps(facts))


def _compiled(tree: ast.Module, source: str) -> types.CodeType:
    guarded = ast.Module(body=[_guarded(node) for node in ast.parse(source, FILE).body], type_ignores=[])
    try:
        return compile(ast.fix_missing_locations(guarded), FILE, "exec", dont_inherit=True)
    except SyntaxError:  # blocks nested too deeply, unless the test itself is at fault
        return compile(tree, FILE, "exec", dont_inherit=True)


def _guarded(node: ast.stmt, *, alone: bool = True) -> ast.stmt:
    """The statement, and all below it, in a `try` that catches nothing until the test is lost."""
    for owner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(owner, field, None)
            if isinstance(body, list):
                # An `elif` stays one, lest a long chain becomes deep.
                elif_ = field == "orelse" and isinstance(node, ast.If) and len(body) == 1 and isinstance(body[0], ast.If)
                setattr(owner, field, [_guarded(child, alone=not elif_) for child in body])
    if not alone or isinstance(node, _UNGUARDED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return node
    note = ast.Expr(ast.Call(ast.Name(_NOTE, ast.Load()), [], []))
    handler = ast.ExceptHandler(type=ast.Name(_LOST, ast.Load()), name=None, body=[note, *_instead(node)])
    return ast.copy_location(ast.Try(body=[node], handlers=[handler], orelse=[], finalbody=[]), node)


def _instead(node: ast.stmt) -> list[ast.stmt]:
    """What takes the place of a statement that gives a value and failed: nobody knows that value."""
    if isinstance(node, ast.Return):
        return [ast.Return(ast.Name(_NOT_KNOWN, ast.Load()))]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return []
    names = {inner.id for target in targets if target for inner in ast.walk(target) if isinstance(inner, ast.Name)}
    stored = sorted(names if all(map(_is_plain, targets)) else ())
    return [ast.Assign([ast.Name(name, ast.Store())], ast.Name(_NOT_KNOWN, ast.Load())) for name in stored]


def _is_plain(target: ast.expr | None) -> bool:
    """Whether names alone are assigned to."""
    return isinstance(target, ast.Name) or (isinstance(target, ast.Tuple | ast.List) and all(map(_is_plain, target.elts)))


def _leaves_check_to_us(tree: ast.Module) -> bool:
    """Whether the test defines `check` and does not call it itself."""
    called = any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "check"
        for node in tree.body
    )
    return not called and any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)


def _put(old: Any, new: Any) -> None:
    """Make a container that the test holds what the candidate made of it; other values cannot have changed."""
    if type(old) is not type(new) or encode(old, max_bytes=_CALL_BYTES) == encode(new, max_bytes=_CALL_BYTES):
        return
    if isinstance(old, list | bytearray):
        old[:] = new
    elif isinstance(old, dict):
        old.clear()
        for key, value in new.items():
            old[key] = value
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, deque):
        old.clear()
        old.extend(new)


def _exception(facts: Mapping[str, Any]) -> BaseException:
    """The builtin exception of that name, or one of an own type with that name."""
    name = facts["type"].rpartition(".")[2]
    message = facts["message"]
    kind = getattr(builtins, facts["type"], None)
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        return _own(name, Exception, message)
    if issubclass(kind, StopIteration | StopAsyncIteration):
        # As itself it would end a loop of the test's, over `map` say, as if all its calls had been right.
        return _own(name, RuntimeError, message)
    for make in (kind, lambda said: _own(name, kind, said)):
        with contextlib.suppress(TypeError):  # UnicodeDecodeError and its like want more than a message
            return make(message)
    return _own(name, Exception, message)


def _own(name: str, base: type[BaseException], message: str) -> BaseException:
    plain = name if name.isascii() and name.isidentifier() else "CandidateError"
    made: type[BaseException] = type(plain, (base,), {"__init__": lambda *_: None, "__str__": lambda _: message})
    return made()
