from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.literals import other_literals
from evalnoise.mutants import LIMIT, STUB_PLACE, mutants
from schemas.records import Task, TaskKind


def of(reference: str, entry_point: str = "f", kind: TaskKind = TaskKind.FUNCTION) -> list[str]:
    return list(mutants(Task(id="t", kind=kind, prompt="", reference=reference, entry_point=entry_point)))


def body(*lines: str) -> str:
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "mutant"),
    [
        ("return x < 3", "return x <= 3"),
        ("return x >= 3", "return x > 3"),
        ("return x == 3", "return x != 3"),
        ("return x > 3", "return x < 3"),
        ("return x in (1, 2)", "return x not in (1, 2)"),
        ("return x[7]", "return x[8]"),
        ("return x[7]", "return x[6]"),
        ("return x + y", "return x - y"),
        ("return x // y", "return x / y"),
        ("return list(range(x))", "return list(range(x - 1))"),
        ("return list(range(x))", "return list(range(1, x))"),
        ("return list(range(a, x))", "return list(range(a, x - 1))"),
        ("return x[a:b]", "return x[a + 1:b]"),
        ("return x[a:b]", "return x[a:b - 1]"),
        ("return x[::c]", "return x[:]"),
        ("return x and y", "return x or y"),
        ("return x and y", "return y"),
        ("return not x", "return x"),
        ("return -x", "return x"),
        ("return True", "return False"),
        ("return min(x)", "return max(x)"),
        ("return sorted(x, key=k)", "return list(x)"),
        ("return x.upper()", "return x.lower()"),
        ("return (x, y)", "return (y, x)"),
        ("return [x, y]", "return [x, y][1:]"),
        ("return x", "return None"),
        ("return x if y else z", "return z if y else x"),
        ("return 'ab'", "return 'a'"),
    ],
)
def test_one_change(line: str, mutant: str) -> None:
    assert body(mutant).rstrip() in of(body(line))


@pytest.mark.parametrize(
    ("lines", "mutant"),
    [
        (("x += y", "return x"), ("x -= y", "return x")),
        (("x += y", "return x"), ("pass", "return x")),
        (("x.sort()", "return x"), ("pass", "return x")),
        (("if x:", "    return 1", "return y"), ("pass", "return y")),
        (("if x:", "    return 1", "return y"), ("if not x:", "    return 1", "return y")),
        (("for a in x:", "    continue", "return y"), ("for a in x:", "    pass", "return y")),
    ],
)
def test_changed_statements(lines: tuple[str, ...], mutant: tuple[str, ...]) -> None:
    assert body(*mutant).rstrip() in of(body(*lines))


def test_order_takes_kinds_in_turn_and_loops_last() -> None:
    found = of(body("while x > 5:", "    x -= 2", "return x < 1"))
    assert found[:4] == [
        body("while x > 5:", "    x -= 2", "return x <= 1").rstrip(),
        body("while x > 5:", "    x -= 2", "return x < 2").rstrip(),
        body("while x > 5:", "    x -= 2", "return None").rstrip(),
        body("while x > 5:", "    x -= 2", "return x > 1").rstrip(),
    ]
    assert found.index(body("while x > 5:", "    x -= 2", "return x < 0").rstrip()) == 4
    assert found.index(body("while x >= 5:", "    x -= 2", "return x < 1").rstrip()) == 5


def test_stub_comes_after_nine_at_the_latest_and_keeps_the_docstring() -> None:
    reference = body('"""Say."""', *[f"x = x + {number}" for number in range(20)], "return x * 2")
    found = of(reference)
    assert found[STUB_PLACE] == body('"""Say."""', "return None").rstrip()
    assert of("def f(x):\n    return g(x)\n") == ["def f(x):\n    return None"]


def test_entry_point_is_changed_before_its_helpers() -> None:
    found = of("def g(x):\n    return x + 1\n\ndef f(x):\n    return g(x) * 3\n")
    own = [index for index, text in enumerate(found) if "return x + 1" in text]
    assert own == list(range(len(own)))
    assert len(own) < len(found)


def test_annotations_docstrings_and_formats_are_left_alone() -> None:
    reference = 'def f(x: "ab"=None, *, y: int) -> "cd":\n    """Doc."""\n    return f"{x:>10}"\n'
    for text in of(reference):
        assert text.startswith('def f(x: \'ab\'=None, *, y: int) -> \'cd\':\n    """Doc."""\n')
        assert ">9}" not in text


def test_lambda_and_class_entry_points() -> None:
    assert "f = lambda x: x <= 1" in of("f = lambda x: x < 1")
    assert any("return 2" in text for text in of("class f:\n\n    def g(self):\n        return 1\n"))


def test_text_that_is_no_program_has_no_mutants() -> None:
    assert of("def f(:") == []
    assert of("def f(): pass\x00") == []


def test_distinct_parseable_limited_and_never_the_reference() -> None:
    reference = body(*[f"if x > {n} and y[{n}:x] != 'ab' or min(x, {n}) % 3: x += {n}" for n in range(30)], "return x")
    found = of(reference)
    assert len(found) == LIMIT == 40
    assert len(set(found)) == 40
    same = ast.dump(ast.parse(reference))
    for text in found:
        tree = ast.parse(text)
        assert ast.dump(tree) != same
        assert tree.body[-1].name == "f"


def test_the_same_in_another_process() -> None:
    reference = body("s = {1, 2}", "return [a for a in x if a in s and a < 3][::-1]")
    script = (
        "import sys; from evalnoise.mutants import mutants; from schemas.records import Task, TaskKind; "
        "print('|'.join(mutants(Task(id='', kind=TaskKind.FUNCTION, prompt='', reference=sys.argv[1], entry_point='f'))), end='')"
    )
    for seed in ("1", "2"):
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", script, reference], capture_output=True, text=True, check=True, timeout=60, env=env
        )
        assert done.stdout == "|".join(of(reference))


@pytest.mark.parametrize(
    ("reference", "nearest"),
    [
        ("3", ["4", "2", "-3", "6", "30", "None", "0"]),
        ("True", ["False", "None", "0", "''", "[]"]),
        ("1", ["2", "0", "-1"]),
        ("0", ["1", "-1", "None", "''", "[]"]),
        ("1.5", ["2.5", "0.5", "-1.5"]),
        ("'abc'", ["'ab'", "'bc'", "'abcc'", "'ABC'", "'cba'"]),
        ("''", ["' '", "None", "0", "[]"]),
        ("[1, 2]", ["[1]", "[1, 3]", "[2, 2]", "[2, 1]", "[2]", "[1, 2, 2]"]),
        ("('a',)", ["()", "('',)"]),
        ("{'a': 1}", ["{'a': 2}", "{}", "{'a': 1, None: None}"]),
        ("{1, 2}", ["{1}", "{2}"]),
        ("None", ["False", "0", "''"]),
        ("b'ab'", ["b'a'"]),
        ("[]", ["[None]", "None", "0", "''"]),
    ],
)
def test_other_literals(reference: str, nearest: list[str]) -> None:
    assert of(reference, kind=TaskKind.OUTPUT)[: len(nearest)] == nearest


def test_what_is_no_literal_gets_common_ones() -> None:
    assert of("f(3)", kind=TaskKind.OUTPUT) == ["None", "0", "''", "[]", "True"]


def test_integers_of_thousands_of_digits() -> None:
    assert "-" + "9" * 4300 in of("9" * 4300, kind=TaskKind.OUTPUT)


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.sets(st.integers() | st.text(), min_size=1)
    ),
    max_leaves=8,
)


@given(LITERALS)
def test_literals_differ_in_value_and_parse(value: object) -> None:
    found = list(other_literals(repr(value)))
    assert found
    assert len(set(found)) == len(found)
    assert all(ast.literal_eval(text) != value for text in found)


@pytest.mark.parametrize(
    ("reference", "first"),
    [
        ("42", ["43", "41", "84", "420", "-42"]),
        ("-7", ["-8", "-6", "-14", "-70", "7"]),
        ("3.05", ["3.06", "3.04", "3.10", "3.50", "4.05"]),
        ("0", ["1", "-0"]),
        ("3/4", ["3/5", "3/3", "3/8", "3/40", "4/4"]),
        ("Paris", ["Pari", "aris", "Pariss", "pARIS"]),
        ("x", ["xx", "X", "I do not know"]),
    ],
)
def test_mutants_of_an_answer(reference: str, first: list[str]) -> None:
    found = list(mutants(Task("t", TaskKind.ANSWER, "", reference, "")))
    assert found[: len(first)] == first
    assert len(found) == len(set(found)) <= LIMIT
    assert reference not in found
    assert all(other.strip() and "\n" not in other for other in found)
