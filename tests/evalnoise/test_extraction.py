from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.extraction import Extraction, answer_beyond_thinking, extract
from schemas.records import Task, TaskKind

ADD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a +\n"
USE = "print(add(1, 2))\n"


def task(kind: TaskKind = TaskKind.FUNCTION) -> Task:
    return Task(id="t", kind=kind, prompt="", reference="", entry_point="add")


def fence(text: str, tag: str = "python", mark: str = "```") -> str:
    return f"{mark}{tag}\n{text}{mark}\n"


ROWS: list[tuple[str, str, str | None, str]] = [
    # no fence
    ("whole text", ADD, ADD, "unfenced"),
    ("whole text with a call after", ADD + "\nprint(add(5, 1))\n", ADD + "\nprint(add(5, 1))\n", "unfenced"),
    ("whole text, indented", "    def add(a, b):\n        return a + b\n", ADD, "unfenced"),
    ("whole text, CRLF", ADD.replace("\n", "\r\n"), ADD, "unfenced"),
    ("whole text, CR", ADD.replace("\n", "\r"), ADD, "unfenced"),
    ("whole text, byte order mark", "\ufeff" + ADD, ADD, "unfenced"),
    ("whole text without final newline", ADD.rstrip(), ADD.rstrip(), "unfenced"),
    ("another program", "x = 1\n", "x = 1\n", "unfenced"),
    ("prose after, no fence", ADD + "\nThis adds two numbers.\n", None, "none"),
    ("one word", "Sorry", None, "none"),
    ("a comment alone", "# I cannot\n", None, "none"),
    ("prose", "I can't help with that.", None, "none"),
    ("empty", "", None, "empty"),
    ("blank", " \n\t\n", None, "empty"),
    ("definition in the text's string", "x = '''\n```python\n'''\n" + ADD, "x = '''\n```python\n'''\n" + ADD, "unfenced"),
    # tags
    ("tag python", fence(ADD), ADD, "fence-entry-point:0"),
    ("tag py", fence(ADD, "py"), ADD, "fence-entry-point:0"),
    ("tag python3", fence(ADD, "python3"), ADD, "fence-entry-point:0"),
    ("no tag", fence(ADD, ""), ADD, "fence-entry-point:0"),
    ("tag in capitals and more words", fence(ADD, "Python title=a.py"), ADD, "fence-entry-point:0"),
    ("tag after a space", fence(ADD, " python"), ADD, "fence-entry-point:0"),
    ("another language", fence("ls\n", "bash"), "ls\n", "fence-last:0"),
    ("another language beside", fence(ADD) + fence("add(1, 2)\n", "text"), ADD, "fence-entry-point:0"),
    # prose around
    ("prose around", "Sure!\n\n" + fence(ADD) + "\nIt adds.\n", ADD, "fence-entry-point:0"),
    ("CRLF everywhere", ("Sure!\n\n" + fence(ADD)).replace("\n", "\r\n"), ADD, "fence-entry-point:0"),
    # which block
    ("use after", fence(ADD) + "Use:\n" + fence(USE), ADD, "fence-entry-point:0"),
    ("use before", fence(USE) + fence(ADD), ADD, "fence-entry-point:1"),
    ("draft, then better", fence("def add(a, b): return 0\n") + fence(ADD), ADD, "fence-entry-point:1"),
    ("better one broken", fence(ADD) + fence(BAD), ADD, "fence-entry-point:0"),
    ("broken, then use", fence(BAD) + fence(USE), BAD, "fence-entry-point:0"),
    ("no entry point", fence("def plus(a, b): return a + b\n") + fence("x = 1\n"), "x = 1\n", "fence-last:1"),
    ("no entry point, last broken", fence("x = 1\n") + fence("x = =\n"), "x = 1\n", "fence-last:0"),
    ("all broken", fence("x = (\n") + fence("y = )\n"), "y = )\n", "fence-last:1"),
    ("broken alone", fence(BAD), BAD, "fence-entry-point:0"),
    ("entry point as a lambda", fence("add = lambda a, b: a + b\n"), "add = lambda a, b: a + b\n", "fence-entry-point:0"),
    (
        "entry point under if",
        fence("if True:\n    def add(a, b): return 1\n"),
        "if True:\n    def add(a, b): return 1\n",
        "fence-entry-point:0",
    ),
    (
        "entry point as a method",
        fence("class S:\n    def add(self, a): pass\n"),
        "class S:\n    def add(self, a): pass\n",
        "fence-last:0",
    ),
    ("blank block beside", fence("\n") + fence(ADD), ADD, "fence-entry-point:0"),
    ("blank block alone", fence(" \n"), None, "none"),
    ("lone surrogate", fence("s = '\ud835'\n"), "s = '\ud835'\n", "fence-last:0"),
    ("null byte", fence("s = '\0'\n"), "s = '\0'\n", "fence-last:0"),
    ("nested too deep", fence("(" * 5000 + "\n"), "(" * 5000 + "\n", "fence-last:0"),
    # CommonMark
    ("tildes", fence(ADD, mark="~~~"), ADD, "fence-entry-point:0"),
    ("four tildes", fence(ADD, mark="~~~~"), ADD, "fence-entry-point:0"),
    (
        "four backticks around three",
        fence('x = """\n```\n"""\n' + ADD, mark="````"),
        'x = """\n```\n"""\n' + ADD,
        "fence-entry-point:0",
    ),
    ("closed by more", "```python\n" + ADD + "`````\nprose\n", ADD, "fence-entry-point:0"),
    ("not closed by fewer", "````python\n" + ADD + "```\n````\n", ADD + "```\n", "fence-entry-point:0"),
    ("not closed by the other", "```python\n" + ADD + "~~~\n```\n", ADD + "~~~\n", "fence-entry-point:0"),
    ("not closed by a tag", "```python\n" + ADD + "```python\n", ADD + "```python\n", "fence-entry-point:0"),
    ("closing fence with spaces", "```python\n" + ADD + "  ```  \nprose\n", ADD, "fence-entry-point:0"),
    ("never closed", "Here:\n```python\n" + ADD, ADD, "fence-entry-point:0"),
    ("truncated", "Here:\n```python\ndef add(a, b):\n    return (a", "def add(a, b):\n    return (a\n", "fence-entry-point:0"),
    ("indented by three", "   ```python\n   def add(a, b):\n       return a + b\n   ```\n", ADD, "fence-entry-point:0"),
    (
        "content less indented than the fence",
        "  ```\ndef add(a):\n    return a\n  ```\n",
        "def add(a):\n  return a\n",
        "fence-entry-point:0",
    ),
    ("in a list", "1. So:\n\n     ```py\n     def add(a, b):\n         return a + b\n     ```\n", ADD, "fence-entry-point:0"),
    ("all content indented", "```\n    def add(a, b):\n        return a + b\n```\n", ADD, "fence-entry-point:0"),
    ("inline code is no fence", "``` x ``` is code\n" + fence(ADD), ADD, "fence-entry-point:0"),
    ("two backticks are no fence", "``\n" + ADD + "``\n", None, "none"),
    ("form feed and separator inside", fence("x = '\x0c\u2028'\n" + ADD), "x = '\x0c\u2028'\n" + ADD, "fence-entry-point:0"),
    # thinking
    ("thinking, then code", "<think>def add(): pass</think>\n" + ADD, "\n" + ADD, "unfenced"),
    ("thinking with a draft", "<think>\n" + fence(BAD) + "</think>\n" + fence(ADD), ADD, "fence-entry-point:0"),
    ("thinking alone", "<think>def add(a, b): return a + b</think>", None, "empty"),
    ("thinking twice", "<think>a</think>\n<think>b</think>\n" + fence(ADD), ADD, "fence-entry-point:0"),
    ("thinking spelled out", "<THINKING>a</THINKING>" + fence(ADD), ADD, "fence-entry-point:0"),
    ("thinking does not end", "<think>\nLet me see.\n" + fence(ADD), None, "unclosed-think"),
    ("thinking later does not end", fence(ADD) + "<think>But wait", None, "unclosed-think"),
    ("thinking without a beginning", "Let me see.\n" + fence(BAD) + "</think>\n\n" + fence(ADD), ADD, "fence-entry-point:0"),
    ("tag quoted in prose", "I use no `<think>` here.\n" + fence(ADD), ADD, "fence-entry-point:0"),
    ("tags in code", fence("T = '<think>', '</think>'\n" + ADD), "T = '<think>', '</think>'\n" + ADD, "fence-entry-point:0"),
    ("tag in an unfenced program", "T = '''\n<think>\n'''\n" + ADD, "T = '''\n<think>\n'''\n" + ADD, "unfenced"),
]


@pytest.mark.parametrize(("text", "candidate", "rule"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_table(text: str, candidate: str | None, rule: str) -> None:
    assert extract(text, task()) == Extraction(candidate, rule)


@pytest.mark.parametrize("text", ["", "  3\n", "```python\n3\n```", "<think>", "\ud835\r\n"])
def test_output_is_taken_verbatim(text: str) -> None:
    assert extract(text, task(TaskKind.OUTPUT)) == Extraction(text, "verbatim")


PIECES = st.sampled_from(
    [
        "```",
        "~~~",
        "````",
        "python",
        "py",
        "bash",
        "\n",
        " ",
        "    ",
        "def add(a, b):",
        "return a",
        "x = 1",
        "<think>",
        "</think>",
        "(",
        "`",
        "'",
    ]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_candidate_is_never_blank_and_comes_from_the_answer(text: str) -> None:
    found = extract(text, task())
    assert (found.candidate is None) == (found.rule in {"none", "empty", "unclosed-think"})
    if found.candidate is not None:
        assert found.candidate.strip()
        answer = text.replace("\r\n", "\n").replace("\r", "\n")
        assert all(line.strip() in answer for line in found.candidate.split("\n"))


@given(st.text(alphabet="ab \n#'", max_size=40).filter(str.strip))
def test_a_fenced_block_survives_whatever_prose_stands_around(prose: str) -> None:
    found = extract(f"{prose}\n\n{fence(ADD)}\n{prose}\n", task())
    assert found.candidate == ADD


def test_many_tags_and_fences_are_read_in_linear_time() -> None:
    for unit in ("<think>\n</think>\n", "`<think>`\n", "```\nx\n```\n", "~~~\n", "</think>\n"):
        extract(unit * 20_000, task())


ANSWERS: list[tuple[str, str | None, str]] = [
    ("Answer: 42", "42", "answer-line"),
    ("Because.\n\nAnswer: 42\n", "42", "answer-line"),
    ("**Answer:** 42", "42", "answer-line"),
    ("**Answer: 42**", "42", "answer-line"),
    ("**Answer**: 42", "42", "answer-line"),
    ("## Final answer: 42", "42", "answer-line"),
    ("> ANSWER :  a b ", "a b", "answer-line"),
    ("Answer: 1\nNo, wait.\nAnswer: 2\nI am sure.", "2", "answer-line"),
    ("**Answer:**\n\n  42  \nBye.", "42", "answer-line"),
    ("Answer: 41\nAnswer:\n", "41", "answer-line"),
    ("Answer: \\boxed{42}", "\\boxed{42}", "answer-line"),
    ("The answer: 42", "The answer: 42", "whole"),
    ("Answers: 42", "Answers: 42", "whole"),
    ("So \\boxed{1} or\n\\boxed{\\frac{1}{2}}, I think.\nYes.", "\\frac{1}{2}", "boxed"),
    ("\\boxed{\\text{a}\n b} and \\boxed{ }\nand \\boxed{open", "\\text{a} b", "boxed"),
    ("\\boxed{a \\} b}", "a \\} b", "boxed"),
    ("  42 \n", "42", "whole"),
    ("It is\n42\n\n", "42", "last-line"),
    ("```\n42\n```", "42", "last-line"),
    ("<think>Answer: 1</think>\n2", "2", "whole"),
    ("<think>\nAnswer: 1\n</think>Answer: 2", "2", "answer-line"),
    ("<think>Answer: 1", None, "unclosed-think"),
    ("\r\nAnswer: 7\r\n", "7", "answer-line"),
    ("\ufeffAnswer: 7", "7", "answer-line"),
    ("", None, "empty"),
    (" \n```\n```\n", None, "empty"),
    ("Answer:", "Answer:", "whole"),
    ("Answer: **Paris**", "Paris", "answer-line"),
    ("Answer: *Paris*", "Paris", "answer-line"),
    ("Answer: ***0.5***", "0.5", "answer-line"),
    ("**Answer:** **0.5**", "0.5", "answer-line"),
    ("**Answer:** *0.5*", "0.5", "answer-line"),
    ("**Answer**: **0.5**", "0.5", "answer-line"),
    ("**Answer:****0.5**", "0.5", "answer-line"),
    ("**Answer: **0.5**", "0.5", "answer-line"),
    ("**Answer: *0.5***", "0.5", "answer-line"),
    ("*Answer: **0.5***", "0.5", "answer-line"),
    ("*Answer:* 0.5", "0.5", "answer-line"),
    ("*Answer: 0.5*", "0.5", "answer-line"),
    ("__Answer:__ 0.5", "0.5", "answer-line"),
    ("_Answer: 0.5_", "0.5", "answer-line"),
    ("***Final answer:*** 0.5", "0.5", "answer-line"),
    ("**Answer: Paris**.", "Paris.", "answer-line"),
    ("**Answer:**\n\n**Paris**", "Paris", "answer-line"),
    ("Answer: __init__", "__init__", "answer-line"),
    ("Answer: 2**3", "2**3", "answer-line"),
    ("**Answer: 2**3**", "2**3", "answer-line"),
    ("Answer: **a** or **b**", "**a** or **b**", "answer-line"),
    ("Answer: **Paris", "**Paris", "answer-line"),
    ("Answer: Paris**", "Paris**", "answer-line"),
    ("Answer: **Paris*", "**Paris*", "answer-line"),
    ("Answer: ****", "****", "answer-line"),
]


@pytest.mark.parametrize(("text", "candidate", "rule"), ANSWERS)
def test_answers(text: str, candidate: str | None, rule: str) -> None:
    assert extract(text, task(TaskKind.ANSWER)) == Extraction(candidate, rule)


@given(st.text(alphabet="Answer: *\\boxed{}\n`<think>/42", max_size=60))
def test_any_answer_gives_one_line_or_none(text: str) -> None:
    found = extract(text, task(TaskKind.ANSWER))
    if found.candidate is None:
        assert found.rule in {"empty", "unclosed-think"}
    else:
        assert found.candidate == found.candidate.strip() != ""
        assert "\n" not in found.candidate


@pytest.mark.parametrize("part", ["\\boxed{", "{", "}", "Answer:\n", "**Answer:", "```\n", "\\boxed{a}"])
def test_long_answers_are_read_in_linear_time(part: str) -> None:
    started = time.process_time()
    extract(part * 50_000, task(TaskKind.ANSWER))
    assert time.process_time() - started < 5


HARD: list[tuple[int, str, str | None, str]] = [
    # Thinking in the text, ended and not: split off before anything is extracted.
    (12, f"<think>def add(a, b):\n    return a * b\n</think>\n{fence(ADD)}", ADD, "fence-entry-point:0"),
    (12, f"<think>\n{fence('def add(a, b): return a * b' + chr(10))}", None, "unclosed-think"),
    # No fence, tags, indentation, several fences, tildes, prose after.
    (14, ADD, ADD, "unfenced"),
    (14, f"Here:\n{fence(ADD, 'py')}It adds.", ADD, "fence-entry-point:0"),
    (14, f"Here:\n\n   ```\n   {ADD.replace(chr(10), chr(10) + '   ').rstrip()}\n   ```\n", ADD, "fence-entry-point:0"),
    (14, f"{fence(ADD)}Run it:\n{fence(USE)}", ADD, "fence-entry-point:0"),
    (14, f"Here:\n{fence(ADD, '', '~~~~')}It adds.", ADD, "fence-entry-point:0"),
    # A call after the function is part of the program; what cannot be parsed is kept as it is and fails for what it is.
    (15, f"{ADD}\nprint(add(5, 1))\n", f"{ADD}\nprint(add(5, 1))\n", "unfenced"),
    (15, fence(f"{ADD}\nprint(add(5, 1))\n"), f"{ADD}\nprint(add(5, 1))\n", "fence-entry-point:0"),
    (15, fence(BAD), BAD, "fence-entry-point:0"),
    (15, fence("nothing that parses, (\n"), "nothing that parses, (\n", "fence-last:0"),
    # Half of a pair of surrogates inside a program.
    (1, fence(f"{ADD}S = '\ud835'\n"), f"{ADD}S = '\ud835'\n", "fence-entry-point:0"),
]


@pytest.mark.parametrize(("number", "text", "candidate", "rule"), HARD, ids=[f"hard input {row[0]}" for row in HARD])
def test_hard_inputs(number: int, text: str, candidate: str | None, rule: str) -> None:
    assert extract(text, task()) == Extraction(candidate, rule)


@given(st.lists(PIECES | st.text(max_size=5), max_size=20).map("".join))
def test_thinking_that_does_not_end_is_seen_by_the_class_of_a_response_too(text: str) -> None:
    found = extract(text, task())
    if answer_beyond_thinking(text) is None:
        assert found == Extraction(None, "unclosed-think")
