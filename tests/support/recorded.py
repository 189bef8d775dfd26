"""Rows of recordings made by hand, and studies that record or replay."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evalnoise.providers.base import Request
from evalnoise.recordings.row import Recorded
from schemas.records import Response, ResponseClass
from schemas.study import Study
from tests.support import stages

OPENAI = {"name": "openai", "temperature": 0.7, "max_retries": 0}


def request(question: str, **body: Any) -> Request:
    """A request of provider `openai` that asks a question."""
    return Request("openai", "m", {"messages": [{"role": "user", "content": question}], "temperature": 0.7, **body})


def recorded(task: str, replicate: int, attempt: int, text: str, asked: Request | None = None, **more: Any) -> Recorded:
    """A response; without a request nobody knows what was asked."""
    position = more.pop("position", 0)
    response = Response(text=text, response_class=more.pop("response_class", ResponseClass.COMPLETE), cost_usd=0.0, **more)
    key, body = ("", "") if asked is None else (asked.key(), asked.canonical().decode())
    return Recorded(task, replicate, attempt, response, key, body, position)


def lines(path: Path, rows: Iterable[Any], *, tail: str = "") -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    return path


def study(name: str, provider: dict[str, Any], retry: str, conditions: list[dict[str, Any]], **changes: Any) -> Study:
    """A study of one stack `a`, three replicates."""
    stack = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS, "max_tokens": 300, "retry": retry}
    return Study.model_validate(
        stages.body(**({"study": name, "stacks": [stack], "conditions": conditions, "replicates": 3} | changes))
    )
