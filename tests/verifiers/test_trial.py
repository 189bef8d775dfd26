"""The test's side of checker `asserts`, on tests of ours, in this process."""

from __future__ import annotations

import json

import pytest

from schemas.values import encode
from verifiers.supervisor.trial import Trial


def call(*arguments: object, **keywords: object) -> str:
    return encode([list(arguments), keywords])


RAISED = json.dumps({"type": "ValueError", "message": "no", "line": 1})


def tried(test: str, *answers: tuple[str, str, str, str], most: int = 100) -> list[str]:
    """Lines of a test of ours, run in this process on these calls and their answers."""
    lines: list[str] = []
    job = {
        "entry_point": "f",
        "inputs": [each[0] for each in answers],
        "answers": [each[1:] for each in answers],
        "most_calls": most,
    }
    Trial(job, lambda letter, text: lines.append(f"{letter}{text}")).run(test, {})
    return lines


def test_a_lost_test_goes_on_past_what_fails() -> None:
    test = """
def twice(x):
    return f(x) + 1
total = 0
for x in (1, 2):
    total += f(x)
    if f(-x):
        assert f(10 * x) > 0
    elif total:
        f('never')
    with open('/nowhere') as file:
        f(file)
y = twice(3)
while f(4) < 5:
    f('never')
f(y)
f(total)
a, (b, c) = f(5)
f(b)
f(6)
"""
    calls = [*(call(x) for x in (1, -1, 2, -2, 3, 4)), "", "", call(5), "", call(6)]
    assert tried(test) == [f"c{place} {text}" for place, text in enumerate(calls) if text]
    assert tried(test, most=2) == [f"c0 {call(1)}", f"c1 {call(-1)}"]


def test_a_lost_test_ends() -> None:
    assert len(tried("while True:\n    f(1)\n")) == 100
    assert len(tried("n = 0\nwhile n < 5:\n    n += f(1)\n")) == 1
    assert len(tried("while True:\n    assert f(1)\n", most=10**6)) == 2000
    assert tried("try:\n    f(1)\nexcept:\n    pass\nwhile True:\n    f(2)\n", most=1) == [f"c0 {call(1)}"]


def test_a_test_that_is_not_lost_is_left_as_it_is() -> None:
    deep = "".join(f"{'    ' * depth}for _ in [0]:\n" for depth in range(15)) + "    " * 15 + "assert f(1) == 1\n"
    chain = "if f(1) == 2: pass\n" + "".join(f"elif f(1) == {n}: pass\n" for n in range(3, 60)) + "else: assert False\n"
    answer = (call(1), "o", "1", "")
    assert tried(deep, answer) == ["k1"]
    facts = json.loads(tried(chain, *[answer] * 58)[0][1:])
    assert (facts["line"], facts["type"], facts["last"]) == (59, "AssertionError", 57)
    assert tried("try:\n    f(1)\nexcept ZeroDivisionError:\n    pass\n", (call(1), "x", RAISED, ""))[0].startswith("f")


@pytest.mark.parametrize(
    ("kind", "caught"),
    [
        ("ValueError", "ValueError"),
        ("UnicodeDecodeError", "UnicodeDecodeError"),
        ("BaseExceptionGroup", "Exception"),
        ("decimal.InvalidOperation", "Exception"),
        ("candidate.f.<locals>.Own", "Exception"),
        ("int", "Exception"),
        ("no name\x00", "Exception"),
        ("", "Exception"),
    ],
)
def test_exceptions_by_name(kind: str, caught: str) -> None:
    body = json.dumps({"type": kind, "message": "why", "line": 1})
    test = f"try:\n    f(1)\nexcept {caught} as error:\n    assert str(error) == 'why'\nelse:\n    assert False\n"
    assert tried(test, (call(1), "x", body, "")) == ["k1"]
