"""Answers: what a stack's policy makes of one that is not complete, and what second attempts are asked with."""

from __future__ import annotations

from typing import Final

from evalnoise.prompts import render
from evalnoise.providers.base import Conversation, Prompt
from schemas.records import Check, Outcome, Reason, Response, ResponseClass, Task
from schemas.responses import Responses
from schemas.study import Stack, Study

ATTEMPTS: Final = {"none": 1, "resample": 2, "with-feedback": 2}
"""By the retry rule: generations of a cell at most."""

_REASONS: Final = {
    ResponseClass.TRUNCATED: Reason.TRUNCATED,
    ResponseClass.REFUSAL: Reason.REFUSAL,
    ResponseClass.FILTERED: Reason.FILTERED,
    ResponseClass.EMPTY: Reason.EMPTY,
    ResponseClass.MALFORMED: Reason.MALFORMED,
    ResponseClass.INFRASTRUCTURE: Reason.PROVIDER,
}


def settled(policy: Responses, response: Response) -> Check | None:
    """What the policy says of an answer without a look at its text; None: the text is extracted and verified."""
    if response.response_class is ResponseClass.COMPLETE:
        return None
    taken: str = getattr(policy, response.response_class.value)
    return None if taken == "verify" else Check(Outcome(taken), reason_of(response), response.error)


def reason_of(response: Response) -> Reason:
    """Why there is nothing to verify in an answer: its class, or, if it is complete, that it holds no candidate."""
    return _REASONS.get(response.response_class, Reason.NO_CANDIDATE)


def next_prompt(stack: Stack, task: Task, first: str, response: Response, *, check: Check, candidate: str | None) -> Prompt:
    """The prompt of the attempt that follows a failed one. Raises StudyError for a template that cannot be rendered."""
    if stack.retry != "with-feedback":
        return first
    told = {"candidate": candidate or "", "reason": check.reason.value, "detail": check.detail}
    return Conversation(first, response.text, render(stack.retry_prompt, key="retry_prompt", task=task, **told))


def check_templates(study: Study, task: Task) -> None:
    """Render every template of the study with values as a run has them, before anything is spent. Raises StudyError."""
    for stack in study.stacks:
        render(stack.prompt, task=task)
        if stack.retry == "with-feedback":
            said = {"candidate": "", "reason": Reason.EXCEPTION.value, "detail": ""}
            render(stack.retry_prompt, key="retry_prompt", task=task, **said)
    for condition in study.judge.conditions if study.judge else ():
        render(condition.prompt, task=task, candidate="")
