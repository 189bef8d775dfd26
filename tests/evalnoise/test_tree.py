"""Rules of the tree: short files, and no two test modules of one name."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("evalnoise", "flows", "perf", "schemas", "studies", "tasks", "tests", "verifiers")
MOST_LINES = 400


def test_files_are_short():
    files = list(chain.from_iterable((ROOT / folder).rglob(f"*.{suffix}") for folder in FOLDERS for suffix in ("py", "sql")))
    assert len(files) > 500
    lines = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in files}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_test_modules_have_names_of_their_own():
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
