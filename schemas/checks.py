"""Checks: one SQL file each, which returns the findings about one protocol as rows of the table `checks`."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def check_queries() -> dict[str, str]:
    """Queries by the check's name, in alphabetical order; each takes $study and $protocol."""
    folder = resources.files("schemas") / "sql" / "checks"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in files}
