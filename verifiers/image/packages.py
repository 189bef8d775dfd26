"""Packages that a study names for candidates: their normal form, and how they are installed for this machine's own Python."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from filelock import FileLock, Timeout

from schemas.errors import ExecutorError, StudyError
from verifiers.image import install as installing
from verifiers.image.install import InstallError, install, plain_name
from verifiers.sandbox.process import interpreter_digest

HOME: Final = PurePosixPath("/opt/evalnoise-packages")
"""Where packages are in an image. The supervisor and the Dockerfile name the same folder."""
_LOCK_SECONDS = 900
_CONTENT = "content.sha256"
_SITE = "site"


def normalised(requirements: Iterable[str], place: str = "verifier.packages") -> tuple[str, ...]:
    """The same set of packages is the same tuple, however it is written. Raises StudyError, with the place in the study.

    Names are compared as indexes do: in lower case, with one hyphen for every run of hyphens, underscores and dots.
    """
    versions: dict[str, str] = {}
    for requirement in requirements:
        name, _, version = requirement.partition("==")
        project, _, extras = name.rstrip("]").partition("[")
        plain = plain_name(project)
        if extras:
            plain += f"[{','.join(sorted({plain_name(extra) for extra in extras.split(',') if extra}))}]"
        if versions.setdefault(plain, version) != version:
            found = f"{plain} with two versions, {versions[plain]} and {version}"
            raise StudyError(place, expected="each package once", found=found, remedy="Keep one of the versions.")
    return tuple(f"{name}=={version}" for name, version in sorted(versions.items()))


def packages_digest(requirements: Sequence[str]) -> str:
    """Digest over what is asked for and how it is installed; the interpreter is not part of it."""
    if not requirements:
        return ""
    rules = Path(installing.__file__).read_bytes()
    return hashlib.sha256(rules + "\n".join(requirements).encode()).hexdigest()


def install_here(requirements: Sequence[str], folder: Path, home: PurePosixPath = HOME) -> None:
    """Install packages for this interpreter into a folder that will be found at `home`. Raises ExecutorError."""
    try:
        install(_installer(), requirements, folder, home)
    except InstallError as error:
        raise not_installed(requirements, error.found, error.missing, f"Python {platform.python_version()} here") from None


def _installer() -> list[str]:
    """This environment's pip, or uv where there is none. Raises InstallError."""
    if importlib.util.find_spec("pip") is not None:
        return installing.pip(sys.executable)
    program = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if program is None:
        raise InstallError("this environment has neither pip nor uv")
    return installing.uv(program, sys.executable)


def packages_folder(requirements: Sequence[str]) -> tuple[Path, str]:
    """The folder that holds these packages for processes of this machine, installed if need be, and its content's digest.

    Raises ExecutorError. Processes are no sandbox, so a candidate may have changed the folder: it is compared with the digest
    that it had when it was made, and made anew where they differ.
    """
    wanted = normalised(requirements)
    cache = _cache()
    key = hashlib.sha256(f"{interpreter_digest()}\n{packages_digest(wanted)}".encode()).hexdigest()[:16]
    whole, new = cache / key, cache / f"{key}.new"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{key}.lock", timeout=_LOCK_SECONDS):
            recorded = whole / _CONTENT
            if recorded.is_file() and (digest := recorded.read_text(encoding="ascii")) == content_digest(whole / _SITE):
                return whole / _SITE, digest
            for leftover in (whole, new):
                shutil.rmtree(leftover, ignore_errors=True)
            new.mkdir()
            new.chmod(0o755)
            install_here(wanted, new / _SITE, PurePosixPath(whole / _SITE))
            digest = content_digest(new / _SITE)
            (new / _CONTENT).write_text(digest, encoding="ascii")
            new.rename(whole)
    except Timeout:
        raise failed(f"another process installs them for {_LOCK_SECONDS} seconds", f"End it, or remove {cache}.") from None
    except OSError as error:
        raise failed(f"{cache}: {error.strerror}", "Set EVALNOISE_HOME to a folder of yours on a disk with room.") from None
    return whole / _SITE, digest


def _cache() -> Path:
    """Where installed packages stay: EVALNOISE_HOME, else the user's cache; root's is one that candidates' users can read."""
    if named := os.environ.get("EVALNOISE_HOME"):
        return Path(named).expanduser().absolute() / "packages"
    if os.geteuid() == 0:
        return Path("/var/cache/evalnoise/packages")
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "evalnoise" / "packages"


def content_digest(folder: Path) -> str:
    """Digest over names, kinds and bytes of all that is in a folder."""
    whole = hashlib.sha256()
    for path in _sorted_files(folder):
        data = path.read_bytes()
        whole.update(f"{path.relative_to(folder).as_posix()}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


def _sorted_files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if not path.is_dir())


def not_installed(requirements: Sequence[str], found: str, missing: Sequence[str], python: str) -> ExecutorError:
    """The error for packages that could not be installed."""
    if missing:
        return failed(found, f"Add to `packages`: {', '.join(missing)}. All are named, so that no image changes by itself.")
    return failed(
        f"{', '.join(requirements)} for {python}: {found}",
        f"Check names, versions, and the network to the index. Only wheels are installed: each package needs one for {python}.",
    )


def failed(found: str, remedy: str) -> ExecutorError:
    """An error of the packages."""
    return ExecutorError("verifier.packages", expected="packages that can be installed for candidates", found=found, remedy=remedy)
