"""The verifier's image: the same content is the same digest, both ways of building work, two builders do not clash."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.errors import ExecutorError
from verifiers.image import build
from verifiers.image.build import HOST_BASE, REPOSITORY, build_image, ensure_image
from verifiers.image.rootfs import application_tar, python_tar
from verifiers.jobs import Job, Limits, Mode
from verifiers.sandbox import engine
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.process import ENVIRONMENT


@pytest.fixture
def tags(docker_engine: str) -> Iterator[list[str]]:
    tags: list[str] = []
    yield tags
    client = engine.connect()
    for tag in tags:
        client.images.remove(f"{REPOSITORY}:{tag}", force=True)
    client.close()


def answer(image: str) -> list[str]:
    sandbox = ContainerSandbox(image, 128)
    try:
        return [
            letter + text
            for letter, text in sandbox.run(Job(Mode.CALLS, "def f(x): return x + 1", Limits(5.0), "f", ("[1]",))).lines()
        ]
    finally:
        sandbox.close()


@pytest.mark.docker
def test_built_twice_it_has_the_same_digest(tags: list[str]) -> None:
    tags += ["test-first", "test-second", "test-on-base"]
    first, second = (build_image(HOST_BASE, tag) for tag in tags[:2])
    assert first.rootfs == second.rootfs
    assert first.rootfs == ensure_image(HOST_BASE).rootfs
    assert first.python == ".".join(map(str, sys.version_info[:3]))
    assert answer(first.image_id) == ["o2", "."]
    on_base = build_image(f"{REPOSITORY}:test-first", "test-on-base")
    assert on_base.rootfs != first.rootfs
    assert on_base.python == first.python
    assert answer(on_base.image_id) == ["o2", "."]


@pytest.mark.docker
def test_two_builders_at_once(docker_engine: str) -> None:
    command = [sys.executable, "-c", "from verifiers.image.build import ensure_image; print(ensure_image('host').rootfs)"]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    digests = {builder.communicate(timeout=120)[0].strip() for builder in builders}
    assert digests == {ensure_image(HOST_BASE).rootfs}


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
    assert build.DEFAULT_BASE in text
    assert build._SUPERVISOR in text
    settings = dict(pair.split("=") for pair in re.search(r"^ENV (.*)$", text, re.MULTILINE).group(1).split())  # type: ignore[union-attr]
    assert settings == {key: value for key, value in ENVIRONMENT.items() if key != "PATH"}
