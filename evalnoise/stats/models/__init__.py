"""Models pair by pair: total, data and prediction noise."""

from __future__ import annotations

from evalnoise.stats.lazy import lazily

__getattr__ = lazily(__name__)
