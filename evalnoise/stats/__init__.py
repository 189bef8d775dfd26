"""Statistics: arrays in, frozen dataclasses out. Each module is loaded when it is first named."""

from __future__ import annotations

from evalnoise.stats.lazy import lazily

__getattr__ = lazily(__name__)
