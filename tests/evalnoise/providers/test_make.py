"""Making providers: each kind by its spec, and no SDK before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evalnoise.providers.make import make_provider, request_maker
from evalnoise.providers.recording import Recording
from schemas.provider import AnthropicProvider, OpenAIProvider, OracleJudge, OracleProvider, RecordingProvider

SPECS = [
    OracleProvider(name="oracle"),
    OracleJudge(name="oracle"),
    OpenAIProvider(name="openai"),
    AnthropicProvider(name="anthropic"),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: type(s).__name__)
def test_each_kind_is_live_alone_and_a_replay_with_a_recording(spec, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    live = make_provider(spec, model="m", max_tokens=9, retry="resample")
    replay = make_provider(spec, model="m", max_tokens=9, retry="resample", recording=Recording.from_rows([]))
    assert (live.name, live.journalled) == (spec.name, True)
    assert (replay.name, replay.journalled) == (spec.name, False)


def test_a_recording_spec_needs_its_recording():
    spec = RecordingProvider(name="recording", path="x")
    with pytest.raises(ValueError, match="needs its Recording"):
        make_provider(spec, model="m", max_tokens=9, retry="none")
    assert request_maker(spec, model="m", max_tokens=9) is not None


def test_sdks_are_imported_by_their_users_alone():
    code = "import sys, evalnoise.providers.make; print(sorted({'openai', 'anthropic', 'httpx', 'httpx2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
