from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import Any

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.benchmarks.starter import read_tasks
from evalnoise.mutants import mutants
from schemas.errors import DataError
from schemas.records import Benchmark, TaskKind
from schemas.study import StarterBenchmark
from schemas.values import decode

SPEC = StarterBenchmark(name="starter")


@pytest.fixture(scope="module")
def starter() -> Benchmark:
    return load_benchmark(SPEC)


def values(value: Any) -> list[Any]:
    """The value and everything in it."""
    inner = list(value.items()) if isinstance(value, dict) else value
    members = [member for item in inner for member in values(item)] if isinstance(inner, list | tuple | set | frozenset) else []
    return [value, *members]


def longest_literal(text: str) -> Any:
    """Value of the longest literal that a text begins with, up to a comma or the sentence's end."""
    for end in range(len(text), 0, -1):
        try:
            return ast.literal_eval(text[:end].strip().removesuffix(","))
        except (SyntaxError, ValueError):
            continue
    raise AssertionError(text)


def test_tasks_are_numbered_named_and_have_ten_inputs(starter: Benchmark) -> None:
    assert starter.name == "starter"
    assert len(starter.tasks) == 49
    for number, task in enumerate(starter.tasks, start=1):
        assert re.fullmatch(rf"starter/{number:02}-[a-z]+(-[a-z]+)*", task.id)
        assert task.kind is TaskKind.FUNCTION
        assert task.n_base_inputs == len(task.inputs) >= 10
        assert len(set(task.inputs)) == len(task.inputs), f"{task.id} has an input twice"
    assert len({task.entry_point for task in starter.tasks}) == 49


def test_first_task_whole(starter: Benchmark) -> None:
    task = starter.tasks[0]
    assert (task.id, task.entry_point, task.code, task.atol, task.cluster) == (
        "starter/01-alternating-digits",
        "alternating_digits",
        "",
        0.0,
        "",
    )
    assert task.prompt.startswith('def alternating_digits(number: int) -> int:\n    """Add up the decimal digits')
    assert task.prompt.endswith('alternating_digits(-12) is -1.\n    """\n')
    assert task.reference.startswith(task.prompt)
    assert task.reference.endswith("    return -total if number < 0 else total\n")
    assert task.inputs[0] == "[0]"
    assert task.inputs[-1] == '["i"]'.replace('"i"', '{"i":"' + hex(123456789012345678901) + '"}')


def test_prompt_is_a_signature_with_a_docstring_and_gives_nothing_away(starter: Benchmark) -> None:
    for task in starter.tasks:
        *imports, function = ast.parse(task.prompt).body
        assert isinstance(function, ast.FunctionDef)
        assert function.name == task.entry_point
        assert len(function.body) == 1, task.id
        assert ast.get_docstring(function)
        assert all(isinstance(node, ast.Import | ast.ImportFrom) for node in imports)
        assert task.reference.startswith(task.prompt)
        assert task.prompt.startswith(task.code)
        assert not re.search(r"noqa|type: ignore|fmt:|evalnoise|@task", task.reference)


def test_preamble_has_the_imports_that_the_function_uses(starter: Benchmark) -> None:
    code = {task.entry_point: task.code for task in starter.tasks}
    assert code["polyline_length"] == "import math\nfrom itertools import pairwise\n"
    assert code["trimmed_mean"] == "import math\n"
    assert code["split_bill"] == ""
    assert code["look_up"] == "from typing import Any\n"


def test_inputs_are_of_many_kinds(starter: Benchmark) -> None:
    kinds = {type(value) for task in starter.tasks for text in task.inputs for value in values(decode(text))}
    assert kinds >= {int, float, bool, str, bytes, type(None), list, tuple, set, dict}
    assert any(not text.isascii() for task in starter.tasks for text in map(str, map(decode, task.inputs)))
    assert {task.atol for task in starter.tasks} == {0.0, 1e-9, 1e-6}


def test_loading_runs_no_task() -> None:
    script = (
        "import sys; from evalnoise.benchmarks.load import load_benchmark; from schemas.study import StarterBenchmark; "
        "load_benchmark(StarterBenchmark(name='starter')); "
        "print([name for name in sys.modules if name.startswith('evalnoise.benchmarks.starter_tasks')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['evalnoise.benchmarks.starter_tasks']\n"


def test_two_loads_are_equal(starter: Benchmark) -> None:
    assert load_benchmark(SPEC) == starter
    assert starter.sources == ()


def test_canonical_solutions_run_and_say_the_same_twice(starter: Benchmark, run_trusted) -> None:
    jobs = [(task, task.reference) for task in starter.tasks]
    first, second = run_trusted(jobs), run_trusted(jobs)
    assert [results for results, _ in first] == [results for results, _ in second]
    raised = set()
    for task, (results, cpu) in zip(starter.tasks, first, strict=True):
        assert len(results) == len(task.inputs)
        assert "late" not in results
        assert len(set(results)) > 1, f"{task.id} gives one and the same result"
        raised |= {result for result in results if result.startswith("raised")}
        if task.entry_point == "square_products":
            assert 0.1 < cpu < 3, "slow on purpose, but not too slow"
        else:
            assert cpu < 0.5, task.id
    assert raised == {"raised ValueError", "raised IndexError", "raised OverflowError", "raised ZeroDivisionError"}


def test_examples_in_prompts_are_right(starter: Benchmark, run_trusted) -> None:
    """Sentences such as ``f(1, 2) is [3]``: the canonical solution says so too."""
    checked = 0
    for task in starter.tasks:
        text = re.sub(r"\s+", " ", ast.get_docstring(ast.parse(task.prompt).body[-1]))
        names: dict[str, Any] = {}
        exec(f"{task.code}\n{task.reference}", names)
        for match in re.finditer(rf"({task.entry_point}\(.*?\)) is ", text):
            assert eval(match[1], names) == longest_literal(text[match.end() :]), match[0]
            checked += 1
    assert checked >= 10


def test_each_task_has_a_failing_mutant_among_its_first_four(starter: Benchmark, run_trusted) -> None:
    jobs = [(task, text) for task in starter.tasks for text in [task.reference, *list(mutants(task))[:4]]]
    failed = {}
    for (task, text), (results, _) in zip(jobs, run_trusted(jobs, seconds=1), strict=True):
        if text == task.reference:
            canonical = results
            failed[task.id] = False
        failed[task.id] |= results != canonical
    assert [task_id for task_id, found in failed.items() if not found] == []
    assert len(failed) == 49


def test_declared_file_is_parsed_and_not_run(tmp_path) -> None:
    mark = tmp_path / "ran"
    source = f'''
import math
from pathlib import Path
Path({str(mark)!r}).touch()

@task("50-new", inputs=[(1,), ([2.5, "x"], {{3}}), (-1, {{"k": (None, True)}}, [0] * 3, 10**2 + 1)], atol=0.5, cluster="c")
def new(x):
    """Prompt."""
    return math.floor(x)
'''
    ((where, task),) = read_tasks(source, "file.py")
    assert not mark.exists()
    assert where == "file.py:7"
    assert (task.id, task.entry_point, task.code, task.atol, task.cluster) == ("starter/50-new", "new", "import math\n", 0.5, "c")
    assert task.prompt == 'import math\n\n\ndef new(x):\n    """Prompt."""\n'
    assert task.reference == task.prompt + "    return math.floor(x)\n"
    assert [decode(text) for text in task.inputs] == [[1], [[2.5, "x"], {3}], [-1, {"k": (None, True)}, [0, 0, 0], 101]]


@pytest.mark.parametrize(
    "source",
    [
        "def f(:\n",
        'def f(x):\n    """No declaration."""\n',
        '@task("50-x", inputs=[(1,)])\ndef f(x):\n    return x\n',
        '@task("50-x")\ndef f(x):\n    """No inputs."""\n',
        '@task(slug, inputs=[(1,)])\ndef f(x):\n    """No literal."""\n',
    ],
)
def test_damaged_file_is_a_data_error(source: str) -> None:
    with pytest.raises(DataError, match=r"^file\.py.*install evalnoise again\.$"):
        list(read_tasks(source, "file.py"))
