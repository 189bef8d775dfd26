"""Prompt templates: values are data, the sandbox holds, and every mistake is the study's."""

from __future__ import annotations

import pytest

from evalnoise.prompts import render
from schemas.errors import StudyError
from schemas.records import Task, TaskKind
from schemas.study import DEFAULT_JUDGE_PROMPT, DEFAULT_PROMPT

TASK = Task("t/1", TaskKind.FUNCTION, "Add {{ a }} and <b>.", "SECRET SOLUTION", "add", code="import math")


def test_the_default_prompts():
    prompt = render(DEFAULT_PROMPT, task=TASK)
    assert "`add`" in prompt
    assert prompt.endswith("\n\nAdd {{ a }} and <b>.")
    judged = render(DEFAULT_JUDGE_PROMPT, task=TASK, candidate="x = '{{ task.id }}{% if %}'")
    assert judged.startswith("A Python program was written for the task below.")
    assert judged.endswith("\n\nProgram:\n```python\nx = '{{ task.id }}{% if %}'\n```")
    assert "SECRET" not in prompt + judged


def test_the_default_prompt_of_each_kind_asks_for_what_is_extracted():
    output = render(DEFAULT_PROMPT, task=Task("t/2", TaskKind.OUTPUT, "f(1)?", "SECRET", "f"))
    assert output == "Answer with the value alone, as a Python literal: no fence, no explanation.\n\nf(1)?"
    answer = render(DEFAULT_PROMPT, task=Task("t/3", TaskKind.ANSWER, "How many?", "SECRET", ""))
    assert "`Answer: `" in answer
    assert "Python" not in answer
    assert answer.endswith("\n\nHow many?")
    judged = render(DEFAULT_JUDGE_PROMPT, task=Task("t/3", TaskKind.ANSWER, "How many?", "SECRET", ""), candidate="42")
    assert judged.startswith("An answer was given to the task below.")
    assert judged.endswith("\n\nTask:\nHow many?\n\nAnswer:\n42")


def test_values_are_put_in_as_they_are():
    candidate = "a & b < c > 'd' \"e\"\r\n\ttab \u2028 \ud835 {{ candidate }} {# no #}\n"
    assert render("{{ candidate }}", candidate=candidate) == candidate


def test_the_template_keeps_its_own_last_line_break():
    assert render("{{ task.id }} {{ task.code }}\n", task=TASK) == "t/1 import math\n"


def test_rendering_is_repeatable():
    assert {render("{{ task.prompt }}|{{ candidate }}", task=TASK, candidate=c) for c in ("1", "2", "1")} == {
        "Add {{ a }} and <b>.|1",
        "Add {{ a }} and <b>.|2",
    }


@pytest.mark.parametrize(
    "template",
    [
        "{{ task.reference }}",
        "{{ task.inputs }}",
        "{{ nothing }}",
        "{{ task.nothing }}",
        "{{ candidate }}",
        "{{ task.prompt",
        "{% if %}",
        "{% nonsense %}",
        "{{ task.prompt | nofilter }}",
        "{% include '/etc/passwd' %}",
        "{% extends 'x' %}",
        "{% import 'x' as y %}",
        "{{ 1 / 0 }}",
        "{{ task.prompt + 1 }}",
        "{{ [] | first + 1 }}",
        "{{ range(1000000000) | list }}",
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ task.__class__.__init__.__globals__ }}",
        "{{ task | attr('__class__') }}",
        "{{ task['__class__'] }}",
        "{{ '{0.__class__}'.format(task) }}",
        "{{ '{t.__class__}'.format_map({'t': task}) }}",
        "{{ render.__globals__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ lipsum.__globals__['os'].popen('id').read() }}",
        "{% set task.prompt = 'x' %}",
        "{{ task.prompt.format.__func__ }}",
        "{{ (1).__add__(2) }}",
    ],
)
def test_mistakes_and_attacks_are_study_errors(template):
    with pytest.raises(StudyError) as caught:
        render(template, task=TASK)
    assert "SECRET" not in str(caught.value)
    assert "task.prompt" in caught.value.expected


def test_a_syntax_error_names_its_line():
    with pytest.raises(StudyError) as caught:
        render("fine\nfine\n{{ oops", task=TASK)
    assert caught.value.where == "prompt template, line 3"
