"""The study: what a user writes in YAML. Every field has a docstring; the JSON Schema beside this file is made from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from schemas.model import Model, Slug
from schemas.probes import Probes
from schemas.provider import JudgeSpec, PluginProvider, ProviderSpec, RecordingProvider
from schemas.responses import MaxShare, Responses
from schemas.verifier import VerifierSpec

DEFAULT_PROMPT = (
    "{% if task.kind == 'output' %}Answer with the value alone, as a Python literal: no fence, no explanation.\n\n"
    "{{ task.prompt }}{% elif task.kind == 'answer' %}Answer the question below. You may explain before; the last line of your "
    "response is `Answer: ` and then the answer alone.\n\n{{ task.prompt }}{% else %}"
    "Solve the task below in Python. Answer with one fenced code block that holds a complete program which defines "
    "`{{ task.entry_point }}`; no tests, no explanation.\n\n{{ task.prompt }}{% endif %}"
)
DEFAULT_RETRY_PROMPT = (
    "Your answer was checked and did not pass: {{ reason }}{% if reason in ('exception', 'syntax-error') %} ({{ detail }})"
    "{% endif %}.\n\nAnswer the task again, whole, in the form that was asked for."
)
DEFAULT_JUDGE_PROMPT = (
    "{% if task.kind == 'function' %}A Python program was written for the task below. Decide whether it is correct for every valid "
    "input.{% else %}An answer was given to the task below. Decide whether it is correct.{% endif %} The first "
    "line of your answer is exactly `VERDICT: PASS` or `VERDICT: FAIL`, the second is `CONFIDENCE: n` with n from 0 to "
    "100; after that you may explain in a sentence or two.\n\nTask:\n{{ task.prompt }}\n\n{% if task.kind == 'function' %}"
    "Program:\n```python\n{{ candidate }}\n```{% else %}Answer:\n{{ candidate }}{% endif %}"
)


class StarterBenchmark(Model):
    """The tasks that ship with evalnoise."""

    name: Literal["starter"]
    """The kind of benchmark."""


class CruxevalBenchmark(Model):
    """CRUXEval, output prediction."""

    name: Literal["cruxeval"]
    """The kind of benchmark."""
    path: str
    """The task file, JSON Lines with code, input, output and id."""
    sha256: str | None = None
    """Digest that the file must have. Absent: it must hold the published tasks."""


class EvalplusBenchmark(Model):
    """HumanEval+ or MBPP+ from their official files."""

    name: Literal["evalplus"]
    """The kind of benchmark."""
    dataset: Literal["humaneval", "mbpp"]
    """Which of the two the file holds."""
    path: str
    """The official JSONL, plain or gzipped."""
    md5: str | None = None
    """Digest of the decompressed JSONL that the file must have. Default: that of the release named in the documentation."""


class JsonlBenchmark(Model):
    """One's own tasks; docs/guide/benchmarks.md describes the format."""

    name: Literal["jsonl"]
    """The kind of benchmark."""
    path: str
    """The task file, JSON Lines."""
    sha256: str | None = None
    """Digest that the file must have; unchecked when absent, recorded always."""


BenchmarkSpec = Annotated[StarterBenchmark | CruxevalBenchmark | EvalplusBenchmark | JsonlBenchmark, Field(discriminator="name")]


class Stack(Model):
    """A model, its prompt, its retry rule and its verifier."""

    name: Slug
    """The stack's name in every table."""
    provider: ProviderSpec
    """Where responses come from, and with which options."""
    model: str = Field(min_length=1, max_length=200)
    """The model's name as the provider knows it."""
    prompt: str = DEFAULT_PROMPT
    """Jinja template over `task` (id, kind, prompt, entry_point, code)."""
    max_tokens: int = Field(default=1024, ge=1)
    """Output tokens at most."""
    retry: Literal["none", "resample", "with-feedback"] = "none"
    """`resample`: a candidate that fails is replaced once by a fresh one. `with-feedback`: by one that is asked for with the first
    answer and what was wrong with it."""
    retry_prompt: str = DEFAULT_RETRY_PROMPT
    """Retry `with-feedback`: Jinja template of the second message, over `task`, `candidate`, `reason` and `detail`. `detail` may
    hold what was expected; the default tells it of exceptions alone, where it is their type and message."""
    responses: Responses = Responses()
    """What answers that are not complete come to."""
    verifier: VerifierSpec = VerifierSpec()
    """How candidates are checked."""


class CellSource(Model):
    """Which cells of this study a replay replays, or a reverify condition verifies again."""

    condition: Slug
    """A condition of kind `live` or `temperature-zero`; for `reverify` also of kind `replay`."""
    replicate: int = Field(default=0, ge=0)
    """The replicate whose responses are replayed, or whose final candidates are verified again."""


class Condition(Model):
    """An operating condition under which every stack is repeated."""

    name: Slug
    """The condition's name in every table."""
    kind: Literal["live", "temperature-zero", "replay", "reverify"]
    """`live`: the stack as it is. `temperature-zero`: the same at temperature 0. `replay`: recorded responses, so that only the
    stages after generation can vary. `reverify`: the candidates of the source, frozen, so that only verification can vary."""
    provider: dict[str, Any] = Field(default_factory=dict)
    """Overrides of the stack's provider options. Kind `reverify` calls nobody and takes none."""
    source: CellSource | None = None
    """Kind `replay`: the cells to record and replay; absent with provider `recording`, whose file is the recording. Kind
    `reverify`: the cells whose final candidates are verified again, one verification per replicate."""


class JudgeCondition(Model):
    """One way of judging the frozen candidates."""

    name: Slug
    """The judge condition's name in every table; differs from the names of conditions."""
    provider: JudgeSpec
    """Where verdicts come from, and with which options."""
    model: str = Field(min_length=1, max_length=200)
    """The model's name as the provider knows it."""
    prompt: str = DEFAULT_JUDGE_PROMPT
    """Jinja template over `task` and `candidate`; must ask for the verdict first."""
    max_tokens: int = Field(default=512, ge=1)
    """Output tokens at most."""
    truncated: Literal["unparsed", "read"] = "unparsed"
    """What an answer becomes that ended at the token limit: no verdict, or the one on its first line. Refusals, filtered, empty
    and malformed answers never are verdicts."""


class Judge(Model):
    """Repeated judging of one frozen candidate per task."""

    conditions: tuple[JudgeCondition, ...] = Field(min_length=1, strict=False)
    """The ways of judging."""
    repeats: int = Field(default=5, ge=1)
    """Verdicts per candidate and judge condition."""
    candidates: Slug | None = None
    """The replay condition whose replicate 0 supplies the candidates; absent: the study's only one."""
    probes: Probes | None = None
    """Candidates whose verdict is known, put to each judge condition before all else; absent: none. `{}`: the built-in ones."""


class Analysis(Model):
    """What is computed from the outcomes."""

    resamples: int = Field(default=20_000, ge=100, le=10_000_000)
    """Bootstrap resamples."""
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Two-sided error level of intervals and budgets."""
    power: float = Field(default=0.8, gt=0.5, lt=1)
    """Power that a rerun budget is for."""
    deltas: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(default=(0.02,), min_length=1, strict=False)
    """Differences of score that a budget should resolve; `noise_floor` shows the first."""
    seed: int = Field(default=0, ge=0)
    """Seed of the bootstrap and of the order of shards."""


class Limits(Model):
    """Bounds on the run. Only `shard_cells` is part of the protocol."""

    concurrency: int = Field(default=8, ge=1, le=1024)
    """Calls in flight at most, for each provider's address; fewer while the server is overloaded."""
    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Requests sent at most, for each provider's address; absent: no limit but what the server's headers say."""
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Tokens sent and asked for at most, for each provider's address: estimated before a request is sent, put right by its usage
    afterwards; absent: no limit but what the server's headers say."""
    patience: float = Field(default=600.0, ge=0, le=86_400)
    """Seconds for which an overloaded server is waited for, however often a request has been refused."""
    max_cost: float | None = Field(default=None, gt=0)
    """US dollars for the whole protocol, earlier runs too: no request is sent that could pass it. Needs a price for every model."""
    max_share: MaxShare = MaxShare()
    """Shares of answers that are not complete, above which the run stops."""
    shard_cells: int = Field(default=500, ge=1, le=100_000)
    """Cells per shard, and so per partition, at most."""


class Study(Model):
    """A noise study: one benchmark, some stacks, some conditions, R replicates."""

    study: Slug
    """The study's name, a folder in the store."""
    benchmark: BenchmarkSpec
    """The tasks."""
    stacks: tuple[Stack, ...] = Field(min_length=1, strict=False)
    """What is measured; every stack is run under every condition."""
    conditions: tuple[Condition, ...] = Field(min_length=1, strict=False)
    """How it is repeated."""
    replicates: int = Field(default=5, ge=1, le=10_000)
    """Full repetitions of the benchmark under each condition. One is allowed, but has no variance."""
    judge: Judge | None = None
    """Repeated judging of frozen candidates; absent: none."""
    analysis: Analysis = Analysis()
    """What is computed from the outcomes."""
    limits: Limits = Limits()
    """Bounds on the run."""
    prices: str | None = None
    """A file of prices in the place of the list prices that come with evalnoise; not part of the protocol."""
    night: Slug | None = None
    """Label of a nightly repetition; every night is a protocol of its own. The nightly flow sets it."""

    @model_validator(mode="after")
    def _names_and_references(self) -> Study:
        _unique([(s.name, ("stacks", i, "name")) for i, s in enumerate(self.stacks)])
        judges = self.judge.conditions if self.judge else ()
        _unique(
            [(c.name, ("conditions", i, "name")) for i, c in enumerate(self.conditions)]
            + [(j.name, ("judge", "conditions", i, "name")) for i, j in enumerate(judges)],
        )
        by_name = {c.name: c for c in self.conditions}
        for index, condition in enumerate(self.conditions):
            _check_condition(index, condition, by_name, self.replicates)
        for condition in self.conditions:
            for stack in self.stacks:
                self.provider(stack, condition)
        if self.judge:
            self.judged_condition()
        return self

    def provider(self, stack: Stack, condition: Condition) -> ProviderSpec:
        """The stack's provider under a condition: overrides merged, kind's rule applied. Raises LocatedError.

        A replay with a source makes its source's requests, so it inherits the source's options. A reverify condition makes none;
        its provider is the one that its candidates came from.
        """
        place = ("conditions", self.conditions.index(condition), "provider")
        base = stack.provider
        if condition.source is not None:
            base = self.provider(stack, self.condition(condition.source.condition))
        merged = merged_options(base, condition.provider)
        if condition.kind == "temperature-zero":
            merged = _cold(merged, condition.provider, place)
        try:
            spec: ProviderSpec = _PROVIDERS.validate_python(merged)
        except ValidationError as error:
            # The cause holds every wrong option, for a reader that can name them one by one.
            raise LocatedError(place, f"options of stack {stack.name}'s provider") from error
        fresh = condition.kind not in {"replay", "reverify"}
        if fresh and isinstance(spec, RecordingProvider) and spec.pairing == "fixed":
            # The mistake stands where it is written, which mostly is in the stack.
            written = place if "pairing" in condition.provider else ("stacks", self.stacks.index(stack), "provider")
            raise LocatedError((*written, "pairing"), "occurrence, because one recorded answer for all replicates is a replay")
        if condition.kind == "replay" and condition.source is None and spec.name != "recording":
            raise LocatedError((*place[:2], "source"), "a source, because the provider is not a recording")
        return spec

    def repeats_one_draw(self, stack: Stack, condition: Condition) -> bool:
        """Whether every replicate of the condition has the same answers or candidates, so that its score is a single draw."""
        if condition.source is not None:
            return True
        spec = self.provider(stack, condition)
        return isinstance(spec, RecordingProvider) and spec.pairing == "fixed"

    def condition(self, name: str) -> Condition:
        """The condition of that name. Raises KeyError."""
        return {c.name: c for c in self.conditions}[name]

    def judged_condition(self) -> Condition:
        """The replay condition whose candidates are judged. Raises LocatedError."""
        replays = [c for c in self.conditions if c.kind == "replay"]
        wanted = self.judge.candidates if self.judge else None
        found = [c for c in replays if wanted in (None, c.name)]
        if len(found) != 1:
            names = ", ".join(c.name for c in replays) or "none"
            expected = f"the name of one replay condition (there are: {names})"
            raise LocatedError(("judge", "candidates"), expected, [c.name for c in replays])
        return found[0]


def merged_options(base: ProviderSpec, overrides: dict[str, Any]) -> dict[str, Any]:
    """A provider's options with a condition's overrides, not validated yet."""
    if overrides.get("name", base.name) != base.name:
        # Options of one provider mean nothing to another, so a changed name replaces the options as a whole.
        return dict(overrides)
    merged = base.model_dump(exclude_unset=True) | overrides
    if isinstance(base, PluginProvider) and isinstance(overrides.get("options", {}), dict):
        merged["options"] = base.options | overrides.get("options", {})
    if isinstance(base, RecordingProvider) and base.of is not None and isinstance(overrides.get("of"), dict):
        merged["of"] = merged_options(base.of, {"name": base.of.name} | overrides["of"])
    return merged


def _cold(merged: dict[str, Any], given: dict[str, Any], place: tuple[str | int, ...]) -> dict[str, Any]:
    """Options at temperature 0. Raises LocatedError if the condition gives another."""
    recording = merged.get("name") == "recording"
    part = "of" if recording else "options"
    if isinstance(merged.get(part), dict):
        # A plug-in's options, and those of whose answers a recording holds, stand in a mapping of their own.
        below = given.get(part)
        given, place = below if isinstance(below, dict) else {}, (*place, part)
        if recording:
            return merged | {part: _cold(merged[part], given, place)}
    elif recording:
        return merged  # texts that were sampled at a temperature that nobody knows
    if given.get("temperature", 0) != 0:
        raise LocatedError((*place, "temperature"), "0 (the condition's kind is temperature-zero)")
    cold = {"temperature": 0.0}
    return merged | ({part: merged[part] | cold} if isinstance(merged.get(part), dict) else cold)


class LocatedError(ValueError):
    """An impossible value at a known place, for rules that span several fields."""

    def __init__(self, loc: tuple[str | int, ...], expected: str, known: Iterable[str] = ()) -> None:
        self.loc = loc
        self.expected = expected
        self.known = tuple(known)
        """Values that would be right, where a text is wrong: the nearest is named."""
        super().__init__(f"{'.'.join(map(str, loc))}: expected {expected}")


def _unique(names: list[tuple[str, tuple[str | int, ...]]]) -> None:
    seen: dict[str, str] = {}
    for name, place in names:
        if name in seen:
            raise LocatedError(place, f"a name of its own (this one is also at {seen[name]})")
        seen[name] = ".".join(map(str, place))


_SOURCES = {"replay": ("live", "temperature-zero"), "reverify": ("live", "temperature-zero", "replay")}
"""By the kind of a condition with a source: the kinds that the source may have."""


def _check_condition(index: int, condition: Condition, by_name: dict[str, Condition], replicates: int) -> None:
    place = ("conditions", index, "source")
    if condition.kind == "reverify" and condition.provider:
        raise LocatedError((*place[:2], "provider"), "no `provider`, because a reverify condition calls nobody")
    if condition.source is None:
        if condition.kind == "reverify":
            raise LocatedError(place, "a source, because a reverify condition verifies the candidates of another condition")
        return
    if condition.kind not in _SOURCES:
        raise LocatedError(place, "no `source`, because only replay and reverify conditions have one")
    fitting = [name for name, other in by_name.items() if other.kind in _SOURCES[condition.kind]]
    if condition.source.condition not in fitting:
        *kinds, last = _SOURCES[condition.kind]
        names = f"the name of a condition of kind {', '.join(kinds)} or {last} (there are: {', '.join(fitting) or 'none'})"
        raise LocatedError((*place, "condition"), names, fitting)
    if condition.source.replicate >= replicates:
        raise LocatedError((*place, "replicate"), f"a replicate below {replicates}")


_PROVIDERS: TypeAdapter[ProviderSpec] = TypeAdapter(ProviderSpec)
