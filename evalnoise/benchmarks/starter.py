"""The starter benchmark: tasks of evalnoise's own, read from the source text of `starter_tasks` without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import resources
from typing import Any

from evalnoise.benchmarks.base import benchmark
from schemas.errors import DataError
from schemas.records import Benchmark, Task, TaskKind
from schemas.values import encode

PACKAGE = "evalnoise.benchmarks.starter_tasks"
REMEDY = "The tasks are part of the package: install evalnoise again."
_OWN_FILES = frozenset({"__init__.py", "declare.py"})


def load_starter() -> Benchmark:
    """The starter tasks in the order of their numbers.

    There are no source files to pin: the tasks are part of the package, and the benchmark's digest covers all of each.

    Raises:
        DataError: A file of the package was damaged.
    """
    found: list[tuple[str, Task]] = []
    for file in resources.files(PACKAGE).iterdir():
        if file.name.endswith(".py") and file.name not in _OWN_FILES:
            found += read_tasks(file.read_text(encoding="utf-8"), f"{PACKAGE}/{file.name}")
    return benchmark("starter", sorted(found, key=lambda row: row[1].id), [], remedy=REMEDY)


def read_tasks(source: str, path: str) -> Iterator[tuple[str, Task]]:
    """The tasks that a file of the package declares, each with its place. Nothing of the file is run.

    Args:
        source: The file's text.
        path: Its name, for errors.

    Raises:
        DataError: The file is no Python, or a task is not declared as `declare.task` says.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        found = f"{error.msg} in line {error.lineno}"
        raise DataError(path, expected="Python source", found=found, remedy=REMEDY) from None
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            where = f"{path}:{node.lineno}"
            yield where, _task(node, source.split("\n"), imports, where)


def _task(node: ast.FunctionDef, lines: list[str], imports: list[ast.Import | ast.ImportFrom], where: str) -> Task:
    slug, options = _declaration(node, where)
    # The docstring's end is the prompt's end; what follows is the solution.
    prompt_end = node.body[0].end_lineno or 0
    preamble = "".join(line + "\n" for line in _used_imports(node, imports))
    head = preamble + "\n\n" if preamble else ""
    return Task(
        id=f"starter/{slug}",
        kind=TaskKind.FUNCTION,
        prompt=head + "\n".join(lines[node.lineno - 1 : prompt_end]) + "\n",
        reference=head + "\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n",
        entry_point=node.name,
        code=preamble,
        inputs=tuple(encode(list(arguments)) for arguments in options["inputs"]),
        n_base_inputs=len(options["inputs"]),
        atol=options.get("atol", 0.0),
        cluster=options.get("cluster", ""),
        in_place=options.get("in_place", False),
    )


def _declaration(node: ast.FunctionDef, where: str) -> tuple[str, dict[str, Any]]:
    """Slug and options from the decorator ``@task("NN-name", inputs=[…], …)``."""
    match node.decorator_list:
        case [ast.Call(func=ast.Name(id="task"), args=[ast.Constant(value=str(slug))], keywords=keywords)]:
            options = {keyword.arg or "": _literal(keyword.value) for keyword in keywords}
        case _:
            options = {}
    if "inputs" not in options or ast.get_docstring(node) is None:
        expected = "a function with a docstring under @task(slug, inputs=[…])"
        raise DataError(where, expected=expected, found=f"the function {node.name}", remedy=REMEDY)
    return slug, options


def _literal(node: ast.expr) -> Any:
    """Value of a literal, in which sums, powers and repetitions of literals may stand for long ones."""
    if isinstance(node, ast.BinOp):
        left, right = _literal(node.left), _literal(node.right)
        if isinstance(node.op, ast.Pow):
            return left**right
        return left * right if isinstance(node.op, ast.Mult) else left + right
    if isinstance(node, ast.List):
        return [_literal(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_literal(item) for item in node.elts)
    if isinstance(node, ast.Dict):
        return {_literal(key): _literal(value) for key, value in zip(node.keys, node.values, strict=True) if key is not None}
    return ast.literal_eval(node)


def _used_imports(node: ast.FunctionDef, imports: list[ast.Import | ast.ImportFrom]) -> list[str]:
    """The file's imports that the function needs, as source lines."""
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    names -= {"task"}
    return [ast.unparse(line) for line in imports if any((alias.asname or alias.name) in names for alias in line.names)]
