"""The checks of `evalnoise doctor`. Each looks at one thing, changes nothing, and gives findings with their remedies."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path

import docker
from docker.errors import DockerException

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.recordings.opening import open_recording
from evalnoise.store.store import Store
from evalnoise.studyfile.errors import Places
from evalnoise.studyfile.load import load_with_places
from flows.server import ServerState, server_status
from flows.views.plan import checker_text
from flows.views.status import at_work
from schemas.errors import EvalnoiseError, ExitCode, StudyError
from schemas.provider import AnthropicProvider, OpenAIProvider, PluginProvider, RecordingProvider
from schemas.records import Benchmark
from schemas.study import Stack, Study
from schemas.verifier import VerifierSpec
from tasks.freeze import checker_identities
from tasks.replays import replayed
from verifiers.image.outlook import PRUNE, outlook, stock
from verifiers.registry import runs_code

_GIB = 1 << 30
_LOW_BYTES = 5 * _GIB
_TOO_LOW_BYTES = _GIB // 4
_ENGINE_SECONDS = 5
_MANY_IMAGES = 12


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's."""

    level: Level
    subject: str
    text: str
    remedy: str = ""
    exit_code: ExitCode = ExitCode.OK
    """For a failure: what the doctor exits with if it is the first."""


def examine(study_file: Path | None, store: Path, overrides: Sequence[str] = ()) -> Iterator[Finding]:
    """All checks in order; those of the study's own needs only when one is given and valid."""
    yield from check_python()
    study, places, findings = check_study(study_file, overrides)
    yield from findings
    yield from check_engine(study)
    yield from check_server()
    yield from check_keys(study)
    yield from check_store(store, study)
    if study:
        yield from check_data(study, places)


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Iterator[Finding]:
    """The interpreter and the versions that results are recorded with."""
    said = f"{platform.python_version()}, evalnoise {metadata.version('evalnoise')}, Prefect {metadata.version('prefect')}"
    if version < (3, 11):
        yield Finding(Level.FAIL, "Python", said, "Install evalnoise into Python 3.11 or newer.", ExitCode.USAGE)
    else:
        yield Finding(Level.OK, "Python", said)


def check_study(study_file: Path | None, overrides: Sequence[str]) -> tuple[Study | None, Places, list[Finding]]:
    """The study, where its values stand, and whether its file is well formed; that its checkers exist is seen with the data."""
    if study_file is None:
        return None, Places(""), []
    try:
        study, places = load_with_places(study_file, overrides)
    except EvalnoiseError as error:
        return None, Places(str(study_file)), [_failed("study", error)]
    return study, places, [Finding(Level.OK, "study", f"{study_file} is well formed: {study.study}")]


def _failed(subject: str, error: EvalnoiseError) -> Finding:
    return Finding(
        Level.FAIL, subject, f"{error.where}: expected {error.expected}, found {error.found}", error.remedy, error.exit_code
    )


def check_engine(study: Study | None) -> Iterator[Finding]:
    """Whether a container engine answers, and whether its disk has room. Without one only some studies can run."""
    try:
        client = docker.from_env(timeout=_ENGINE_SECONDS)
        try:
            version = client.version()
            root = client.info().get("DockerRootDir", "")
            images = list(_images(client, study))
        finally:
            client.close()
    except (DockerException, OSError) as error:
        yield _no_engine(study, str(error))
        return
    yield Finding(Level.OK, "Docker engine", f"{version.get('Version')}, API {version.get('ApiVersion')}")
    if root and Path(root).is_absolute():
        yield _room("disk of the engine", Path(root))
    yield from images


def _images(client: docker.DockerClient, study: Study | None) -> Iterator[Finding]:
    """The image for each set of packages, and advice when many images of earlier versions lie about."""
    specs = [stack.verifier for stack in study.stacks if stack.verifier.executor != "process"] if study else [VerifierSpec()]
    for packages in dict.fromkeys(spec.packages for spec in specs):
        try:
            found = outlook(client, packages)
        except EvalnoiseError as error:
            yield _failed("verifier image", error)
            continue
        python = f", Python {found.python}" if found.python else ""
        said = f"{found.name}{python}, built on" if found.name else "the first run builds it on"
        with_what = f"; packages {', '.join(found.packages)}" if found.packages else ""
        yield Finding(Level.OK, "verifier image", f"{said} {found.base}{with_what}")
    lying = stock(client)
    if lying.count > _MANY_IMAGES:
        text = f"{lying.count} of this and earlier versions, {lying.size / _GIB:.1f} GiB"
        yield Finding(Level.WARN, "verifier images", text, f"Remove those of 30 days ago that no container uses: {PRUNE}")


def _no_engine(study: Study | None, said: str) -> Finding:
    remedy = "Start the engine (for instance: sudo systemctl start docker), or set DOCKER_HOST, and give this user access to it."
    needing = [stack.name for stack in study.stacks if _needs_engine(study, stack)] if study else []
    if needing:
        text = f"none answers, and stack {', '.join(needing)} must not run without a sandbox ({said})"
        return Finding(Level.FAIL, "Docker engine", text, remedy, ExitCode.EXECUTOR)
    if study and not any(_runs_code(study, stack) for stack in study.stacks):
        return Finding(Level.OK, "Docker engine", "none answers, and this study needs none: its checkers run no code")
    text = f"none answers; candidates run as processes, which are no sandbox ({said})"
    return Finding(Level.WARN, "Docker engine", text, remedy)


def _needs_engine(study: Study, stack: Stack) -> bool:
    if not _runs_code(study, stack):
        return False
    names = {study.provider(stack, condition).name for condition in study.conditions}
    untrusted = names - {"oracle"} - set(stack.verifier.unsandboxed_providers)
    return stack.verifier.executor == "docker" or bool(untrusted)


def _runs_code(study: Study, stack: Stack) -> bool:
    try:
        return runs_code(checker_identities(study, load_benchmark(study.benchmark))[stack.name]["name"])
    except EvalnoiseError:  # said where it belongs
        return True


def check_server() -> Iterator[Finding]:
    """Which Prefect server a run would use."""
    found = server_status()
    if found.state is ServerState.UNREACHABLE:
        remedy = "Start that server or correct PREFECT_API_URL; with an empty one evalnoise runs its own server."
        yield Finding(Level.FAIL, "Prefect server", f"{found.api_url} does not answer: {found.detail}", remedy, ExitCode.SERVER)
    elif found.state is ServerState.STOPPED:
        yield Finding(Level.OK, "Prefect server", "none runs; the first run starts one in the background")
    else:
        yield Finding(Level.OK, "Prefect server", f"{found.api_url} answers ({found.detail})")


def check_keys(study: Study | None) -> Iterator[Finding]:
    """Whether the environment holds the keys. Their names are shown, never their values."""
    if study is None:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            yield Finding(
                Level.OK, "key", f"{name} is {'set' if os.environ.get(name) else 'not set; only its own provider needs it'}"
            )
        return
    for name, users in sorted(_keys_of(study).items()):
        if os.environ.get(name):
            yield Finding(Level.OK, "key", f"{name} is set (for {', '.join(users)})")
        else:
            remedy = f"export {name}=… in the shell that runs evalnoise; never write a key into a study."
            yield Finding(Level.FAIL, "key", f"{name} is not set, and {', '.join(users)} needs it", remedy, ExitCode.PROVIDER)


def _keys_of(study: Study) -> dict[str, list[str]]:
    """Names of the environment variables that hold keys, with who needs each."""
    users: dict[str, dict[str, None]] = {}
    specs = [(f"stack {s.name}", study.provider(s, c)) for s in study.stacks for c in study.conditions if c.source is None]
    judges = [(f"judge {j.name}", j.provider) for j in (study.judge.conditions if study.judge else ())]
    for user, spec in (*specs, *judges):
        if isinstance(spec, OpenAIProvider | AnthropicProvider | PluginProvider) and spec.api_key_env:
            users.setdefault(spec.api_key_env, {})[user] = None
    return {name: list(who) for name, who in users.items()}


def check_store(store: Path, study: Study | None) -> Iterator[Finding]:
    """Whether the store can be written, has room, and is free."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", str(store)) or (store.exists() and not store.is_dir()):
        remedy = "Name a local folder with --store or EVALNOISE_STORE."
        yield Finding(Level.FAIL, "store", f"{store} is no local folder", remedy, ExitCode.STORE)
        return
    folder = _nearest(store)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        remedy = "Give this user the right to write there, or name another folder with --store or EVALNOISE_STORE."
        yield Finding(Level.FAIL, "store", f"{folder} cannot be written: {error.strerror}", remedy, ExitCode.STORE)
        return
    yield Finding(
        Level.OK, "store", f"{store.absolute()} {'can be written' if store.is_dir() else 'will be made by the first run'}"
    )
    yield _room("disk of the store", folder)
    if store.is_dir():
        yield from _locks(store, study)


def _locks(store: Path, study: Study | None) -> Iterator[Finding]:
    try:
        found = {one.study: one.path.parent for one in Store.open(store, create=False).studies()}
    except EvalnoiseError as error:
        yield _failed("store", error)
        return
    for name, folder in found.items():
        holder = at_work(folder)
        if holder is None or (study and study.study != name):
            continue
        text = f"study {name} is held by process {holder.pid} on {holder.host} since {holder.started}"
        remedy = "Wait until it ends, or stop it there."
        if holder.host != socket.gethostname():
            remedy += " If that machine is gone, the lock went with it and the next run says so."
        yield Finding(Level.WARN, "lock", text, remedy)


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = path.absolute()
    while not path.is_dir() and path.parent != path:
        path = path.parent
    return path


def _room(subject: str, path: Path) -> Finding:
    folder = _nearest(path)
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding(Level.WARN, subject, f"{folder} cannot be looked at: {error.strerror}", "Check its free space by hand.")
    text = f"{free / _GIB:.1f} GiB free at {folder}"
    if free < _TOO_LOW_BYTES:
        return Finding(Level.FAIL, subject, text, "Free some space: a run would stop half-way.", ExitCode.STORE)
    if free < _LOW_BYTES:
        return Finding(Level.WARN, subject, text, "Free some space before a long run.")
    return Finding(Level.OK, subject, text)


def check_data(study: Study, places: Places) -> Iterator[Finding]:
    """Whether the benchmark's file is there, whole and the one that the study names, and every recording holds its tasks."""
    try:
        found = load_benchmark(study.benchmark)
    except EvalnoiseError as error:
        yield _failed("benchmark", error)
        yield from check_recordings(study, None)
        return
    files = ", ".join(f"{source.path} sha256 {source.sha256[:12]}" for source in found.sources) or f"sha256 {found.sha256[:12]}"
    yield Finding(Level.OK, "benchmark", f"{found.name}, {len(found.tasks)} tasks ({files})")
    yield from check_checkers(study, found, places)
    yield from check_recordings(study, found)


def check_checkers(study: Study, benchmark: Benchmark, places: Places) -> Iterator[Finding]:
    """Which checker each stack has, and whether it is there and takes the study's options."""
    try:
        found = checker_identities(study, benchmark)
    except EvalnoiseError as error:
        yield _failed("checker", places.located(error) if isinstance(error, StudyError) else error)
        return
    for stack, identity in found.items():
        yield Finding(Level.OK, "checker", f"{checker_text(identity)} (for stack {stack})")


def check_recordings(study: Study, benchmark: Benchmark | None) -> Iterator[Finding]:
    """Whether each recording is there, is whole, answers what the study will ask, and has the digest that the study names."""
    seen: set[str] = set()
    for stack in study.stacks:
        for condition in study.conditions:
            spec = study.provider(stack, condition)
            if not isinstance(spec, RecordingProvider):
                continue
            try:
                found = replayed(study, stack, condition, benchmark) if benchmark else open_recording(spec)
            except EvalnoiseError as error:
                finding = _failed("recording", error)
            else:
                if found is None:
                    continue
                told = f"{spec.path}, {len(found.rows)} responses, pairing {spec.pairing}, sha256 {found.sha256[:12]}"
                finding = Finding(Level.OK, "recording", told)
            if finding.text not in seen:
                seen.add(finding.text)
                yield finding
