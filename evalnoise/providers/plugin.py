"""Providers of other packages as evalnoise runs them: within their time, without their key, and with no error of theirs a crash."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from evalnoise.providers.base import CallContext, Failure, Kind, LiveProvider, Request, RequestMaker
from evalnoise.providers.keys import Secret
from evalnoise.providers.kind import Plugin
from schemas.errors import EvalnoiseError, ProviderError
from schemas.provider import PluginProvider
from schemas.records import Response

_TEXT: Final = 300


class PluginModel(LiveProvider):
    """A provider of another package."""

    def __init__(self, spec: PluginProvider, make: RequestMaker, plugin: Plugin, *, key: Secret | None, whence: str) -> None:
        super().__init__(spec.name, make)
        self.address = f"{spec.name} of {whence}"
        self.max_retries = spec.max_retries
        self._timeout = spec.timeout
        self._plugin = plugin
        self._secret = key
        self._whence = whence

    async def send(self, request: Request, context: CallContext) -> Response | Failure:
        """Send the request once. Raises ProviderError for what is neither a response nor a failure."""
        try:
            async with asyncio.timeout(self._timeout):
                result = await self._plugin.send(request, context)
        except TimeoutError:
            result = Failure(Kind.TRANSIENT, f"no answer within {self._timeout:g} s")
        except EvalnoiseError:
            raise
        except Exception as error:  # noqa: BLE001 - another distribution's code may raise anything
            result = Failure(Kind.TRANSIENT, f"{type(error).__name__}: {error}")
        if not isinstance(result, Response | Failure):
            raise ProviderError(
                f"provider {self.name} of {self._whence}",
                expected="a Response or a Failure",
                found=type(result).__name__,
                remedy="Mend its method `send`; docs/guide/providers.md says what it returns.",
            )
        if self._secret is not None:
            result = self._secret.redact_result(result)
        return replace(result, text=result.text[:_TEXT]) if isinstance(result, Failure) else result

    async def close(self) -> None:
        """Let go of connections."""
        await self._plugin.close()
