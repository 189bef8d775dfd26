"""Prompt templates: Jinja in its sandbox, over values that are data and are never templates themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from schemas.errors import StudyError
from schemas.records import Task

_ENVIRONMENT = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
_NAMES = "`task.id`, `task.kind`, `task.prompt`, `task.entry_point`, `task.code`"


@dataclass(frozen=True, slots=True)
class TaskView:
    """What a template sees of a task. The reference is not in it: no prompt can give the answer away."""

    id: str
    kind: str
    prompt: str
    entry_point: str
    code: str


def render(template: str, *, key: str = "prompt", **values: Any) -> str:
    """The template's text with the values put in; a task shows as its `TaskView`.

    Raises StudyError, which names the key of the study that holds the template.
    """
    seen = {name: _view(value) if isinstance(value, Task) else value for name, value in values.items()}
    try:
        return _compiled(template).render(seen)
    except TemplateError as error:
        line = f", line {error.lineno}" if isinstance(error, TemplateSyntaxError) else ""
        raise _bad(key, line, error.message or type(error).__name__) from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        # What an expression in the template did: adding text to a number, including a file, dividing by zero.
        raise _bad(key, "", f"{type(error).__name__}: {error}") from None


@lru_cache(maxsize=64)
def _compiled(template: str) -> Template:
    return _ENVIRONMENT.from_string(template)


def _view(task: Task) -> TaskView:
    return TaskView(task.id, task.kind.value, task.prompt, task.entry_point, task.code)


def _bad(key: str, line: str, found: str) -> StudyError:
    more = ", `candidate`, `reason` and `detail`" if key == "retry_prompt" else " and, for a judge, `candidate`"
    return StudyError(
        f"prompt template{line}" if key == "prompt" else f"{key}{line}",
        expected=f"a Jinja template over {_NAMES}{more}",
        found=found,
        remedy=f"Mend the `{key}` in the study file.",
    )
