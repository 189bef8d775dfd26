"""A model behind a real server whose answers to some tasks are odd, and a study that asks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalnoise.benchmarks.load import load_benchmark
from schemas.records import Task
from schemas.study import StarterBenchmark, Study
from tests.support import stages
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply

WIRE = OpenAIDialect()
TASKS = {task.id: task for task in load_benchmark(StarterBenchmark(name="starter")).tasks}
NAMES = list(TASKS)
NEVER = {"truncated": 1.0, "refusal": 1.0, "filtered": 1.0, "empty": 1.0, "malformed": 1.0}
LIVE = [{"name": "live", "kind": "live"}]


def study(url: str, *, stack: dict[str, Any] | None = None, **changes: Any) -> Study:
    provider = {"name": "openai", "base_url": f"{url}/v1", "max_retries": 0, "timeout": 5.0, "temperature": 0.7}
    plain = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS, "max_tokens": 300}
    body = {"stacks": [plain | (stack or {})], "conditions": LIVE, "replicates": 2, "limits": {"max_share": NEVER}}
    return Study.model_validate(stages.body(**(body | changes)))


def right(task: Task) -> str:
    return f"```python\n{task.reference}\n```"


class Model:
    """Answers by a function of the task and of how many requests for it came before; keeps what was received."""

    def __init__(self, odd: Callable[[Task, int], Reply | None]) -> None:
        self.odd = odd
        self.bodies: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, received: Received) -> Reply:
        prompt = received.body["messages"][0]["content"]
        task = next(task for task in TASKS.values() if task.prompt in prompt)
        before = sum(name == task.id for name, _ in self.bodies)
        self.bodies.append((task.id, received.body))
        return self.odd(task, before) or WIRE.answer(right(task), answer_id=f"id-{len(self.bodies)}")


def first_is(reply: Reply) -> Model:
    return Model(lambda task, _: reply if task.id == NAMES[0] else None)
