"""Agreement: of a grader with itself, of two graders, of a grader with the truth; exact, and undefined with a reason."""

from __future__ import annotations

from evalnoise.stats.lazy import lazily

__getattr__ = lazily(__name__)
