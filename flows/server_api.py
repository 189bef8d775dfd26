"""Where the Prefect API is: what the user configured, read without importing Prefect, and whether it answers."""

from __future__ import annotations

import base64
import http.client
import os
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

LOCAL: Final = ("127.0.0.1", "localhost", "::1")


def settings() -> dict[str, str]:
    """Prefect's settings from the environment, over those of the active profile."""
    return profile() | {key: value for key, value in os.environ.items() if key.startswith("PREFECT_")}


def profile() -> dict[str, str]:
    """Settings of the active Prefect profile, as `prefect config set` and `prefect cloud login` write them."""
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    path = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml").expanduser()
    try:
        file = tomllib.loads(path.read_text(encoding="utf-8"))
        chosen = file["profiles"][os.environ.get("PREFECT_PROFILE") or file["active"]]
        return {str(key): str(value) for key, value in chosen.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # No profile, or one that Prefect itself will complain about.
        return {}


def probe(api_url: str, known: Mapping[str, str] | None = None) -> str | None:
    """None when a Prefect API answers there, else what was found instead."""
    if urlsplit(api_url).scheme not in ("http", "https"):
        return "an address that is not http:// or https://"
    # The scheme was checked on the line above.
    request = urllib.request.Request(f"{api_url}/health", headers=_credentials(known or {}))  # noqa: S310
    # A proxy for the outside world must not be asked for this machine's own ports.
    local = urlsplit(api_url).hostname in LOCAL
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
    try:
        with opener.open(request, timeout=5) as reply:
            kind = reply.headers.get_content_type()
            return None if kind == "application/json" else f"an answer of type {kind} (the address of the API ends in /api)"
    except urllib.error.HTTPError as error:
        if error.code in (401, 403) and (known or {}).get("PREFECT_CLIENT_CUSTOM_HEADERS"):
            return None  # a gateway that wants headers which Prefect's client will send
        hint = " (PREFECT_API_KEY or PREFECT_API_AUTH_STRING is missing or wrong)" if error.code in (401, 403) else ""
        return f"HTTP status {error.code}{hint}"
    except urllib.error.URLError as error:
        return f"no answer: {error.reason}"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"no answer: {error}"


def _credentials(known: Mapping[str, str]) -> dict[str, str]:
    if key := known.get("PREFECT_API_KEY"):
        return {"Authorization": f"Bearer {key}"}
    if pair := known.get("PREFECT_API_AUTH_STRING"):
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    return {}


def dashboard(api_url: str) -> str:
    """The dashboard's address, by the rule of Prefect's own settings."""
    if api_url.startswith("https://api.prefect.cloud/api/"):
        rest = api_url.removeprefix("https://api.prefect.cloud/api/")
        return "https://app.prefect.cloud/" + rest.replace("accounts/", "account/").replace("workspaces/", "workspace/")
    return api_url.removesuffix("/api")
