"""Makes the provider that a study names, or the replay of what it answered."""

from __future__ import annotations

from evalnoise.providers import registry
from evalnoise.providers.base import Provider, RequestMaker
from evalnoise.providers.keys import read_key
from evalnoise.providers.plugin import PluginModel
from evalnoise.providers.recording import Recording, RecordingProvider, task_request_maker
from schemas.provider import JudgeSpec, PluginProvider, ProviderSpec
from schemas.provider import RecordingProvider as RecordingSpec

_CONCURRENCY = 8


def make_provider(
    spec: ProviderSpec | JudgeSpec,
    *,
    model: str,
    max_tokens: int,
    retry: str,
    recording: Recording | None = None,
    concurrency: int = _CONCURRENCY,
) -> Provider:
    """The provider for a stack under a condition, or for a judge condition.

    Args:
        spec: Provider options, merged for the condition.
        model: Model to ask for.
        max_tokens: Output tokens at most.
        retry: The stack's retry rule.
        recording: Responses to replay. With it no client is made, whatever the spec: the requests are the spec's, the answers
            are recorded.
        concurrency: Calls in flight at most, and so connections.

    Raises:
        StudyError: Options that cannot be sent, a retry rule that the recording cannot answer, or no such provider.
        ProviderError: No key in the environment.
    """
    make = request_maker(spec, model=model, max_tokens=max_tokens)
    if isinstance(spec, RecordingSpec) and recording is None:
        raise ValueError("provider recording needs its Recording")
    if recording is not None:
        recording.check_retry(retry)
        return RecordingProvider(recording, make, name=spec.name)
    if isinstance(spec, PluginProvider):
        key = read_key(spec.name, spec.api_key_env) if spec.api_key_env else None
        plugin = registry.made(spec, key=key, concurrency=concurrency)
        return PluginModel(spec, make, plugin, key=key, whence=registry.whence(spec.name))
    made: Provider = registry.load(spec.name).provider(spec, make, concurrency=concurrency)
    return made


def request_maker(spec: ProviderSpec | JudgeSpec, *, model: str, max_tokens: int) -> RequestMaker:
    """How the spec's requests are made, without making a client. Raises StudyError for options that cannot be sent."""
    if isinstance(spec, RecordingSpec):
        return task_request_maker(model) if spec.of is None else request_maker(spec.of, model=model, max_tokens=max_tokens)
    if isinstance(spec, PluginProvider):
        return registry.plugin_requests(spec, model=model, max_tokens=max_tokens)
    make: RequestMaker = registry.load(spec.name).request_maker(spec, model=model, max_tokens=max_tokens)
    return make
