"""What the tests of the SDK providers share: every dialect, a planted key, short waits."""

from __future__ import annotations

import pytest
from wire.client import KEY
from wire.dialects import DIALECTS


@pytest.fixture(params=DIALECTS, ids=lambda d: d.api)
def dialect(request):
    return request.param


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
