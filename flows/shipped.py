"""The studies that ship with evalnoise: one set of files, in `studies/` of a checkout and inside the package when installed."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def shipped_studies() -> dict[str, Path]:
    """Path of each shipped study by its name, `starter` first."""
    # The wheel carries the checkout's `studies/` as `flows/studies/` (force-include in pyproject.toml).
    folders = (_HERE / "studies", _HERE.parent / "studies")
    folder = next((folder for folder in folders if (folder / "starter.yaml").is_file()), folders[1])
    paths = sorted(folder.glob("*.yaml"), key=lambda path: (path.stem != "starter", path.stem))
    return {path.stem: path for path in paths}
