"""Finds providers by the names under which they are registered: ours and those of other distributions."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from evalnoise.canonical import canonical_json
from evalnoise.providers.base import CallContext, Prompt, Request, RequestMaker
from evalnoise.providers.keys import Secret
from evalnoise.providers.kind import Plugin
from schemas.errors import StudyError
from schemas.plugins import distribution, registered
from schemas.provider import JudgeSpec, PluginProvider, ProviderSpec
from schemas.study import Study

GROUP: Final = "evalnoise.providers"
_FOUND: Final = 200
_GUIDE: Final = "docs/guide/providers.md says what a provider has."


def load(name: str, place: str = "provider") -> Any:
    """What is registered under a name. Raises StudyError."""
    points = registered(GROUP)
    if name not in points:
        near = difflib.get_close_matches(name, points, n=1)
        raise StudyError(
            f"{place}.name",
            expected=f"a registered provider ({', '.join(points)})",
            found=repr(name)[:100],
            remedy=f"Did you mean {near[0]}?" if near else f"Install the package that registers it under {GROUP}.",
        )
    try:
        return points[name].load()
    except Exception as error:  # noqa: BLE001 - another distribution's module may raise anything
        whence = f"{points[name].value} of {distribution(points[name]) or 'no distribution'}"
        found = f"{type(error).__name__}: {error}"[:_FOUND]
        remedy = f"Mend or reinstall the package that registers it. {_GUIDE}"
        raise StudyError(f"{place}.name", expected=f"provider {name} to load from {whence}", found=found, remedy=remedy) from None


def load_plugin(spec: PluginProvider, place: str = "provider") -> Any:
    """The class of another package's provider. Raises StudyError for what cannot be one."""
    loaded = load(spec.name, place)
    options, version = getattr(loaded, "Options", None), getattr(loaded, "version", None)
    fits = {
        "a class": isinstance(loaded, type),
        "a pydantic model `Options`": isinstance(options, type) and issubclass(options, BaseModel),
        "a whole number `version`": type(version) is int,
        **{f"a method `{name}`": callable(getattr(loaded, name, None)) for name in ("request_maker", "send", "close")},
    }
    lacking = next((what for what, there in fits.items() if not there), None)
    if lacking:
        expected, found = f"provider {spec.name} from {whence(spec.name)} to be one", f"an object that lacks {lacking}"
        raise StudyError(f"{place}.name", expected=expected, found=found, remedy=f"Mend the package that registers it. {_GUIDE}")
    return loaded


def options_of(spec: PluginProvider, place: str = "provider") -> BaseModel:
    """The plug-in's own model of its options, validated. Raises StudyError."""
    model: type[BaseModel] = load_plugin(spec, place).Options
    remedy = f"See the documentation of {whence(spec.name)}."
    try:
        found = model.model_validate(spec.options)
        canonical_json(found.model_dump(mode="json"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        loc = ".".join(map(str, first["loc"]))
        expected, value = first["msg"].removeprefix("Input should be ").removeprefix("Value error, "), f"{first['input']!r}"
        if first["type"] == "extra_forbidden":
            known = [*model.model_fields]
            near = difflib.get_close_matches(loc, known, n=1)
            expected = f"an option of provider {spec.name} ({', '.join(known) or 'it has none'})"
            value = f"{loc}{f'; did you mean {near[0]}?' if near else ''}"
        where = f"{place}.options.{loc}".removesuffix(".")
        raise StudyError(where, expected=expected, found=value[:_FOUND], remedy=remedy) from None
    except ValueError as error:
        expected = "options that JSON can carry: finite numbers, whole ones below 2**53"
        raise StudyError(f"{place}.options", expected=expected, found=str(error)[:_FOUND], remedy=remedy) from None
    return found


def made(spec: PluginProvider, *, key: Secret | None, concurrency: int, place: str = "provider") -> Plugin:
    """Another package's provider with the study's options. Raises StudyError."""
    options = options_of(spec, place)
    try:
        plugin: Plugin = load_plugin(spec, place)(options, key=key, concurrency=concurrency)
    except Exception as error:  # noqa: BLE001 - another distribution's class may raise anything
        raise _unmade(spec, f"{place}.options", "options of which it can be made", error, key) from None
    return plugin


def plugin_requests(spec: PluginProvider, *, model: str, max_tokens: int, place: str = "provider") -> RequestMaker:
    """How another package's requests are made: what it makes is checked to be requests that have a key. Raises StudyError."""
    options = options_of(spec, place)
    try:
        make = load_plugin(spec, place).request_maker(options, model=model, max_tokens=max_tokens)
    except Exception as error:  # noqa: BLE001 - as above
        raise _unmade(spec, f"{place}.options", "options of which requests can be made", error, None) from None

    def checked(prompt: Prompt, context: CallContext) -> Request:
        try:
            request: Request = make(prompt, context)
            request.key()
        except Exception as error:  # noqa: BLE001 - as above
            raise _unmade(spec, f"{place}, task {context.task.id}", "a request that JSON can carry", error, None) from None
        # The name is the study's, so that a plug-in's requests cannot be taken for those of another provider.
        return replace(request, provider=spec.name)

    return checked


def _unmade(spec: PluginProvider, where: str, expected: str, error: Exception, key: Secret | None) -> StudyError:
    said = f"{type(error).__name__}: {error}"
    found = (key.redact(said, short=True) if key else said)[:_FOUND]
    remedy = f"See the documentation of {whence(spec.name)}."
    return StudyError(where, expected=f"{expected} (provider {spec.name})", found=found, remedy=remedy)


def identity(spec: PluginProvider, place: str = "provider") -> dict[str, Any]:
    """What the protocol pins of another package's provider. Raises StudyError."""
    return {
        "name": spec.name,
        "version": load_plugin(spec, place).version,
        "options": options_of(spec, place).model_dump(mode="json"),
        "distribution": whence(spec.name),
    }


def identities(study: Study) -> dict[str, dict[str, Any]]:
    """What the protocol pins of other packages' providers: by ``stack/condition`` and ``judge/condition``. Raises StudyError."""
    judges = study.judge.conditions if study.judge else ()
    specs: list[tuple[str, ProviderSpec | JudgeSpec]] = [
        *((f"{stack.name}/{c.name}", study.provider(stack, c)) for stack in study.stacks for c in study.conditions),
        *((f"judge/{judge.name}", judge.provider) for judge in judges),
    ]
    return {name: identity(spec, f"provider of {name}") for name, spec in specs if isinstance(spec, PluginProvider)}


def whence(name: str) -> str:
    """The distribution that registers a provider, with its version."""
    point = registered(GROUP)[name]
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "no distribution"
