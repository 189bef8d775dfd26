"""The verifier's image: the same content is the same digest, both ways of building work, two builders do not clash."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.models.images import Image

from schemas.errors import ExecutorError
from schemas.verifier import VerifierSpec
from tests.verifiers.images import lines_of
from tests.verifiers.wheels import make_wheel, only_from
from verifiers.image import build, packages
from verifiers.image.build import HOST_BASE, REPOSITORY, build_image, ensure_image
from verifiers.image.rootfs import application_tar, python_tar
from verifiers.sandbox import engine
from verifiers.sandbox.process import ENVIRONMENT
from verifiers.verify import resolve_executor

PACKAGE = "killed-twice==1.0"


@pytest.fixture
def tags(docker_engine: str) -> Iterator[list[str]]:
    tags: list[str] = []
    yield tags
    client = engine.connect()
    for tag in tags:
        client.images.remove(f"{REPOSITORY}:{tag}", force=True)
    client.close()


@pytest.fixture
def package(docker_engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package that no image holds yet, and none afterwards."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    make_wheel(folder, "killed_twice", "1.0")
    only_from(folder, monkeypatch)
    remove_images(PACKAGE)
    yield PACKAGE
    remove_images(PACKAGE)


def images_of(package: str) -> list[Image]:
    client = engine.connect()
    try:
        return client.images.list(filters={"label": f"evalnoise.image.packages={package}"})
    finally:
        client.close()


def remove_images(package: str) -> None:
    for image in images_of(package):
        image.remove(force=True)


def adds_one(image: str) -> bool:
    return lines_of(image, "def f(x): return x + 1") == ["o2", "."]


@pytest.mark.docker
def test_built_twice_it_has_the_same_digest(tags: list[str]) -> None:
    tags += ["test-first", "test-second", "test-on-base"]
    first, second = (build_image(HOST_BASE, tag) for tag in tags[:2])
    assert first.rootfs == second.rootfs
    assert first.rootfs == ensure_image(HOST_BASE).rootfs
    assert first.python == ".".join(map(str, sys.version_info[:3]))
    assert adds_one(first.image_id)
    on_base = build_image(f"{REPOSITORY}:test-first", "test-on-base")
    assert on_base.rootfs != first.rootfs
    assert on_base.python == first.python
    assert adds_one(on_base.image_id)


@pytest.mark.docker
def test_a_real_package_from_the_index(docker_engine: str) -> None:
    """It brings shared libraries of its own, and threads that the limits would end if it started them."""
    before = {image.id for image in images_of("numpy==2.2.6")}
    plain, info = ensure_image(HOST_BASE), ensure_image(HOST_BASE, ["NumPy==2.2.6"])
    code = (
        "import numpy, os\n"
        "def f(x):\n"
        "    matrix = numpy.arange(160000.0).reshape(400, 400)\n"
        "    threads = len(os.listdir('/proc/self/task'))\n"
        "    return [numpy.__version__, int((matrix @ matrix)[0, 0]), threads]\n"
    )
    product = 400 * sum(k * k for k in range(400))
    assert lines_of(info.image_id, code, 256) == [f'o["2.2.6",{product},1]', "."]
    assert resolve_executor(VerifierSpec(executor="docker", packages=("numpy==2.2.6",)), []).rootfs != plain.rootfs
    for image in images_of("numpy==2.2.6"):
        if image.id not in before:
            image.remove(force=True)


@pytest.mark.docker
def test_two_builders_at_once(package: str) -> None:
    """One builds, the other waits and takes what is there."""
    command = [sys.executable, "-c", f"from verifiers.image.build import ensure_image; print(ensure_image('host', [{package!r}]))"]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [builder.communicate(timeout=120) for builder in builders]
    assert {out for out, _ in said} == {f"{ensure_image(HOST_BASE, [package])}\n"}
    assert sorted("building" in err for _, err in said) == [False, True]


@pytest.mark.docker
def test_builds_that_were_killed(package: str, tmp_path: Path) -> None:
    """One before the import, which leaves a folder, one after it, which leaves an image without a name. The next takes neither."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}

    def ensure(killed_at: str = "") -> subprocess.CompletedProcess[str]:
        code = (
            "import os, signal\n"
            "from verifiers.image import build\n"
            f"if {killed_at!r}: setattr(build, {killed_at!r}, lambda *_: os.kill(os.getpid(), signal.SIGKILL))\n"
            f"print(build.ensure_image('host', [{package!r}]).image_id)\n"
        )
        return subprocess.run([sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True)

    assert ensure("python_tar").returncode == -signal.SIGKILL
    assert (len(list(tmp_path.glob("evalnoise-build-*"))), images_of(package)) == (1, [])
    assert ensure("ContainerSandbox").returncode == -signal.SIGKILL
    assert (len(list(tmp_path.glob("evalnoise-build-*"))), [image.tags for image in images_of(package)]) == (0, [[]])
    built = ensure()
    (image,) = images_of(package)
    assert (f"{image.id}\n", len(image.tags)) == (built.stdout, 1)
    assert list(tmp_path.glob("evalnoise-build-*")) == []
    assert lines_of(image.id, "import killed_twice\ndef f(x): return killed_twice.VERSION") == ['o"1.0"', "."]


@pytest.mark.docker
def test_a_base_that_cannot_be_had(docker_engine: str) -> None:
    with pytest.raises(ExecutorError, match="registry") as caught:
        ensure_image("evalnoise.invalid/no-such-image:1")
    assert build.BASE_VARIABLE in caught.value.remedy


def test_archives_are_the_same_bit_for_bit(tmp_path: Path) -> None:
    python_tar(tmp_path / "a.tar")
    python_tar(tmp_path / "b.tar")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    assert (tmp_path / "a.tar").stat().st_size < 120 * 2**20
    assert application_tar() == application_tar()


def test_the_dockerfile_agrees_with_the_other_way() -> None:
    text = (Path(build.__file__).parent / "Dockerfile").read_text()
    assert re.findall(r"^ARG BASE=(.*)$", text, re.MULTILINE) == [build.DEFAULT_BASE]
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", build.DEFAULT_BASE)
    assert build._SUPERVISOR in text
    assert str(packages.HOME) in text
    assert f'_PACKAGES = "{packages.HOME}"' in Path(build.__file__).parents[1].joinpath("supervisor", "supervisor.py").read_text()
    settings = dict(pair.split("=") for pair in re.search(r"^ENV (.*)$", text, re.MULTILINE).group(1).split())  # type: ignore[union-attr]
    assert settings == {key: value for key, value in ENVIRONMENT.items() if key != "PATH"}
