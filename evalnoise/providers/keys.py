"""API keys: read from the environment, never stored, never shown."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar
from urllib.parse import quote, quote_plus

from evalnoise.providers.base import Failure
from schemas.errors import ProviderError
from schemas.records import Response

Result = TypeVar("Result", bound=Response | Failure)

_LONG: Final = 12
"""Shorter keys are dummies for local servers (`none`, `local`): to redact such a word in answers would alter what is measured."""
_HEAD: Final = 8
"""Characters of a key that are taken for its beginning."""
_REDACTED: Final = "[redacted]"
_LEVELS: Final = 3
"""JSON inside JSON inside JSON: a gateway that reports what another one reported of the headers."""
_URL_SAFE: Final = ("", "/", "!*'()")
"""What encoders of URLs leave as it is: everything is escaped; a path's slashes are not; as JavaScript does it."""
_MARKUP: Final = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&'"})
"""Go's encoder and template engines escape these so that JSON can stand in a page."""


class Secret:
    """A key that does not show itself."""

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        # Longest first, since one can hold another.
        self._forms = sorted(forms(value), key=len, reverse=True)

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

    def redact_torn(self, text: str) -> str:
        """What came of a text that broke off: also without the beginning of a key, which can be nearly all of it."""
        text = self.redact(text)
        if len(self._value) < _LONG:
            return text
        heads = {re.escape(form[:_HEAD]) for form in self._forms}
        kept, position = [], 0
        for match in re.finditer("|".join(sorted(heads)), text):
            if match.start() >= position:
                kept += [text[position : match.start()], _REDACTED]
                position = match.start() + max(_common(text, match.start(), form) for form in self._forms)
        return "".join([*kept, text[position:]])

    def redact_result(self, result: Result) -> Result:
        """A response, or a failure, without the key in any of its texts. A failure shows a short key's word neither."""
        short = not isinstance(result, Response)
        changed: dict[str, Any] = {}
        for field in fields(result):
            value = getattr(result, field.name)
            if type(value) is str:  # a class or kind is a str too, but an enum's
                changed[field.name] = self.redact(value, short=short)
            elif isinstance(value, Mapping):
                changed[field.name] = {name: self.redact(text, short=short) for name, text in value.items()}
        return replace(result, **changed)


def _common(text: str, start: int, form: str) -> int:
    """How many of a form's first characters stand in a text from a place on."""
    return next((n for n, letter in enumerate(form) if text[start + n : start + n + 1] != letter), len(form))


def forms(value: str) -> frozenset[str]:
    """A key as a server may echo it: plain, for a URL, in base64; each as it is and inside up to three levels of JSON."""
    found = {value}
    if len(value) >= _LONG:  # of a dummy key these are so short that they stand in any text
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            padded = encode(value.encode()).decode()
            found |= {padded, padded.rstrip("=")}
        found |= {url for text in found for url in _for_url(text)}
    newest = found
    for _ in range(_LEVELS):
        newest = {quoted for text in newest for quoted in _quoted(text)} - found
        found = found | newest
    return frozenset(found - {""})


def _for_url(text: str) -> set[str]:
    urls = {quote(text, safe=safe) for safe in _URL_SAFE} | {quote_plus(text)}
    return urls | {re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), url) for url in urls}


def _quoted(text: str) -> set[str]:
    """A text inside the quotes of JSON, as several encoders write it, or of Python."""
    plain = json.dumps(text)[1:-1]
    both = {plain, plain.translate(_MARKUP)}
    return both | {quoted.replace("/", "\\/") for quoted in both} | {repr(text)[1:-1]}


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


def refuse_hidden_headers(provider: str, variable: str) -> None:
    """Raise ProviderError where the environment would make an SDK add headers that no study and no request key holds."""
    if os.environ.get(variable):
        raise ProviderError(
            f"provider {provider}",
            expected=f"no {variable} in the environment: it changes what is sent, and no request key says so",
            found="one",
            remedy=f"Unset {variable}; fields of the request go into the study's `extra`.",
        )
