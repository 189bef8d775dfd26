"""Tiny packages for tests of installing: wheels and sources made in a folder, without an index."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest


def make_wheel(
    folder: Path, name: str, version: str, *, needs: tuple[str, ...] = (), more: Mapping[str, str] | None = None
) -> Path:
    """A pure Python wheel with a module that says its version, and a script."""
    info = f"{name}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {need}\n" for need in needs)
    files = {
        f"{name}/__init__.py": f"VERSION = {version!r}\nWORDS = {{'a', 'b', 'c', 'd'}}\n",
        f"{info}/METADATA": meta,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
        f"{info}/RECORD": "",
        **(more or {}),
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for entry, text in files.items():
            archive.writestr(entry, text)
    return path


def only_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip and uv look in a folder, and in no index."""
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))


def make_source(folder: Path, name: str, version: str) -> Path:
    """A source distribution whose installation would leave a trace: it must never be run."""
    path = folder / f"{name}-{version}.tar.gz"
    trace = f"open({str(folder / 'was-run')!r}, 'w')"
    files = {
        "setup.py": f"{trace}\nfrom setuptools import setup\nsetup(name={name!r}, version={version!r})\n",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for entry, text in files.items():
            add(archive, f"{name}-{version}/{entry}", text.encode())
    return path


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """One file into an archive."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
