"""Makes the provider that a study names, or the replay of what it answered."""

from __future__ import annotations

from typing import assert_never

from evalnoise.providers import anthropic, openai, oracle
from evalnoise.providers.base import Provider, RequestMaker
from evalnoise.providers.recording import Recording, RecordingProvider, task_request_maker
from schemas.errors import StudyError
from schemas.provider import AnthropicProvider, JudgeSpec, OpenAIProvider, OracleJudge, OracleProvider, ProviderSpec
from schemas.provider import RecordingProvider as RecordingSpec


def make_provider(
    spec: ProviderSpec | JudgeSpec, *, model: str, max_tokens: int, retry: str, recording: Recording | None = None
) -> Provider:
    """The provider for a stack under a condition, or for a judge condition.

    Args:
        spec: Provider options, merged for the condition.
        model: Model to ask for.
        max_tokens: Output tokens at most.
        retry: The stack's retry rule.
        recording: Responses to replay. With it no client is made, whatever the spec: the requests are the spec's, the answers
            are recorded.

    Raises:
        StudyError: Options that cannot be sent, or a retry rule that the recording cannot answer.
        ProviderError: No key in the environment.
    """
    make = request_maker(spec, model=model, max_tokens=max_tokens)
    if isinstance(spec, RecordingSpec) and retry != "none":
        raise StudyError(
            "retry",
            expected="none, because an imported recording has no second attempts",
            found=retry,
            remedy="Set the stack's `retry` to none.",
        )
    if recording is not None and recording.keyed:
        return RecordingProvider.of_condition(recording, make, name=spec.name)
    if isinstance(spec, RecordingSpec):
        if recording is None:
            raise ValueError("provider recording needs its Recording")
        return RecordingProvider.imported(recording, spec, make)
    if isinstance(spec, OracleProvider):
        return oracle.OracleModel(spec, make)
    if isinstance(spec, OracleJudge):
        return oracle.OracleJudgeModel(spec, make)
    if isinstance(spec, OpenAIProvider):
        return openai.OpenAIChat(spec, make)
    if isinstance(spec, AnthropicProvider):
        return anthropic.AnthropicMessages(spec, make)
    assert_never(spec)


def request_maker(spec: ProviderSpec | JudgeSpec, *, model: str, max_tokens: int) -> RequestMaker:
    """How the spec's requests are made, without making a client. Raises StudyError for options that cannot be sent."""
    if isinstance(spec, RecordingSpec):
        return task_request_maker(model)
    if isinstance(spec, OracleProvider | OracleJudge):
        return oracle.request_maker(spec, model, max_tokens)
    if isinstance(spec, OpenAIProvider):
        return openai.request_maker(spec, model, max_tokens)
    if isinstance(spec, AnthropicProvider):
        return anthropic.request_maker(spec, model, max_tokens)
    assert_never(spec)
