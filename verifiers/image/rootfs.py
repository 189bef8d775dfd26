"""Packs files for the image into tar archives that are the same, bit for bit, whenever the files are.

Two archives: the supervisor's files alone, for an image on a Python from a registry, and a whole root file system made of this
machine's Python, its standard library, the study's packages and the shared libraries that these need, for machines that reach no
registry.
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

from verifiers.image.install import compile_files, compiled_name
from verifiers.image.packages import HOME as PACKAGES_HOME

HOME: Final = PurePosixPath("opt/evalnoise")
LIBRARIES: Final = PurePosixPath("usr/local/libraries")
PACKAGES: Final = PACKAGES_HOME.relative_to("/")
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
    "verifiers/supervisor/syscalls.py",
    "verifiers/supervisor/trial.py",
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
_ELF = b"\x7fELF"


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


def python_tar(path: Path, packages: Path | None = None) -> None:
    """Write the root file system of this machine's Python, with the supervisor in it. Raises OSError and CalledProcessError.

    Args:
        path: The archive.
        packages: A folder that `install` made for this Python, when candidates may import more than the standard library.
    """
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
    if packages is not None:
        files |= _shared_libraries([file for file in packages.rglob("*.so*") if _is_elf(file)], own=packages)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        files |= _compiled(files, Path(folder))
        if packages is not None:
            own = (file for file in packages.rglob("*") if file.is_file())
            files |= {PACKAGES / file.relative_to(packages).as_posix(): file for file in own}
        with tarfile.open(path, mode="w", format=tarfile.GNU_FORMAT) as archive:
            _write(archive, files, _FOLDERS)


def _standard_library(root: Path) -> Iterator[Path]:
    """Files of the standard library, without those that no candidate needs."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _is_left_out(name))
        yield from (Path(folder, name) for name in sorted(names) if not _is_left_out(name))


def _is_left_out(name: str) -> bool:
    return name in _LEFT_OUT or _LEFT_OUT_NAMES.fullmatch(name) is not None


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def _shared_libraries(binaries: list[Path], own: Path | None = None) -> dict[PurePosixPath, Path | bytes]:
    """What the dynamic linker loads for the binaries: the linker at its own path, the libraries in one folder.

    Args:
        binaries: What is loaded.
        own: A folder whose libraries find each other, as wheels bring theirs along. Among them may be some that cannot be loaded
            here (for another C library, or for one that is not installed): an import says so, and then only if it needs them.
    """
    found: dict[PurePosixPath, Path | bytes] = {}
    if not binaries:
        return found
    lines = subprocess.run(  # noqa: S603 - reads our own interpreter's files
        ["ldd", *map(str, binaries)],  # noqa: S607 - where ldd lies differs by distribution
        capture_output=True,
        check=own is None,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout.splitlines()
    for match in filter(None, map(_LDD_LINE.match, lines)):
        source = Path(match["path"])
        if own is not None and source.resolve().is_relative_to(own.resolve()):
            continue
        if match["name"] and not match["name"].startswith("/"):
            found[LIBRARIES / match["name"]] = source.resolve()
        else:
            found[PurePosixPath(str(source).lstrip("/"))] = source.resolve()
    return found


def _compiled(files: dict[PurePosixPath, Path | bytes], folder: Path) -> dict[PurePosixPath, Path]:
    """Bytecode of every module."""
    compiled: dict[PurePosixPath, Path] = {}
    triples = []
    for index, (name, source) in enumerate(sorted((n, s) for n, s in files.items() if isinstance(s, Path) and n.suffix == ".py")):
        target = folder / str(index)
        triples.append((source, target, "/" / name))
        compiled[compiled_name(name)] = target
    compile_files(triples)
    return {name: target for name, target in compiled.items() if target.exists()}


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
        runs = isinstance(entry, Path) and (".so" in name.name or name.parent.name == "bin" or _is_program(name, entry))
        info.size, info.mode = len(data), 0o755 if runs else 0o644
        archive.addfile(info, io.BytesIO(data))


def _is_program(name: PurePosixPath, source: Path) -> bool:
    """Whether a package brings it as a program. Elsewhere modes differ from machine to machine and mean nothing."""
    return name.is_relative_to(PACKAGES) and os.access(source, os.X_OK)
