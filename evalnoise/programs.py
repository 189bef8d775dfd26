"""Reads Python programs without running them: parses hostile text safely, and tells which names a program defines."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator


def parse_program(text: str) -> ast.Module:
    """The program's tree. Every text that is no program, whatever the parser says of it, raises SyntaxError."""
    with warnings.catch_warnings():
        # A doubtful escape in somebody's program is not this process's affair.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (ValueError, MemoryError, RecursionError) as error:
            # Null bytes, lone surrogates, nesting too deep for the parser.
            raise SyntaxError(f"{type(error).__name__}: {error}") from None


def defines(tree: ast.Module, name: str) -> bool:
    """Whether the program binds the name at its top level, also under an ``if`` or in a ``try``."""
    return any(name in _bound(node) for node in _top_level(tree.body))


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _top_level([*node.body, *node.orelse])


def _bound(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name for alias in names}
    return set()
