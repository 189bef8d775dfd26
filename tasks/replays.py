"""The recordings that a study replays from outside it: opened, and asked for every first request, before anything is called."""

from __future__ import annotations

from evalnoise.prompts import render
from evalnoise.providers.base import CallContext
from evalnoise.providers.make import request_maker
from evalnoise.recordings.opening import open_recording
from evalnoise.recordings.recording import Ask, Recording
from schemas.protocol import PinnedFile
from schemas.provider import RecordingProvider
from schemas.records import Benchmark
from schemas.study import Condition, Stack, Study


def replayed(study: Study, stack: Stack, condition: Condition, benchmark: Benchmark) -> Recording | None:
    """The recording that a stack replays under a condition; None where it replays none, or one of this study's own.

    Raises StudyError for a retry rule that it cannot answer, and the errors of `open_recording` and `Recording.rehearse`.
    """
    spec = study.provider(stack, condition)
    if condition.source is not None or condition.kind == "reverify" or not isinstance(spec, RecordingProvider):
        return None
    recording = open_recording(spec, wanted=frozenset(task.id for task in benchmark.tasks))
    recording.check_retry(stack.retry, where=f"stacks.{study.stacks.index(stack)}.retry")
    make = request_maker(spec, model=stack.model, max_tokens=stack.max_tokens)
    asks = []
    for task in benchmark.tasks:
        context = CallContext(task, stack.name, condition.name, 0, 0)
        asks.append(Ask(task.id, make(render(stack.prompt, task=task), context)))
    recording.rehearse(asks, study.replicates, where=f"stack {stack.name}, condition {condition.name}")
    return recording


def pinned_recordings(study: Study, benchmark: Benchmark) -> dict[str, PinnedFile]:
    """By ``stack/condition``, what the protocol pins of each. Raises what `replayed` raises."""
    pinned: dict[str, PinnedFile] = {}
    for stack in study.stacks:
        for condition in study.conditions:
            recording = replayed(study, stack, condition, benchmark)
            if recording is not None:
                pinned[f"{stack.name}/{condition.name}"] = PinnedFile(sha256=recording.sha256, size=recording.size)
    return pinned
