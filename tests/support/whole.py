"""A study's whole flow in this process: its DAG, its order and its lock, without a Prefect server: task runs are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evalnoise.report.summary import read_summary
from flows import study as flow
from schemas.study import Study
from tasks.rerun import Rerun


@dataclass
class Future:
    """What a task run came to."""

    error: BaseException | None

    def result(self, *, raise_on_failure: bool) -> None:
        """Raise what the task run raised."""
        assert raise_on_failure
        if self.error is not None:
            raise self.error


@dataclass
class Whole:
    """Runs studies and keeps which task runs there were."""

    ran: list[str] = field(default_factory=list)
    """Name of each task run of the latest study, with the shard's name where it is one's."""
    before: Callable[[str], None] = lambda _name: None
    """Called before each task run."""

    def start(self, node: Any, *arguments: Any, after: Any = ()) -> Future:
        """Call a task run's function at once."""
        _ = after
        name = arguments[1] if node.name in {"measure", "reverify", "judge"} else node.name
        self.before(name)
        self.ran.append(name)
        try:
            node.fn(*arguments)
        except Exception as error:  # noqa: BLE001 - as a future keeps it
            return Future(error)
        return Future(None)

    def run(self, study: Study, root: Path, *, limit: int | None = 6, replicates: int | None = None, **rerun: Any) -> Any:
        """The result of a run."""
        self.ran.clear()
        return flow.execute(study, store=str(root), limit=limit, replicates=replicates, rerun=Rerun(**rerun))


@contextmanager
def serverless() -> Iterator[Whole]:
    """Whole runs without a server."""
    made = Whole()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "_start", made.start)
        patch.setattr(flow, "publish", read_summary)
        yield made


@pytest.fixture
def whole() -> Iterator[Whole]:
    """Whole runs without a server."""
    with serverless() as made:
        yield made
