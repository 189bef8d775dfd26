"""Says which image candidates would run in, without building one and without asking a registry; and how many images there are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from docker import DockerClient
from docker.errors import ImageNotFound

from verifiers.image.build import (
    BASE_VARIABLE,
    DEFAULT_BASE,
    HOST_BASE,
    LABEL_BASE,
    LABEL_INPUTS,
    LABEL_PACKAGES,
    REPOSITORY,
    existing_image,
    written_python,
)
from verifiers.image.packages import normalised

PRUNE: Final = f"docker image prune --all --filter label={LABEL_INPUTS} --filter until=720h"
"""Removes our images that no container uses and that are older than 30 days."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The image for one set of packages."""

    name: str
    """The image that is there; empty where one is still to be built."""
    python: str
    """Its Python; empty where it is to be built, or does not say."""
    base: str
    """What it is, or would be, built on, in words."""
    packages: tuple[str, ...]
    """What candidates may import beside the standard library."""


def outlook(client: DockerClient, packages: Iterable[str] = ()) -> Outlook:
    """What a run would use now. Raises ExecutorError, and one of ENGINE_ERRORS."""
    wanted = os.environ.get(BASE_VARIABLE, "")
    named = normalised(packages)
    found = existing_image(client, wanted, named)
    if found is None:
        return Outlook("", "", _to_be(client, wanted), named)
    labels = found["Config"]["Labels"]
    name = next((tag for tag in found["RepoTags"] if tag.startswith(f"{REPOSITORY}:")), found["Id"])
    return Outlook(name, written_python(found), _words(labels[LABEL_BASE]), tuple(labels[LABEL_PACKAGES].split()))


def _to_be(client: DockerClient, wanted: str) -> str:
    base = wanted or DEFAULT_BASE
    if base == HOST_BASE or _is_here(client, base):
        return _words(base)
    return f"{base}, which a registry must give" + ("" if wanted else f"; if none does, on {_words(HOST_BASE)}")


def _is_here(client: DockerClient, base: str) -> bool:
    try:
        client.images.get(base)
    except ImageNotFound:
        return False
    return True


def _words(base: str) -> str:
    return "this machine's Python" if base == HOST_BASE else base


@dataclass(frozen=True, slots=True)
class Stock:
    """All images that this project built on this engine."""

    count: int
    size: int
    """Bytes; layers that images share are counted for each."""


def stock(client: DockerClient) -> Stock:
    """How many images there are. Raises one of ENGINE_ERRORS."""
    images = client.images.list(filters={"label": LABEL_INPUTS})
    return Stock(len(images), sum(image.attrs["Size"] for image in images))
