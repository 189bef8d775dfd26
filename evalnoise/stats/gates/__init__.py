"""Decisions about a change: two arms on the same tasks."""

from __future__ import annotations

from evalnoise.stats.lazy import lazily

__getattr__ = lazily(__name__)
