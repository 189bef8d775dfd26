"""The provider that replays a recording: strict, with no way to a network."""

from __future__ import annotations

from evalnoise.providers.base import CallContext, Prompt, Request, RequestMaker, sendable
from evalnoise.recordings.recording import Recording
from evalnoise.recordings.row import Recorded
from schemas.records import Response

__all__ = ["Recording", "RecordingProvider", "task_request_maker", "unknown_request"]


def unknown_request(model: str, task_id: str) -> Request:
    """What stands in the place of a request where nobody knows what was asked."""
    return Request("recording", model, {"task": sendable(task_id)})


def task_request_maker(model: str) -> RequestMaker:
    """Requests where nobody knows what was asked: the task is all there is."""

    def make(_prompt: Prompt, context: CallContext) -> Request:
        return unknown_request(model, context.task.id)

    return make


class RecordingProvider:
    """Replays a recording. It holds no client, so a miss cannot become a live call."""

    journalled = False
    address = ""
    max_retries = 0

    def __init__(self, recording: Recording, make: RequestMaker, *, name: str) -> None:
        self.name = name
        """Kind of provider whose requests are replayed."""
        self.recording = recording
        """What is replayed."""
        self._make = make
        self._answered: dict[tuple[str, int, int], int] = {}

    def request(self, prompt: Prompt, context: CallContext) -> Request:
        """The request that the recording must hold."""
        return self._make(prompt, context)

    def occurrence(self, context: CallContext) -> int:
        """The recorded occurrence that answered the cell's attempt. Raises KeyError before it was asked for."""
        return self._answered[context.task.id, context.replicate, context.attempt]

    async def send(self, request: Request, context: CallContext) -> Response:
        """The recorded answer. Raises what `Recording.find` raises."""
        found = self._find(request, context)
        self._answered[context.task.id, context.replicate, context.attempt] = found.occurrence
        return found.response

    async def close(self) -> None:
        """Nothing to let go of."""

    def _find(self, request: Request, context: CallContext) -> Recorded:
        where = (
            f"stack {context.stack}, condition {context.condition}, task {context.task.id}, replicate {context.replicate}, "
            f"attempt {context.attempt}"
        )
        return self.recording.find(request, (context.task.id, context.replicate, context.attempt), where=where)
