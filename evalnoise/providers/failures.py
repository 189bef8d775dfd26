"""What an error of a server means for the call, by its HTTP status or by the kind that it names inside an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.reading import as_json
from evalnoise.providers.retry_after import retry_after
from schemas.records import Response, ResponseClass

_FATAL: Final = {
    401: "The server does not accept the key: check the environment variable {env}.",
    402: "The server asks for payment: check the account.",
    403: "The key may not use this model: check the account's permissions.",
    404: "Check the model's name and `base_url`.",
}
_MOVED: Final = "The server sends elsewhere, where no key is sent: put the new address into `base_url`."
_OVERLOADED: Final = frozenset({429, 503, 529})
_PASSING: Final = frozenset({408, 409, 425})
_NO_QUOTA: Final = ("insufficient_quota", "credit balance is too low", "billing_hard_limit_reached")
_OVERLONG: Final = (
    "context_length_exceeded", "context length", "prompt is too long", "string_above_max_length", "exceed_context_size",
)  # fmt: skip
_FILTERED: Final = (
    "content_filter", "content_policy_violation", "content filtering policy", "responsibleaipolicyviolation", "bio_policy",
    "misalignment_policy_violation", "flagged by moderation", "input was flagged",
)  # fmt: skip
_STATUS: Final = {
    "authentication_error": 401, "invalid_api_key": 401, "billing_error": 402, "insufficient_quota": 402, "permission_error": 403,
    "not_found_error": 404, "model_not_found": 404, "invalid_request_error": 400, "invalid_prompt": 400, "content_filter": 400,
    "badrequesterror": 400, "request_too_large": 413, "rate_limit_error": 429, "rate_limit_exceeded": 429, "tokens": 429,
    "requests": 429, "overloaded_error": 529, "overloaded": 529, "engine_overloaded": 529, "service_unavailable": 503,
    "timeout_error": 504, "api_error": 500, "server_error": 500, "internal_server_error": 500,
}  # fmt: skip
"""HTTP statuses that mean the same as the kinds of error that servers name."""
_OVERLOAD_WORDS: Final = ("overloaded", "rate limit", "too many requests", "over capacity", "at capacity")
_REFUSAL_TEXT: Final = 300


def of_status(
    status: int, said: str, *, raw: str, headers: Mapping[str, str], env: str, inside: bool = False
) -> Response | Failure:
    """What an HTTP status other than 2xx means.

    Args:
        status: The status, or the one that means the same as an error inside an answer.
        said: The error as the server said it; a body or a part of one.
        raw: The body as far as it came.
        headers: Those of the answer.
        env: Name of the variable that holds the key, for remedies.
        inside: Whether the error stood inside an answer of status 200.
    """
    text = f"an error in the answer: {said}" if inside else f"HTTP {status}: {said}"
    lowered = said.lower()
    wait = retry_after(headers)
    if status in (400, 403, 422, 451) and any(mark in lowered for mark in _FILTERED):
        finish = "error" if inside else f"http-{status}"
        shown = text[:_REFUSAL_TEXT]
        return Response(text="", response_class=ResponseClass.FILTERED, finish_reason=finish, refusal=shown, raw=raw)
    if status < 500 and any(mark in lowered for mark in _NO_QUOTA):
        status = 402
    if status in _FATAL:
        return Failure(Kind.FATAL, text, raw, remedy=_FATAL[status].format(env=env))
    if 300 <= status < 400:
        return Failure(Kind.FATAL, text, raw, remedy=_MOVED)
    if status in _OVERLOADED:
        return Failure(Kind.OVERLOADED, text, raw, wait)
    if status in _PASSING or status >= 500:
        return Failure(Kind.TRANSIENT, text, raw, wait)
    overlong = status == 413 or any(mark in lowered for mark in _OVERLONG)
    return Failure(Kind.THIS_PROMPT if overlong else Kind.REFUSED, text, raw)


def of_error(error: Any, *, raw: str, headers: Mapping[str, str], env: str) -> Response | Failure:
    """What an error means that a server reports inside an answer: as if its HTTP status had said so."""
    return of_status(_status_of(error), as_json(error), raw=raw, headers=headers, env=env, inside=True)


def _status_of(error: Any) -> int:
    said = as_json(error).lower()
    status = _named_status(error)
    # An error of no known kind, or of the server's own, is an overload if its words say so; else it can pass all the same.
    return 529 if status >= 500 and any(word in said for word in _OVERLOAD_WORDS) else status


def _named_status(error: Any) -> int:
    named = [error.get(name) for name in ("code", "status", "type")] if isinstance(error, dict) else [error]
    for name in named:
        if isinstance(name, int) and not isinstance(name, bool) and 300 <= name < 600:
            return name
        known = _STATUS.get(str(name).lower(), 0)
        if known:
            return known
        if isinstance(name, str) and name.isascii() and name.isdigit() and 300 <= int(name[:4]) < 600:
            return int(name[:4])
    return 500
