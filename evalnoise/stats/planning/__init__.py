"""How much to run: budgets, power, rankings and designs."""

from __future__ import annotations

from evalnoise.stats.lazy import lazily

__getattr__ = lazily(__name__)
