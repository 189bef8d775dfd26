"""Recording: the answers of one replicate of a live condition, sealed, so that a replay condition can replay them."""

from __future__ import annotations

from typing import Any

from evalnoise.providers.recording import Recording
from evalnoise.store.recordings import RecordingFolder
from schemas.tables import CALLS, GENERATIONS, RECORDED
from tasks.workshop import Workshop


def record_source(shop: Workshop, stack: str, condition: str) -> None:
    """Seal the recording that the condition replays, and hand it to the workshop. Sealing it again changes nothing."""
    source = shop.plan.study.condition(condition).source
    if source is None:
        raise ValueError(f"condition {condition} replays no condition of this study")
    keys: dict[str, str | int] = {"stack": stack, "condition": source.condition, "replicate": source.replicate}
    name = f"{shop.plan.study.study}~{shop.plan.digest[:12]}~{stack}~{source.condition}~r{source.replicate:04d}"
    folder = RecordingFolder(shop.store.root, name)
    calls = {(row["task_id"], row["attempt"]): row for row in shop.study_store.read(CALLS, **keys).to_pylist()}
    names = [column.name for column in RECORDED.columns]
    rows: list[dict[str, Any]] = []
    for row in shop.study_store.read(GENERATIONS, **keys).to_pylist():
        whole = calls.get((row["task_id"], row["attempt"]), {}) | row
        # A condition that itself replays a file makes no calls: what it was asked is all in its generations.
        whole = {"request": "", "finish_reason": "", "served_model": "", **whole}
        rows.append({column: whole[column] for column in names})
    digest = folder.write(rows, {"source": keys, "protocol": shop.plan.digest})
    shop.set_recording(stack, condition, Recording.from_rows(folder.read(), source=f"recording {name} ({digest[:12]})"))
