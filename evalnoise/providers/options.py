"""Checks of provider options before anything is sent: the body must say all there is, once, and JSON must carry it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from evalnoise.canonical import canonical_json
from evalnoise.providers.base import Request
from schemas.errors import StudyError
from schemas.provider import AnthropicProvider, OpenAIProvider


def request_body(
    spec: OpenAIProvider | AnthropicProvider, named: Mapping[str, Any], *, reserved: Collection[str]
) -> dict[str, Any]:
    """The body but for the messages: named options that are set, then `extra`. Raises StudyError.

    Args:
        spec: Provider options.
        named: Body fields that have an option of their own; None: not sent.
        reserved: Fields that `extra` must not hold: they have their own option, or an answer could not be read with them.
    """
    _check_base_url(spec)
    for name in spec.extra:
        if name in reserved:
            raise StudyError(
                f"provider.extra.{name}",
                expected="a field of the request that has no option of its own and leaves one whole answer",
                found=name,
                remedy="Use the option of that name (`model` and `max_tokens` belong to the stack), or remove it.",
            )
    body = {name: value for name, value in named.items() if value is not None} | spec.extra
    try:
        Request(spec.name, "", body).key()
        canonical_json(body)  # also what does not count in the key is sent
    except ValueError as error:
        raise StudyError(
            "provider",
            expected="options that JSON can carry exactly",
            found=str(error),
            remedy="Use finite numbers, integers below 2^53, plain text, lists and mappings.",
        ) from None
    return body


def _check_base_url(spec: OpenAIProvider | AnthropicProvider) -> None:
    if spec.base_url is None:
        return
    try:
        parts = urlsplit(spec.base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable or parts.username is not None or parts.password is not None:
        raise StudyError(
            "provider.base_url",
            expected="an http:// or https:// address without a user name or password",
            found="another kind of text" if not usable else "an address that holds a user name or password",
            remedy=f"Keys come from the environment alone: set {spec.api_key_env}.",
        )
