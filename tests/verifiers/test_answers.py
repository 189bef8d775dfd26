"""What may stand as an answer under the rule `expression`: a value written out, never a program that computes it."""

from __future__ import annotations

import pytest

from verifiers.supervisor.answers import CONSTRUCTORS, compile_answer

INLINE = "[exec('def f(x):\\n    return x + 1', g:={}), g['f'](1)][1]"
FRAMES = "(lambda s: [exec(s.f_back.f_locals['job']['source'], g:={}), g['f'](1)][1])(__import__('sys')._getframe())"


def value(text: str) -> object:
    return eval(compile_answer(text, "answer"), {"__builtins__": dict(CONSTRUCTORS)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" [1, -2.5, 'a' 'b', None, True]\n", [1, -2.5, "ab", None, True]),
        ("{'a': (1,), 2: {3}}", {"a": (1,), 2: {3}}),
        ("set()", set()),
        ("frozenset({1})", frozenset({1})),
        ("dict(a=1)", {"a": 1}),
        ("list(range(3))", [0, 1, 2]),
        ("float('inf')", float("inf")),
        ("complex(1, 2) + 1j", 1 + 3j),
        ("bytes([65]) + bytearray(b'B')", b"AB"),
        ("tuple([str(1), int('ff', base=16), bool(0)])", ("1", 255, False)),
        ("'ab' * 2 + 'x' if 1 < 2 and not False else 3", "ababx"),
        ("[1, 2, 3][::-1][0]", 3),
        ("f'{1 + 1:>3}|{2!r}'", "  2|2"),
        ("0 or True", True),
        ("1, 2", (1, 2)),
        ("'a'.upper() + ', '.join(['b', 'c'])", "Ab, c"),
        ("{'a': 1}.get('a')", 1),
        ("list({'a': 1}.items())", [("a", 1)]),
    ],
)
def test_values_written_out(text: str, expected: object) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        INLINE, FRAMES, "f(1)", "len('ab')", "x", "int", "__builtins__", "set", "'a'.upper", "''.__class__", "''.__class__()",
        "(1).real",
        "'{0.__class__}'.format(1)", "'{a.__class__}'.format_map({'a': 1})", "''.__getattribute__('x')", "str.upper('a')",
        "''.join.__self__", "[].__reduce_ex__(2)", "f(1).upper()", "(1).__class__.__base__.__subclasses__()",
        "lambda: 1", "(y := 1)", "[x for x in (1,)]", "{x: 1 for x in ()}", "(x for x in ())", "[*range(3)]",
        "dict(**{'a': 1})", "{**{}}", "int(*['1'])", "f'{len([])}'", "f'{1:{len([])}}'", "[int][0]('1')",
        "(int if 1 else str)('1')", "str(int)", "sorted([1])", "eval('1')", "open('a')", "__import__('os')", "range.__init__",
        "(yield)", "await x", "1; 2", "x = 1", "[1]\nassert True", "", "[1, 2", "set(int)", "dict(a=len)",
    ],
)  # fmt: skip
def test_programs(text: str) -> None:
    with pytest.raises(SyntaxError):
        compile_answer(text, "answer")


def test_the_message_says_what_an_answer_may_be() -> None:
    with pytest.raises(SyntaxError, match="methods of plain values and calls of set, frozenset, dict, list") as caught:
        compile_answer("[1,\n f(2)]", "answer")
    assert caught.value.lineno == 2
