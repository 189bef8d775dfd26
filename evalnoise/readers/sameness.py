"""Were two arms measured alike? What differs between their frozen protocols, and whether their cells are independent at all.

A gate tests a change of model or prompt. Whatever else differs (suite, grader, judge, sampling) makes another measurement of it,
and a noise floor or margin that was found for one does not hold for the other: it must be calibrated again. Everything that a
protocol has frozen is compared, but for what is named here as no fact of the measurement: a field that is new counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from evalnoise.readers.arms import Arm
from schemas.protocol import Protocol


class Aspect(StrEnum):
    """Parts of a measurement that can differ."""

    MODEL = "model"
    """The model, the provider and its address."""
    PROMPT = "prompt"
    """The prompt template."""
    SUITE = "suite"
    """The tasks."""
    GRADER = "grader"
    """Checker, executor, limits, and the versions of the rules that read answers."""
    JUDGE = "judge"
    """The judge conditions."""
    SAMPLING = "sampling"
    """Temperature and what else is sent, output tokens, retries, what incomplete answers count as; and what has no other place."""


TESTED: Final = frozenset({Aspect.MODEL, Aspect.PROMPT})
"""What a gate is about, and what may therefore differ."""
_MODEL_OPTIONS: Final = frozenset({"name", "base_url", "api", "api_key_env", "stream"})
_SIMULATED: Final = frozenset({"seed", "alpha", "beta", "stable"})
"""Options of the oracle that say which model it simulates."""
_NO_FACT_OF_A_PROTOCOL: Final = frozenset(
    {
        "study", "executors", "checkers", "measurement", "providers",  # taken apart below
        "benchmark", "benchmark_sha256", "limit", "n_tasks",  # the suite
        "benchmark_files",  # the tasks as loaded have a digest
        "prompts",  # digests of what the stacks say
        "recordings",  # other answers, or the same, which `not_independent` says
        "replicates", "lineage",
    }
)  # fmt: skip
_NO_FACT_OF_A_STUDY: Final = frozenset(
    {"study", "night", "benchmark", "stacks", "conditions", "replicates", "judge", "analysis", "limits", "prices"}
)
"""Names, the suite, the judge, which the protocol has or which are taken apart; and how much, how fast and with what statistics."""
_NO_FACT_OF_A_STACK: Final = frozenset({"name", "provider", "model", "prompt", "retry_prompt", "verifier"})
"""Its name, and what is taken apart; the prompt of a retry counts where there is one."""
_NO_FACT_OF_A_CONDITION: Final = frozenset({"name", "kind", "provider", "source"})
"""The same; an arm with a source repeats one draw, and is no run at all."""
_NO_FACT_OF_A_RECORDING: Final = frozenset({"name", "of", "path", "sha256", "order"})
"""Where it lies and which file it must be; in which order it was made is no part of what was asked."""
_NO_RULES_OF_GRADING: Final = frozenset({"request_normaliser", "oracle"})
"""How a request becomes its key, which nobody sends; the oracle is a model."""
_ASKED_FOR: Final = frozenset({"executor", "unsandboxed_providers"})
"""Of the verifier's options those that are no fact of the measurement: what the executor came to is one."""
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact in which two protocols differ."""

    aspect: Aspect
    text: str
    """In words, for instance ``temperature is 0.7 in BASE and 0.2 in NEW``."""


@dataclass(frozen=True, slots=True)
class Sameness:
    """What differs between two arms."""

    demands: tuple[str, ...]
    """Differences that demand a new calibration; empty where there are none."""
    changed: tuple[Aspect, ...]
    """The parts that they are in, each once."""
    allowed: tuple[str, ...]
    """Differences that were tested, or allowed by name."""


def same_measurement(base: Arm, new: Arm, *, allowed: Collection[Aspect] = ()) -> Sameness:
    """Differences between the frozen protocols of two arms, those beside model, prompt and what is allowed as demands."""
    demands: list[str] = []
    changed: dict[Aspect, None] = {}
    fine: list[str] = []
    for difference in differences(base, new):
        if difference.aspect in TESTED or difference.aspect in allowed:
            fine.append(f"{difference.aspect}: {difference.text}")
        else:
            demands.append(f"{difference.aspect} changed, so recalibrate: {difference.text}")
            changed[difference.aspect] = None
    return Sameness(tuple(demands), tuple(changed), tuple(fine))


def differences(base: Arm, new: Arm) -> list[Difference]:
    """Every fact of the measurement in which two arms differ."""
    one, other = _facts(base), _facts(new)
    found = []
    for aspect in Aspect:
        for name in sorted(one[aspect].keys() | other[aspect].keys()):
            was, now = one[aspect].get(name), other[aspect].get(name)
            if was != now:
                found.append(Difference(aspect, _words(name, was, now)))
    return found


def _words(name: str, was: Any, now: Any) -> str:
    shown = [f"{value}" for value in (was, now)]
    if any(len(text) > _LONGEST or "\n" in text for text in shown) or isinstance(was, dict | list) or isinstance(now, dict | list):
        return f"{name} differs"
    return f"{name} is {shown[0]} in BASE and {shown[1]} in NEW"


def _facts(arm: Arm) -> dict[Aspect, dict[str, Any]]:
    frozen, name = arm.frozen, arm.cells.stack
    stack = next(one for one in frozen.study["stacks"] if one["name"] == name)
    condition = _condition(arm)
    options = provider_options(stack, condition)
    of_model = _SIMULATED | _MODEL_OPTIONS if options.get("name") == "oracle" else _MODEL_OPTIONS
    feedback = {"retry_prompt": stack.get("retry_prompt")} if stack.get("retry") == "with-feedback" else {}
    rules = {"version of oracle": frozen.measurement.get("oracle")} if options.get("name") == "oracle" else {}
    return {
        Aspect.MODEL: {"model": stack["model"], **{key: options.get(key) for key in sorted(of_model)}, **rules, **_plugin(arm)},
        Aspect.PROMPT: {"prompt": stack.get("prompt")},
        Aspect.SUITE: {
            "benchmark": frozen.benchmark, "tasks (SHA-256)": frozen.benchmark_sha256, "limit": frozen.limit,
            "number of tasks": frozen.n_tasks,
        },
        Aspect.GRADER: _grader(frozen, stack),
        Aspect.JUDGE: {"judge": frozen.study.get("judge"), "providers": _of_judges(frozen)},
        Aspect.SAMPLING: {
            **{key: value for key, value in options.items() if key not in of_model},
            **feedback,
            "kind of condition": condition["kind"],
            **_but(stack, _NO_FACT_OF_A_STACK),
            **_but(condition, _NO_FACT_OF_A_CONDITION, "condition's "),
            **_but(frozen.study, _NO_FACT_OF_A_STUDY, "study's "),
            **_but({key: getattr(frozen, key) for key in type(frozen).model_fields}, _NO_FACT_OF_A_PROTOCOL, "protocol's "),
        },
    }  # fmt: skip


def _but(fields: dict[str, Any], left_out: frozenset[str], whose: str = "") -> dict[str, Any]:
    return {f"{whose}{key}": value for key, value in fields.items() if key not in left_out}


def _plugin(arm: Arm) -> dict[str, Any]:
    """The provider of another package, as it was pinned; its options stand with all others."""
    pinned = arm.frozen.providers.get(f"{arm.cells.stack}/{arm.cells.condition}", {})
    return _but(pinned, frozenset({"name", "options"}), "provider's ")


def _condition(arm: Arm) -> dict[str, Any]:
    return next(dict(one) for one in arm.frozen.study["conditions"] if one["name"] == arm.cells.condition)


def provider_options(stack: dict[str, Any], condition: dict[str, Any]) -> dict[str, Any]:
    """The provider's options as a frozen study says them: the condition's over the stack's; those of whom a recording is of."""
    base, over = dict(stack["provider"]), dict(condition.get("provider") or {})
    merged = over if over.get("name", base.get("name")) != base.get("name") else _merged(base, over)
    if merged.get("name") == "recording":
        merged = _but(merged, _NO_FACT_OF_A_RECORDING) | (merged.get("of") or {})
    options = merged.pop("options", None)
    if isinstance(options, dict):
        merged |= options
    if condition["kind"] == "temperature-zero":
        merged["temperature"] = 0.0
    return merged


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """With mappings inside, a plug-in's options and whose answers a recording holds, merged too."""
    merged = base | over
    for name in ("options", "of"):
        if isinstance(base.get(name), dict) and isinstance(over.get(name), dict):
            merged[name] = base[name] | over[name]
    return merged


def _grader(frozen: Protocol, stack: dict[str, Any]) -> dict[str, Any]:
    name = stack["name"]
    executor = {f"executor {key}": value for key, value in frozen.executors.get(name, {}).items()}
    rules = _but(frozen.measurement, _NO_RULES_OF_GRADING, "version of ")
    limits = {f"verifier.{key}": value for key, value in (stack.get("verifier") or {}).items() if key not in _ASKED_FOR}
    return {"checker": frozen.checkers.get(name), **executor, **rules, **limits}


def _of_judges(frozen: Protocol) -> dict[str, Any]:
    return {place: facts for place, facts in frozen.providers.items() if place.startswith("judge/")}


# --- independence ----------------------------------------------------------------------------------------------------------


def not_independent(base: Arm, new: Arm) -> list[str]:
    """Why the cells of two arms are no independent runs, in words; empty where nothing says so."""
    repeated = [
        f"{name} repeats one recorded run ({arm.kind}): its replicates say nothing about new runs"
        for name, arm in (("BASE", base), ("NEW", new))
        if arm.one_draw
    ]
    return [*_shared(base, new), *repeated]


def share_cells(one: Arm, other: Arm) -> bool:
    """Whether the plans of two arms say that they have cells in common, or are made of one recording."""
    return any(_shared(one, other))


def _shared(base: Arm, new: Arm) -> Iterator[str]:
    place_base, place_new = (f"{arm.cells.stack}/{arm.cells.condition}" for arm in (base, new))
    same_cells = base.cells.protocol == new.cells.protocol and place_base == place_new
    if same_cells:
        yield "BASE and NEW are the same cells: an arm against itself says nothing about a change (`evalnoise aa` says what it can)"
    elif place_base == place_new and _ancestors(base) & _ancestors(new):
        yield "one protocol inherits cells of the other, so that BASE and NEW share runs"
    recorded = [arm.frozen.recordings.get(place) for arm, place in ((base, place_base), (new, place_new))]
    # Pairing gives both the same answers, in one protocol too.
    if recorded[0] is not None and recorded[0] == recorded[1] and not same_cells:
        yield "BASE and NEW are made of the same recording"


def _ancestors(arm: Arm) -> set[str]:
    lineage = arm.frozen.lineage
    return {arm.cells.protocol, *arm.predecessors} | ({lineage.predecessor} if lineage else set())
