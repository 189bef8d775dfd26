"""API keys: read from the environment, never stored, never shown."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from typing import Any, Final

from schemas.errors import ProviderError
from schemas.records import Response

_LONG: Final = 12
"""Shorter keys are dummies for local servers (`none`, `local`): to redact such a word in answers would alter what is measured."""
_REDACTED: Final = "[redacted]"


class Secret:
    """A key that does not show itself."""

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        # As it stands, and as it would stand inside a JSON text, where some servers escape slashes too. Longest first, since one
        # can hold another.
        quoted = json.dumps(value)[1:-1]
        forms = {value, quoted, quoted.replace("/", "\\/")}
        self._forms = sorted(forms - {""}, key=len, reverse=True)

    def __repr__(self) -> str:
        return "Secret()"

    def reveal(self) -> str:
        """The key, for the SDK's client and nothing else."""
        return self._value

    def redact(self, text: str, *, short: bool = False) -> str:
        """The text without the key. Answers keep a short key's word; error texts do not (``short=True``)."""
        if len(self._value) < _LONG and not short:
            return text
        for form in self._forms:
            text = text.replace(form, _REDACTED)
        return text

    def redact_response(self, response: Response) -> Response:
        """The response without the key in any of its texts."""
        changed: dict[str, Any] = {}
        for field in fields(response):
            value = getattr(response, field.name)
            if type(value) is str:  # the class is a str too, but an enum's
                changed[field.name] = self.redact(value)
        return replace(response, **changed)


def read_key(provider: str, variable: str) -> Secret:
    """The key in an environment variable. Raises ProviderError, which names the variable and never its value."""
    value = os.environ.get(variable, "").strip()
    usable = value.isascii() and value.isprintable()
    if not value or not usable:
        raise ProviderError(
            f"provider {provider}",
            expected=f"an API key in the environment variable {variable}",
            found="a value that is not printable ASCII" if value else "none",
            remedy=f"Set {variable}; a local server that asks for no key takes any value.",
        )
    return Secret(value)
