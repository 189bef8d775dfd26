"""Records that the middle floors exchange: tasks, requests, responses, references and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What a cell came to. ``UNMEASURED`` always has a reason and is never counted as a failure."""

    PASS = "pass"
    FAIL = "fail"
    UNMEASURED = "unmeasured"


class Verdict(StrEnum):
    """What a judge said of a frozen candidate."""

    PASS = "pass"
    FAIL = "fail"
    UNPARSED = "unparsed"


class TaskKind(StrEnum):
    """What a candidate is: a program that defines a function, a literal that predicts an output, or a text or number."""

    FUNCTION = "function"
    OUTPUT = "output"
    ANSWER = "answer"


class ResponseClass(StrEnum):
    """What kind of answer a provider gave."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    """The limit of tokens was reached, also by thinking that left none for an answer."""
    REFUSAL = "refusal"
    """The model declined."""
    FILTERED = "filtered"
    """A filter of the provider took the answer away, before or in the middle of it."""
    EMPTY = "empty"
    MALFORMED = "malformed"
    """Something came back, every time, that is no answer."""
    INFRASTRUCTURE = "infrastructure"
    """No answer: the service failed, or would not take the request."""


class Reason(StrEnum):
    """Why a cell or a verification ended as it did.

    From ``accepts-anything`` on the outcome is unmeasured; for ``truncated`` to ``malformed``, and ``provider``, the stack's policy
    says what it is.
    """

    PASS = "pass"
    MISMATCH = "mismatch"
    EXCEPTION = "exception"
    SYNTAX_ERROR = "syntax-error"
    MISSING_ENTRY_POINT = "missing-entry-point"
    NO_CANDIDATE = "no-candidate"
    TRUNCATED = "truncated"
    REFUSAL = "refusal"
    FILTERED = "filtered"
    EMPTY = "empty"
    MALFORMED = "malformed"
    CPU_LIMIT = "cpu-limit"
    WALL_LIMIT = "wall-limit"
    IDLE = "idle"
    OOM = "oom"
    OUTPUT_LIMIT = "output-limit"
    UNENCODABLE = "unencodable"
    EARLY_EXIT = "early-exit"
    SIGNAL = "signal"
    PROTOCOL_ERROR = "protocol-error"
    ACCEPTS_ANYTHING = "accepts-anything"
    REFERENCE_UNUSABLE = "reference-unusable"
    PROVIDER = "provider"
    REPLAY_MISS = "replay-miss"
    SOURCE_UNMEASURED = "source-unmeasured"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a benchmark."""

    id: str
    """The benchmark's own id, for instance ``HumanEval/0``. Any text; never a file name."""
    kind: TaskKind
    prompt: str
    """What the task says; the stack's prompt template wraps it."""
    reference: str
    """Canonical program (kind ``function``), expected output as source text (``output``), or expected answer (``answer``)."""
    entry_point: str
    """Name of the function that is called; empty for kind ``answer``."""
    code: str = ""
    """Kind ``output``: the program whose output is predicted. Kind ``function``: a preamble that the candidate may
    rely on (imports and helpers from the prompt), or empty."""
    inputs: tuple[str, ...] = ()
    """One wire-encoded list of positional arguments per call (`schemas.values.encode`)."""
    n_base_inputs: int = 0
    """The first so many inputs are the benchmark's original ones."""
    atol: float = 0.0
    """Absolute tolerance for floats in outputs; 0 means equal."""
    cluster: str = ""
    """Group of tasks that are not independent, or empty."""
    test: str = ""
    """For checker ``asserts``: a program that defines ``check(candidate)``, or plain asserts that call the entry point."""
    oracle: str = ""
    """Checker ``evalplus``: name of the task's special rule of comparison, or empty."""
    in_place: bool = False
    """Kind ``function``: what the arguments hold after the call is part of the result."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A data file as it was read: what the protocol pins."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A set of tasks in the benchmark's own order, with the files that they came from."""

    name: str
    tasks: tuple[Task, ...]
    sources: tuple[SourceFile, ...]
    sha256: str
    """Digest over the tasks as loaded, so that a changed loader is a changed data set too."""


@dataclass(frozen=True, slots=True)
class Response:
    """What came back from a provider for one call."""

    text: str
    """The answer's text; may hold lone surrogates."""
    response_class: ResponseClass
    finish_reason: str = ""
    refusal: str = ""
    response_id: str = ""
    served_model: str = ""
    fingerprint: str = ""
    reasoning: str = ""
    """The model's thinking, where the provider returns it apart from the answer."""
    input_tokens: int | None = None
    """All input tokens, cached ones too; None: not said."""
    output_tokens: int | None = None
    """All output tokens, those of reasoning too; None: not said."""
    cached_tokens: int | None = None
    """Of the input tokens, those read from the provider's prompt cache; None: not said."""
    cache_write_tokens: int | None = None
    """Of the input tokens, those written to the provider's prompt cache; None: not said."""
    reasoning_tokens: int | None = None
    """Of the output tokens, those of reasoning; None: not said."""
    from_cache: bool = False
    """Whether the server says that it did not compute this answer now but returned a stored one."""
    request_id: str = ""
    """The server's id of the exchange, from the headers."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers about rates and waits, and others that tell of the service; lower-case names."""
    cost_usd: float | None = None
    """US dollars; None when the price is not known (never 0 for unknown)."""
    raw: str = ""
    """The body as JSON text, as received."""
    error: str = ""
    """Classes ``infrastructure`` and ``malformed``: what failed."""
    final: bool = False
    """Class ``infrastructure``: whether the server refused this very request, so that asking again would not help."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What preflight learnt of a task by running its canonical solution (and mutants, for the oracle)."""

    task_id: str
    outcome: Outcome
    """``pass`` when the canonical solution can serve as the reference; otherwise ``unmeasured``."""
    reason: Reason
    detail: str = ""
    outputs: tuple[str, ...] = ()
    """What the checker compares with: wire-encoded canonical results, one per used input, for most."""
    inputs_used: tuple[int, ...] = ()
    """Indices into `Task.inputs` of the inputs that count; others were over a limit and were dropped."""
    n_dropped: int = 0
    """Inputs that the cap allows and that were dropped all the same."""
    mutant: str = ""
    """A program (or literal) that was shown to fail; empty where none was asked for or found."""
    known_bad: str = ""
    """Which known-bad candidate was shown to fail: ``wrong value``, or ``raises`` where every value is accepted."""
    cpu_seconds: float = 0.0
    """CPU time of the canonical solution over all used inputs."""
    input_seconds: tuple[float, ...] = ()
    """Its CPU time on each used input, for rules that limit each; of checker ``asserts``, the test's own; else empty."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of verifying one candidate."""

    outcome: Outcome
    reason: Reason
    detail: str = ""
    """What was expected and found, cut to a stated length; holds no measured number."""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    cpu_limit_seconds: float = 0.0
    load: float = 0.0
    """One-minute load average of the host when the check ended."""
    container: str = ""
    rechecks: tuple[dict[str, object], ...] = field(default=())
    """Every earlier run of the same candidate: reason, wall, CPU, load."""
    limit_share: float = 0.0
    """CPU as a share of its limit: the largest of the candidate's runs, or of its inputs where each is limited."""
    leftovers: tuple[str, ...] = ()
    """What the candidate left behind after it was wiped."""
    base_outcome: Outcome | None = None
    """Checker ``evalplus``: the outcome on the base inputs alone."""
    mutated_inputs: int | None = None
    """Inputs whose arguments the candidate changed; None where that was not looked at."""


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    """What runs the candidates; the protocol pins kind, Python and rootfs."""

    kind: str
    """``docker``, ``process``, or ``none`` where the checker runs nothing."""
    image_id: str
    """The engine's image id, or empty."""
    rootfs: str
    """Digest over the image's layers, or, for ``process``, over the interpreter's version and build."""
    python: str
    """Version of the Python that runs candidates, for instance ``3.11.7``."""
