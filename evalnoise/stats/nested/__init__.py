"""Nested variance components: tasks, generations of a task, grades of a generation."""

from __future__ import annotations

from evalnoise.stats.lazy import lazily

__getattr__ = lazily(__name__)
