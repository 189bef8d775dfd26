"""Wrong variants of a task's reference, for simulated models: deterministic, distinct, the most plausible mistakes first."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from evalnoise.answers import other_answers
from evalnoise.literals import other_literals
from evalnoise.programs import parse_program
from schemas.records import Task, TaskKind

LIMIT = 40
"""Mutants per task at most."""
STUB_PLACE = 9
"""A function that returns nothing comes after so many mutants at the latest, so that a failing one is near the front."""

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "upper": "lower",
    "lower": "upper",
    "startswith": "endswith",
    "endswith": "startswith",
    "ceil": "floor",
    "floor": "ceil",
    "sorted": "list",
    "set": "list",
    "append": "extend",
    "isupper": "islower",
    "islower": "isupper",
    "lstrip": "rstrip",
    "rstrip": "lstrip",
    "find": "rfind",
}
_LARGEST_CONSTANT = 10**6
"""A larger one is a modulus or a bound: one more or less of it changes little."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """One place of the tree and what to put there."""

    holder: ast.AST
    field: str
    place: int | None
    replacement: ast.AST


_Variants = Callable[[ast.AST], Iterator[ast.AST]]


def mutants(task: Task) -> Iterator[str]:
    """Variants of ``task.reference``, none equal to it; at most `LIMIT`.

    They are likely wrong, not surely: only running them shows it. Kind ``function``: whole programs that define the entry point,
    made by one small change each. Kind ``output``: other literals. Kind ``answer``: other texts and numbers.
    """
    makers: dict[TaskKind, Callable[[], Iterator[str]]] = {
        TaskKind.FUNCTION: lambda: _programs(task),
        TaskKind.OUTPUT: lambda: other_literals(task.reference),
        TaskKind.ANSWER: lambda: other_answers(task.reference),
    }
    return islice(makers[task.kind](), LIMIT)


def _programs(task: Task) -> Iterator[str]:
    try:
        tree = parse_program(task.reference)
    except SyntaxError:
        return
    seen = {ast.unparse(tree)}
    stub = _stub(tree, task.entry_point)
    for number, edit in enumerate(_edits(tree, task.entry_point)):
        if stub and number == STUB_PLACE:
            yield stub
            seen.add(stub)
        text = _applied(tree, edit)
        if text not in seen:
            seen.add(text)
            yield text
    if stub and stub not in seen:
        yield stub


def _edits(tree: ast.Module, entry_point: str) -> Iterator[_Edit]:
    """All edits: the entry point's before other functions', those that may loop for ever last."""
    entry = [node for node in tree.body if _is_entry(node, entry_point)]
    rest = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node not in entry]
    groups = (_of_functions(nodes, looping=looping) for looping in (False, True) for nodes in (entry, rest))
    return chain.from_iterable(groups)


def _is_entry(node: ast.stmt, entry_point: str) -> bool:
    """Whether the statement defines the entry point, as a function or as a lambda with a name."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name == entry_point
    return False


def _of_functions(nodes: Sequence[ast.stmt], *, looping: bool) -> Iterator[_Edit]:
    """Edits of some functions, inside or outside of loops that may not end, kind of mistake by kind of mistake in turn."""
    sites = [site for node in nodes for site in _sites(node, looping=False) if site[-1] is looping]
    columns = [[_Edit(*site[:3], replacement) for site in sites for replacement in variants(site[3])] for variants in _KINDS]
    return (edit for row in zip_longest(*columns) for edit in row if edit is not None)


_Site = tuple[ast.AST, str, int | None, ast.AST, bool]
"""Holder, field and place of a node, the node, and whether it is inside a ``while``, so that a mutant may run for ever."""


def _sites(node: ast.AST, *, looping: bool) -> Iterator[_Site]:
    """Every child below a node, in source order, with the place that holds it. Annotations and docstrings are left out."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_params"} or isinstance(node, ast.JoinedStr):
            continue
        children = enumerate(value) if isinstance(value, list) else ((None, value),)
        for place, child in children:
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            inside = looping or isinstance(node, ast.While)
            yield node, field, place, child, inside
            yield from _sites(child, looping=inside)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _applied(tree: ast.Module, edit: _Edit) -> str:
    """The program with one edit. The tree is changed and changed back, which is far cheaper than a copy."""
    if edit.place is None:
        before = getattr(edit.holder, edit.field)
        setattr(edit.holder, edit.field, edit.replacement)
        text = ast.unparse(tree)
        setattr(edit.holder, edit.field, before)
        return text
    children = getattr(edit.holder, edit.field)
    before = children[edit.place]
    children[edit.place] = edit.replacement
    text = ast.unparse(tree)
    children[edit.place] = before
    return text


def _stub(tree: ast.Module, entry_point: str) -> str | None:
    """The program with an entry point that returns nothing."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            body = node.body
            node.body = [*(body[:1] if _is_text(body[0]) else []), ast.Return(ast.Constant(None))]
            text = ast.unparse(tree)
            node.body = body
            return text
    return None


def _comparisons(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)][:1]:
                yield ast.Compare(node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators)


def _reversed_comparisons(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)][1:]:
                yield ast.Compare(node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators)


def _constants(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=int() | float() as value) if type(value) is not bool and abs(value) <= _LARGEST_CONSTANT:
            yield ast.Constant(value + 1)
            if value:
                yield ast.Constant(value - 1)


def _texts(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield ast.Constant(node.value[:-1] if node.value else " ")


def _operators(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    if isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
        yield ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value)


def _truths(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            for place in range(len(node.values)):
                left = node.values[:place] + node.values[place + 1 :]
                yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If():
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)


def _bounds(node: ast.AST) -> Iterator[ast.AST]:
    """Ranges and slices that are one too short or begin one late."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[stop]):
            yield ast.Call(node.func, [ast.BinOp(stop, ast.Sub(), ast.Constant(1))], [])
            yield ast.Call(node.func, [ast.Constant(1), stop], [])
        case ast.Call(func=ast.Name(id="range"), args=[start, stop, *step]):
            yield ast.Call(node.func, [start, ast.BinOp(stop, ast.Sub(), ast.Constant(1)), *step], [])
            yield ast.Call(node.func, [ast.BinOp(start, ast.Add(), ast.Constant(1)), stop, *step], [])
        case ast.Slice(lower=lower, upper=upper, step=step):
            if lower is not None:
                yield ast.Slice(ast.BinOp(lower, ast.Add(), ast.Constant(1)), upper, step)
            if upper is not None:
                yield ast.Slice(lower, ast.BinOp(upper, ast.Sub(), ast.Constant(1)), step)
            if step is not None:
                yield ast.Slice(lower, upper, None)


def _calls(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield ast.Call(ast.Name(_CALLS[name]), node.args, [] if name == "sorted" else node.keywords)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CALLS:
            yield ast.Call(ast.Attribute(value, _CALLS[name]), node.args, node.keywords)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Left-out statements; assignments stay, because without them the name would be missing."""
    if isinstance(node, ast.AugAssign | ast.Expr | ast.Continue | ast.Break | ast.Delete | ast.Raise):
        yield ast.Pass()
    if isinstance(node, ast.If) and not node.orelse:
        yield ast.Pass()


def _results(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Return) and node.value is not None:
        match node.value:
            case ast.Tuple(elts=[first, second, *rest]):
                yield ast.Return(ast.Tuple([second, first, *rest]))
            case ast.List() | ast.ListComp():
                yield ast.Return(ast.Subscript(node.value, ast.Slice(ast.Constant(1))))
        yield ast.Return(ast.Constant(None))


_KINDS: tuple[_Variants, ...] = (
    _comparisons,
    _constants,
    _bounds,
    _operators,
    _truths,
    _calls,
    _statements,
    _results,
    _conditions,
    _texts,
    _reversed_comparisons,
)
"""Kinds of mistake, the most plausible first; one of each is taken in turn."""
