"""Installs packages for candidates into a folder, and makes the folder the same whenever the packages are.

Runs in two places: imported on this machine, and as a program of the base's Python while an image is built on a base. So it
uses the standard library alone, and of the project nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path, PurePath, PurePosixPath
from typing import TypeVar

AnyPath = TypeVar("AnyPath", bound=PurePath)
REPORT = "evalnoise-install "
"""What the program's report begins with, so that it is found in the output of a build."""
_SECONDS = 900
_CUT = 400
_LONG_WORD = 100
# What an installer writes about itself: where a package came from, when, by whom. Nothing of it is needed for an import.
_RECORDS = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"})
_SCRIPTS = ("bin", "Scripts")
_PIP = ("install", "--quiet", "--no-input", "--no-compile", "--only-binary=:all:", "--retries=2", "--disable-pip-version-check")
_ADDRESS = re.compile(r"[\w.+-]+://[^\s'\"`)]+|\bhost='[^']*'|\bport=\d+")
_TROUBLE = re.compile(r"connection|name resolution|dns|timed out|unreachable|offline|proxy|certificate|tls|ssl", re.IGNORECASE)
_SAID = re.compile(r"^\s*(error\b|\N{MULTIPLICATION SIGN}|[╰├│]|caused? by|cause:|because|hint)", re.IGNORECASE)
# A fresh interpreter compiles, because what one has done before shows in its bytecode. What is no Python for this version
# (templates, tests of a parser) stays uncompiled.
_COMPILE = """
import py_compile, sys
for line in sys.stdin.read().splitlines():
    source, target, name = line.split("\\t")
    try:
        py_compile.compile(source, target, name, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    except py_compile.PyCompileError:
        pass
"""


class InstallError(Exception):
    """The packages could not be installed as they were asked for."""

    def __init__(self, found: str, missing: Sequence[str] = ()) -> None:
        super().__init__(found)
        self.found = found
        """What went wrong, without an address in it."""
        self.missing = tuple(missing)
        """Packages that are needed too but were not asked for, with the version that was found."""


def pip(python: str) -> list[str]:
    """The installer that comes with an interpreter."""
    return [python, "-m", "pip", *_PIP]


def uv(program: str, python: str) -> list[str]:
    """The installer for an environment that has no pip."""
    return [program, "pip", "install", "--quiet", "--python", python, "--only-binary=:all:"]


def install(installer: Sequence[str], requirements: Sequence[str], folder: Path, home: PurePosixPath) -> None:
    """Install exactly these packages, from wheels alone. Raises InstallError.

    Args:
        installer: `pip` or `uv`, ready for the requirements.
        requirements: Each `name==version`; every package that these need must be among them.
        folder: Where to; made here.
        home: Where the folder will be when candidates import from it.
    """
    folder.mkdir(parents=True)
    try:
        done = subprocess.run(  # noqa: S603 - an installer of this environment, with requirements of a checked form
            [*installer, "--target", str(folder), *requirements],
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            env={**os.environ, "PIP_USER": "0", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"},
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"no end after {_SECONDS} seconds") from None
    except OSError as error:
        raise InstallError(f"{installer[0]}: {error.strerror}") from None
    if done.returncode:
        raise InstallError(last_words(done.stderr or done.stdout) or f"{installer[0]} ended with code {done.returncode}")
    missing = unnamed(folder, requirements)
    if missing:
        raise InstallError(f"they need packages that are not named: {', '.join(missing)}", missing)
    settle(folder, home)


def last_words(text: str) -> str:
    """What an installer said at its end, in one line, without addresses: those may hold names and passwords."""
    lines = [_ADDRESS.sub("…", line).strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if _SAID.match(line)] or lines
    unreachable = "the package index did not answer; " if any(map(_TROUBLE.search, lines)) else ""
    told = unreachable + " ".join(dict.fromkeys(said[-4:]))
    if len(told) <= _CUT:
        return told
    whole, _, broken = told[: _CUT - 1].rpartition(" ")
    # A word is left out rather than cut, unless it is an endless one.
    return f"{whole.rstrip(',;:')} …" if len(broken) < _LONG_WORD else f"{whole} {broken}…"


def unnamed(folder: Path, requirements: Iterable[str]) -> list[str]:
    """What was installed without being asked for, each `name==version`, sorted."""
    named = {plain_name(requirement.partition("==")[0].partition("[")[0]) for requirement in requirements}
    installed = {plain_name(each.metadata["Name"]): each.version for each in metadata.distributions(path=[str(folder)])}
    return [f"{name}=={installed[name]}" for name in sorted(installed.keys() - named)]


def plain_name(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def settle(folder: Path, home: PurePosixPath) -> None:
    """Leave only what is imported, compiled, with plain modes and without times."""
    for path in [folder / name for name in _SCRIPTS]:
        if not (path / "__init__.py").exists():
            shutil.rmtree(path, ignore_errors=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_symlink() or (path.parent == folder and path.name.startswith(".") and path.is_file()):
            path.unlink()
        elif path.name == "__pycache__":
            shutil.rmtree(path)
        elif path.name in _RECORDS and path.parent.name.endswith(".dist-info"):
            path.unlink()
    sources = sorted(folder.rglob("*.py"))
    compile_files((source, compiled_name(source), home / source.relative_to(folder).as_posix()) for source in sources)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (0, 0))


def compiled_name(source: AnyPath) -> AnyPath:
    """Where Python looks for a module's bytecode."""
    return source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"


def compile_files(files: Iterable[tuple[Path, Path, PurePosixPath]]) -> None:
    """Compile each source into a target, under the name that tracebacks will show. The same sources give the same bytes."""
    lines = [f"{source}\t{target}\t{name}" for source, target, name in files]
    subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-S", "-c", _COMPILE],
        input="\n".join(lines),
        check=True,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}, "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"},
    )


def main(arguments: Sequence[str]) -> int:
    """Install into a file system that begins at a root. Arguments: the root, the folder in it, the file of requirements."""
    root, home, requirements = arguments
    try:
        wanted = Path(requirements).read_text(encoding="utf-8").split()
        folder = Path(root) / home.lstrip("/")
        install([*pip(sys.executable), "--no-cache-dir"], wanted, folder, PurePosixPath(home))
    except InstallError as error:
        sys.stdout.write(REPORT + json.dumps({"found": error.found, "missing": error.missing}) + "\n")
        return 1
    for path in folder.parents:
        if path == Path(root).parent:
            break
        path.chmod(0o755)
        os.utime(path, (0, 0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
