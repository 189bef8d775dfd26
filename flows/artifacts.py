"""Artifacts: the result of a study as Prefect shows it, a markdown page and a table."""

from __future__ import annotations

import re
from pathlib import Path

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from evalnoise.report.markdown import as_markdown
from evalnoise.report.summary import Summary, read_summary


def publish(store: Path, study: str, digest: str) -> Summary:
    """Publish a finished protocol's summary under keys that keep its history by study, and return it."""
    summary = read_summary(store, study, digest)
    key = re.sub(r"[^a-z0-9-]", "-", study)
    create_markdown_artifact(
        as_markdown(summary), key=f"evalnoise-{key}", description=f"Noise study {study}, protocol {digest[:12]}"
    )
    rows = [{name: "" if value is None else value for name, value in row.items()} for row in summary.noise_floor]
    create_table_artifact(rows, key=f"evalnoise-{key}-noise-floor", description="The view noise_floor for this protocol")
    return summary
