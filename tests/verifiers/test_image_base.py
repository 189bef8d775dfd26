"""The image on a base: the real Dockerfile with and without packages, bases from a registry, and what is done without one."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from docker.errors import ImageNotFound

from schemas.errors import ExecutorError
from tests.verifiers.images import Registry, build, lines_of, make_base, serving
from tests.verifiers.wheels import make_source, make_wheel
from verifiers.image import build as building
from verifiers.image.build import (
    BASE_VARIABLE,
    DEFAULT_BASE,
    HOST_BASE,
    LABEL_INPUTS,
    REPOSITORY,
    _obtainable,
    build_image,
    ensure_image,
)
from verifiers.image.outlook import outlook
from verifiers.sandbox import engine

pytestmark = pytest.mark.docker

BASE = "evalnoise-test-base:1"
VERSION = "import tiny_one\ndef f(x): return [tiny_one.VERSION, tiny_one.__file__, tiny_one.__cached__ is not None]\n"


@pytest.fixture(scope="module")
def client(docker_engine: str) -> Iterator[DockerClient]:
    client = engine.connect()
    yield client
    client.close()


@pytest.fixture(scope="module")
def base(client: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A base with pip, whose own configuration names a folder of wheels."""
    wheels = tmp_path_factory.mktemp("wheels")
    make_wheel(wheels, "tiny_one", "1.0")
    make_wheel(wheels, "needy", "2.0", needs=("tiny-one",))
    make_source(wheels, "onlysource", "1.0")
    make_base(client, BASE, ensure_image(HOST_BASE).image_id, wheels)
    yield BASE
    for image in client.images.list(filters={"label": f"evalnoise.image.base={BASE}"}):
        client.images.remove(image.id, force=True)
    client.images.remove(BASE)


def names(client: DockerClient, base: str) -> list[str]:
    """Names of our images on a base; one without a name counts as empty."""
    images = client.images.list(filters={"label": f"evalnoise.image.base={base}"})
    return sorted(name for image in images for name in image.tags or [""])


def test_without_packages(client: DockerClient, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way that the environment's variable chooses; the base is asked for its Python, pip is not used."""
    monkeypatch.setenv(BASE_VARIABLE, base)
    assert outlook(client).base == base
    info = ensure_image()
    assert lines_of(info.image_id, "import sys, os\ndef f(x): return [x + 1, os.environ['OMP_NUM_THREADS'], sys.path[-1]]") == [
        'o[2,"1","/usr/local/lib/python' + ".".join(info.python.split(".")[:2]) + '/site-packages"]',
        ".",
    ]
    monkeypatch.setattr(building, "_build", None)
    assert ensure_image() == info, "the second time it is there"
    seen = outlook(client)
    assert (seen.name.partition(":")[0], seen.python, seen.base, seen.packages) == (REPOSITORY, info.python, base, ())


def test_with_packages(client: DockerClient, base: str) -> None:
    plain = ensure_image(base)
    info = ensure_image(base, ["Tiny.One==1.0"])
    assert lines_of(info.image_id, VERSION) == ['o["1.0","/opt/evalnoise-packages/tiny_one/__init__.py",true]', "."]
    again = build_image(base, "test-again", ["tiny-one==1.0"])
    assert again.image_id != info.image_id
    assert again.rootfs == info.rootfs, "built twice, it has the same content"
    assert (info.kind, info.python) == (plain.kind, plain.python)
    assert info.rootfs != plain.rootfs
    assert ensure_image(base, ["tiny_one==1.0"]) == info
    assert lines_of(plain.image_id, VERSION)[0].startswith('i{"type": "ModuleNotFoundError"')
    labels = client.images.get(info.image_id).labels
    assert labels["evalnoise.image.packages"] == "tiny-one==1.0"
    assert labels["evalnoise.image.base"] == base
    assert labels["evalnoise.image.base-content"] == client.images.get(base).id
    assert lines_of(info.image_id, "import os\ndef f(x): return os.path.exists('/evalnoise-build')") == ["ofalse", "."]
    assert "" not in names(client, base), "no stage is left without a name"


@pytest.mark.parametrize(
    ("package", "found", "remedy"),
    [
        ("needy==2.0", "tiny-one==1.0", "Add to `packages`: tiny-one==1.0"),
        ("onlysource==1.0", "No matching distribution found for onlysource==1.0", "Only wheels are installed"),
        ("tiny-one==9", "(from versions: 1.0)", "Check names, versions"),
    ],
)
def test_packages_that_the_base_cannot_install(client: DockerClient, base: str, package: str, found: str, remedy: str) -> None:
    with pytest.raises(ExecutorError) as caught:
        build_image(base, "test-never", [package])
    assert caught.value.where == "verifier.packages"
    assert found in caught.value.found
    assert remedy in caught.value.remedy
    inputs = building._plan(client, base, (package,)).inputs()
    assert client.images.list(filters={"label": f"{LABEL_INPUTS}={inputs}"}) == []
    with pytest.raises(ImageNotFound):
        client.images.get(f"{REPOSITORY}:test-never")


def test_a_base_without_pip(client: DockerClient, base: str) -> None:
    with pytest.raises(ExecutorError, match="No module named pip"):
        build_image(ensure_image(HOST_BASE).image_id, "test-never", ["tiny-one==1.0"])


def test_an_image_that_cannot_run_gets_no_name(client: DockerClient, base: str) -> None:
    broken = "evalnoise-test-broken:1"
    build(client, broken, {"Dockerfile": f"FROM {base}\nENV PYTHONHOME=/nowhere\n".encode()})
    try:
        with pytest.raises(ExecutorError, match="verifier image"):
            ensure_image(broken)
        assert names(client, broken) == []
    finally:
        client.images.remove(broken)


def test_a_base_from_a_registry(client: DockerClient) -> None:
    """By name, tag and digest together, as the default base is given; by digest alone; and by tag at a host with a port."""
    registry = Registry(str(client.version()["Arch"]))
    with serving(registry) as host:
        repository = f"{host}/evalnoise-test/base"
        for base in (f"{repository}:1@{registry.digest}", f"{repository}@{registry.digest}", f"{repository}:1"):
            assert _obtainable(client, base)
            image = client.images.get(base)
            asked = len(registry.requests)
            assert _obtainable(client, base)
            assert len(registry.requests) == asked, "a base that is here is not asked for"
            client.images.remove(image.id, force=True)
        assert any(request.endswith(f"/manifests/{registry.digest}") for request in registry.requests)
        assert not _obtainable(client, f"{repository}:1@sha256:{'0' * 64}")


def test_a_registry_that_never_answers_costs_little(client: DockerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert building._REGISTRY_SECONDS == 8
    monkeypatch.setattr(building, "_REGISTRY_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        assert not _obtainable(client, f"127.0.0.1:{silent.getsockname()[1]}/base:1")
        assert time.monotonic() - started < 2.5


def test_no_registry_is_asked_while_there_is_an_image(docker_engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BASE_VARIABLE, raising=False)
    host = ensure_image(HOST_BASE)
    monkeypatch.setattr(building, "_obtainable", None)
    found = ensure_image()
    assert found.kind == "docker"
    try:
        client = engine.connect()
        client.images.get(DEFAULT_BASE)
    except ImageNotFound:
        assert found == host
    finally:
        client.close()


def test_without_a_registry_this_machines_python_serves(docker_engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BASE_VARIABLE, raising=False)
    asked: list[str] = []
    monkeypatch.setattr(building, "existing_image", lambda *_: None)
    monkeypatch.setattr(building, "_obtainable", lambda _, base: asked.append(base))
    monkeypatch.setattr(building, "_build", lambda _, plan, tag: (plan.base, tag == plan.tag()))
    assert ensure_image() == (HOST_BASE, True)
    assert asked == [DEFAULT_BASE]


def test_the_outlook_before_an_image_is_there(client: DockerClient, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    never = ["Never-Installed==1"]
    monkeypatch.setenv(BASE_VARIABLE, HOST_BASE)
    assert (outlook(client, never).name, outlook(client, never).base) == ("", "this machine's Python")
    assert outlook(client, never).packages == ("never-installed==1",)
    monkeypatch.setenv(BASE_VARIABLE, base)
    assert outlook(client, never).base == base
    monkeypatch.setenv(BASE_VARIABLE, "evalnoise.invalid/x:1")
    assert outlook(client, never).base == "evalnoise.invalid/x:1, which a registry must give"
    monkeypatch.delenv(BASE_VARIABLE)
    monkeypatch.setattr("verifiers.image.outlook.DEFAULT_BASE", "evalnoise.invalid/y:1")
    told = "evalnoise.invalid/y:1, which a registry must give; if none does, on this machine's Python"
    assert outlook(client, never).base == told


def test_the_context_holds_only_what_the_build_needs() -> None:
    """It is made in memory; a folder of the user's never becomes one."""
    assert not list(Path(building.__file__).parents[2].glob(".dockerignore"))
    assert "COPY . " not in (Path(building.__file__).with_name("Dockerfile")).read_text()
