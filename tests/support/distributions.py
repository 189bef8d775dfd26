"""Small distributions with entry points, as an installer leaves them in a folder of packages; and the one that the guide shows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_GUIDES = Path(__file__).parents[2] / "docs" / "guide"
GUIDES = {"evalnoise.checkers": _GUIDES / "checkers.md", "evalnoise.providers": _GUIDES / "providers.md"}


def install(
    folder: Path, name: str, version: str, points: dict[str, str], group: str = "evalnoise.checkers", **modules: str
) -> None:
    """Write a distribution that registers checkers, or others, with its modules."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{point} = {value}\n" for point, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


def install_the_guides_example(folder: Path, version: str | None = None, group: str = "evalnoise.checkers") -> None:
    """Write the distribution that the guide of a group shows."""
    blocks = dict(re.findall(r"```(toml|python)\n(.*?)```", GUIDES[group].read_text(encoding="utf-8"), re.DOTALL))
    project = tomllib.loads(blocks["toml"])["project"]
    points = project["entry-points"][group]
    (module,) = {value.split(":")[0] for value in points.values()}
    install(folder, project["name"], version or project["version"], points, group, **{module: blocks["python"]})
