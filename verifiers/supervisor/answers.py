"""What an answer may be that says an output: a value written out, not a program that finds it. Standard library alone.

Literals, containers and operators; names only where one of the constructors below is called; attributes only where a method of
a plain value is called. No other call, no lambda, comprehension or assignment: with those an answer could run the task's code, or
look for it in the interpreter.
"""

from __future__ import annotations

import ast
import types

CONSTRUCTORS: dict[str, type] = {
    kind.__name__: kind for kind in (set, frozenset, dict, list, tuple, bytes, bytearray, complex, range, int, float, str, bool)
}
METHODS = frozenset(
    name
    for kind in (str, bytes, list, tuple, dict, set, frozenset, int, float)
    for name in dir(kind)
    # A format string reaches attributes of its arguments; what begins with an underscore leads out of the plain values.
    if not name.startswith(("_", "format"))
)
_ALLOWED = (
    *(ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare),
    *(ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.Subscript, ast.Slice, ast.Call, ast.keyword),
    *(ast.unaryop, ast.operator, ast.boolop, ast.cmpop, ast.Load),
)
_RULE = f"an answer is a value written out: literals, operators, methods of plain values and calls of {', '.join(CONSTRUCTORS)}"


def compile_answer(text: str, file: str) -> types.CodeType:
    """Code of the one expression. Raises SyntaxError, ValueError, OverflowError, MemoryError or RecursionError."""
    tree = ast.parse(text.strip(), file, "eval")
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            fits = node in called and node.id in CONSTRUCTORS
        elif isinstance(node, ast.Attribute):
            fits = node in called and node.attr in METHODS
        elif isinstance(node, ast.Call):
            fits = isinstance(node.func, ast.Name | ast.Attribute)
        elif isinstance(node, ast.Dict):
            fits = None not in node.keys
        elif isinstance(node, ast.keyword):
            fits = node.arg is not None
        else:
            fits = isinstance(node, _ALLOWED)
        if not fits:
            raise SyntaxError(_RULE, (file, getattr(node, "lineno", 0), 0, None))
    return compile(tree, file, "eval", dont_inherit=True)
