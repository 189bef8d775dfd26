"""Packs files for the image into tar archives that are the same, bit for bit, whenever the files are.

Two archives: the supervisor's files alone, for an image on a Python from a registry, and a whole root file system made of this
machine's Python, its standard library and the shared libraries that it needs, for machines that reach no registry.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

HOME: Final = PurePosixPath("opt/evalnoise")
LIBRARIES: Final = PurePosixPath("usr/local/libraries")
_PROJECT = Path(__file__).resolve().parents[2]
_SOURCES = (
    "schemas/__init__.py",
    "schemas/values.py",
    "verifiers/__init__.py",
    "verifiers/supervisor/__init__.py",
    "verifiers/supervisor/answers.py",
    "verifiers/supervisor/child.py",
    "verifiers/supervisor/processes.py",
    "verifiers/supervisor/supervisor.py",
    "verifiers/supervisor/wipe.py",
    "verifiers/supervisor/wires.py",
)
_FOLDERS = {"dev": 0o755, "etc": 0o755, "proc": 0o755, "sys": 0o755, "tmp": 0o1777}
_TEXTS = {"etc/passwd": b"root:x:0:0:root:/:/sbin/nologin\n", "etc/group": b"root:x:0:\n"}
# No candidate needs them, and some would drag graphics libraries in.
_LEFT_OUT = frozenset(
    {
        *("__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py"),
        *("ensurepip", "lib2to3", "pydoc_data"),
    }
)
_LEFT_OUT_NAMES = re.compile(
    r"config-.*|_tkinter\..*|_test.*\.so|_ctypes_test\..*|xx.*\.so|readline\..*|_curses.*\.so|_g?dbm\..*|.*\.a"
)
_LDD_LINE = re.compile(r"^\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x")
_COMPILE = """
import py_compile, sys
for line in sys.stdin.read().splitlines():
    source, target, name = line.split("\\t")
    py_compile.compile(source, target, name, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""


def sources_digest() -> str:
    """Digest over the supervisor's files: another supervisor is another image."""
    whole = hashlib.sha256()
    for name in _SOURCES:
        content = (_PROJECT / name).read_bytes()
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


def application_tar() -> bytes:
    """The supervisor's files, under `HOME`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        _write(archive, {HOME / name: _PROJECT / name for name in _SOURCES})
    return buffer.getvalue()


def python_tar(path: Path) -> None:
    """Write the root file system of this machine's Python, with the supervisor in it. Raises OSError and CalledProcessError."""
    files: dict[PurePosixPath, Path | bytes] = {PurePosixPath(name): text for name, text in _TEXTS.items()}
    library = PurePosixPath(f"usr/local/lib/python{sys.version_info.major}.{sys.version_info.minor}")
    executable = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    files[PurePosixPath("usr/local/bin/python3")] = executable
    standard = Path(sysconfig.get_path("stdlib"))
    binaries = [executable]
    for source in _standard_library(standard):
        files[library / source.relative_to(standard).as_posix()] = source
        if source.suffix == ".so":
            binaries.append(source)
    files |= {HOME / name: _PROJECT / name for name in _SOURCES}
    files |= _shared_libraries(binaries)
    with tempfile.TemporaryDirectory(prefix="evalnoise-image-") as folder:
        files |= _compiled(files, Path(folder))
        with tarfile.open(path, mode="w", format=tarfile.GNU_FORMAT) as archive:
            _write(archive, files, _FOLDERS)


def _standard_library(root: Path) -> Iterator[Path]:
    """Files of the standard library, without those that no candidate needs."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _is_left_out(name))
        yield from (Path(folder, name) for name in sorted(names) if not _is_left_out(name))


def _is_left_out(name: str) -> bool:
    return name in _LEFT_OUT or _LEFT_OUT_NAMES.fullmatch(name) is not None


def _shared_libraries(binaries: list[Path]) -> dict[PurePosixPath, Path | bytes]:
    """What the dynamic linker loads for the binaries: the linker at its own path, the libraries in one folder."""
    found: dict[PurePosixPath, Path | bytes] = {}
    lines = subprocess.run(  # noqa: S603 - reads our own interpreter's files
        ["ldd", *map(str, binaries)],  # noqa: S607 - where ldd lies differs by distribution
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout.splitlines()
    for match in filter(None, map(_LDD_LINE.match, lines)):
        source = Path(match["path"])
        if match["name"] and not match["name"].startswith("/"):
            found[LIBRARIES / match["name"]] = source.resolve()
        else:
            found[PurePosixPath(str(source).lstrip("/"))] = source.resolve()
    return found


def _compiled(files: dict[PurePosixPath, Path | bytes], folder: Path) -> dict[PurePosixPath, Path | bytes]:
    """Bytecode of every module. Compiled by a fresh interpreter, because what one has done before shows in its bytecode."""
    compiled: dict[PurePosixPath, Path | bytes] = {}
    lines = []
    for index, (name, source) in enumerate(sorted((n, s) for n, s in files.items() if isinstance(s, Path) and n.suffix == ".py")):
        target = folder / str(index)
        lines.append(f"{source}\t{target}\t/{name}")
        compiled[name.parent / "__pycache__" / f"{name.stem}.{sys.implementation.cache_tag}.pyc"] = target
    subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-S", "-c", _COMPILE],
        input="\n".join(lines),
        check=True,
        text=True,
        stdout=subprocess.DEVNULL,
        env={"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"},
    )
    return compiled


def _write(archive: tarfile.TarFile, files: dict[PurePosixPath, Path | bytes], folders: dict[str, int] | None = None) -> None:
    """Entries by name, with folders before what they hold; no times, no owners."""
    entries: dict[PurePosixPath, Path | bytes | int] = {PurePosixPath(name): mode for name, mode in (folders or {}).items()}
    for name in files:
        for parent in name.parents[:-1]:
            entries.setdefault(parent, 0o755)
    entries |= files
    for name in sorted(entries):
        entry = entries[name]
        info = tarfile.TarInfo(str(name))
        if isinstance(entry, int):
            info.type, info.mode = tarfile.DIRTYPE, entry
            archive.addfile(info)
            continue
        data = entry if isinstance(entry, bytes) else entry.read_bytes()
        runs = isinstance(entry, Path) and (".so" in name.name or name.parent.name == "bin")
        info.size, info.mode = len(data), 0o755 if runs else 0o644
        archive.addfile(info, io.BytesIO(data))
