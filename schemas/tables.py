"""Arrow tables: every column with its unit and its meaning, declared once. Partition columns live in paths, not in files."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from schemas.columns import Column, Table

_S, _I, _F, _B = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_CELL = ("stack", "condition", "replicate")

_LINEAGE = (
    Column("study", _S, "Name of the study."),
    Column("protocol", _S, "SHA-256 of the frozen protocol that the row was made under."),
    Column("benchmark", _S, "Name of the benchmark."),
)
_TASK = Column("task_id", _S, "The benchmark's own id of the task.")

TASKS = Table(
    "tasks",
    "task of a benchmark in a protocol",
    (),
    ("position",),
    (
        *_LINEAGE,
        _TASK,
        Column("position", _I, "Place in the benchmark's order, from 0."),
        Column("kind", _S, "function, output or answer."),
        Column("prompt", _S, "The task's own text, before the stack's template."),
        Column("reference", _S, "Canonical program, or the expected output as source."),
        Column("entry_point", _S, "Function that is called."),
        Column("cluster", _S, "Group of dependent tasks, or empty."),
        Column("n_inputs", _I, "Inputs that the benchmark offers."),
    ),
)

PREFLIGHT = Table(
    "preflight",
    "stack x task: the canonical solution through the stack's verifier",
    (),
    ("stack", "position"),
    (
        *_LINEAGE,
        Column("stack", _S, "Name of the stack."),
        _TASK,
        Column("position", _I, "Place in the benchmark's order, from 0."),
        Column("outcome", _S, "pass: the task can be measured; unmeasured: it cannot, and no call is made for it."),
        Column("reason", _S, "Why."),
        Column("detail", _S, "More of why."),
        Column("outputs", pa.list_(_S), "What the checker compares with, mostly wire-encoded canonical results."),
        Column("inputs_used", pa.list_(_I), "Indices of the inputs that count; others were over a limit."),
        Column("n_dropped", _I, "Inputs within the verifier's cap that were dropped, because an output was over a limit."),
        Column("mutant", _S, "A candidate that was shown to fail, for the oracle; else empty."),
        Column("known_bad", _S, "Known-bad candidate that failed: wrong value, or raises where every plain value passes."),
        Column("cpu_seconds", _F, "CPU time of the canonical solution, seconds.", measured=True),
        Column("input_seconds", pa.list_(_F), "The same per used input, where each is limited; or of the test.", measured=True),
    ),
)

CALLS = Table(
    "calls",
    "provider call sent: every sending of a request, failed ones too",
    _CELL,
    ("position", "attempt", "sending"),
    (
        *_LINEAGE,
        _TASK,
        Column("position", _I, "Place of the task in the benchmark's order, from 0."),
        Column("attempt", _I, "0, or 1 for the retry rule's; of a probe, its number."),
        Column("sending", _I, "Which sending of this request, from 0; the last one's answer counts."),
        Column("answered", _B, "False: the run was killed before an answer came; it may have been billed."),
        Column("purpose", _S, "generate, judge or probe."),
        Column("provider", _S, "Provider that was called."),
        Column("model", _S, "Model that was asked for."),
        Column("request_key", _S, "SHA-256 of the normalised request."),
        Column("request", _S, "The normalised request, canonical JSON."),
        Column("response_class", _S, "complete, truncated, refusal, filtered, empty, malformed or infrastructure."),
        Column("finish_reason", _S, "As the provider said it."),
        Column("served_model", _S, "Model that answered, as the provider said it."),
        Column("input_tokens", _I, "Billed input tokens, cached ones too; null: unknown.", nullable=True),
        Column("output_tokens", _I, "Billed output tokens, reasoning too; null: unknown.", nullable=True),
        Column("cached_tokens", _I, "Of the input tokens, those read from a prompt cache; null: not said.", nullable=True),
        Column("cache_write_tokens", _I, "Of the input tokens, those written to a prompt cache; null: not said.", nullable=True),
        Column("reasoning_tokens", _I, "Of the output tokens, those of reasoning; null: not said.", nullable=True),
        Column("cost_usd", _F, "US dollars by the prices of the run; null: unknown, never 0.", nullable=True, measured=True),
        Column("prices", _S, "Where prices came from: study, or a table's date and digest; empty: no price known.", measured=True),
        Column("error", _S, "What failed; else empty.", measured=True),
        Column("response_id", _S, "The provider's id of the answer.", measured=True),
        Column("request_id", _S, "The provider's id of the exchange.", measured=True),
        Column("fingerprint", _S, "The provider's fingerprint of its system.", measured=True),
        Column("from_cache", _B, "Whether the server says that it returned a stored answer.", measured=True),
        Column("refusal", _S, "What the provider gave as its refusal; else empty.", measured=True),
        Column("reasoning", _S, "The model's thinking, where it is returned apart from the answer.", measured=True),
        Column("headers", _S, "Response headers about rates, waits and the service, JSON object.", measured=True),
        Column("response", _S, "The body as received, JSON text.", measured=True),
        Column("sent_at", pa.timestamp("us", "UTC"), "When the call was sent.", measured=True),
        Column("answered_at", pa.timestamp("us", "UTC"), "When it was answered; null: it was not.", nullable=True, measured=True),
    ),
)

GENERATIONS = Table(
    "generations",
    "cell x attempt",
    _CELL,
    ("position", "attempt"),
    (
        *_LINEAGE,
        _TASK,
        Column("position", _I, "Place of the task in the benchmark's order, from 0."),
        Column("attempt", _I, "0, or 1 for the retry rule's."),
        Column("request_key", _S, "SHA-256 of the normalised request."),
        Column("occurrence", _I, "Which recorded occurrence answered; for fresh calls the replicate."),
        Column("response_class", _S, "complete, truncated, refusal, filtered, empty, malformed or infrastructure."),
        Column("text", _S, "The answer; lone surrogates are written as backslash escapes where `text_escaped`."),
        Column("text_escaped", _B, "Whether the text held lone surrogates."),
        Column("text_sha256", _S, "SHA-256 of the text as received (UTF-8, surrogatepass)."),
        Column("candidate", _S, "What was extracted and verified; null: nothing could be.", nullable=True),
        Column("candidate_sha256", _S, "SHA-256 of the candidate; null without one.", nullable=True),
        Column("extraction_rule", _S, "The extractor's rule that fired."),
    ),
)

EXECUTIONS = Table(
    "executions",
    "verification of a candidate",
    _CELL,
    ("position", "attempt"),
    (
        *_LINEAGE,
        _TASK,
        Column("position", _I, "Place of the task in the benchmark's order, from 0."),
        Column("attempt", _I, "Attempt that made the candidate; under reverify, the source cell's."),
        Column("candidate_sha256", _S, "SHA-256 of the candidate."),
        Column("outcome", _S, "pass, fail or unmeasured."),
        Column("reason", _S, "Why: docs/reference/reasons.md."),
        Column("detail", _S, "First input that differs, expected and found, or the exception; cut."),
        Column("base_outcome", _S, "Checker evalplus: outcome on the base inputs alone; else null.", nullable=True),
        Column("mutated_inputs", _I, "Inputs whose arguments the candidate changed; null: not looked at.", nullable=True),
        Column("checker", _S, "Checker that compared."),
        Column("executor", _S, "docker, process or none."),
        Column("rootfs", _S, "Digest of the image's layers, or of the interpreter for processes."),
        Column("python", _S, "Python version that ran the candidate."),
        Column("image_id", _S, "The engine's image id, or empty.", measured=True),
        Column("wall_seconds", _F, "Wall time, seconds.", measured=True),
        Column("cpu_seconds", _F, "CPU time of the process tree, seconds.", measured=True),
        Column("cpu_limit_seconds", _F, "CPU limit in force, seconds.", measured=True),
        Column("limit_share", _F, "CPU as a share of its limit, the largest of the candidate's runs or inputs.", measured=True),
        Column("peak_memory_bytes", _I, "Peak resident memory, bytes.", measured=True),
        Column("load", _F, "One-minute load average of the host.", measured=True),
        Column("container", _S, "Container that ran it, or empty.", measured=True),
        Column("rechecks", _S, "Earlier runs of the same candidate, JSON list.", measured=True),
        Column("leftovers", pa.list_(_S), "What the candidate left behind after it was wiped.", measured=True),
    ),
)

OUTCOMES = Table(
    "outcomes",
    "cell",
    _CELL,
    ("position",),
    (
        *_LINEAGE,
        _TASK,
        Column("position", _I, "Place of the task in the benchmark's order, from 0."),
        Column("outcome", _S, "pass, fail or unmeasured."),
        Column("reason", _S, "Why; of the last attempt. Under reverify, of the source cell's final candidate."),
        Column("response_class", _S, "Class of the last attempt's answer, whatever came of it; empty: nothing was generated."),
        Column("score", _F, "Score in [0, 1]; null: unmeasured.", nullable=True),
        Column("attempts", _I, "Attempts made; 0 where nothing was generated, as under reverify."),
        Column("candidate_sha256", _S, "Digest of the final candidate; null without one.", nullable=True),
    ),
)

VERDICTS = Table(
    "verdicts",
    "judge condition x task x repeat, on a frozen candidate",
    ("condition", "repeat"),
    ("stack", "position"),
    (
        *_LINEAGE,
        Column("stack", _S, "Stack whose candidate was judged."),
        _TASK,
        Column("position", _I, "Place of the task in the benchmark's order, from 0."),
        Column("candidate_sha256", _S, "SHA-256 of the frozen candidate."),
        Column("verdict", _S, "pass, fail or unparsed."),
        Column("confidence", _F, "Stated confidence, 0 to 100; null: not stated.", nullable=True),
        Column("reason", _S, "Verdict unparsed: why, for an answer that is not complete its class; else empty."),
        Column("response_class", _S, "Class of the judge's answer."),
        Column("stated", _S, "What the text says, also where its class makes the verdict unparsed: pass, fail or unparsed."),
        Column("text", _S, "The judge's answer."),
        Column("request_key", _S, "SHA-256 of the normalised request."),
        Column("reference_outcome", _S, "What execution said of the same candidate."),
    ),
)

PROBES = Table(
    "probes",
    "judge condition x probe: a candidate whose verdict is known",
    (),
    ("condition", "number"),
    (
        *_LINEAGE,
        Column("stack", _S, "Stack whose preflight names the known-good solution."),
        Column("condition", _S, "Judge condition."),
        _TASK,
        Column("position", _I, "Place of the task in the benchmark's order, from 0."),
        Column("number", _I, "Number of the probe in the study, from 1; the attempt of its calls."),
        Column("probe", _S, "empty, refusal, known-good, or a name of the study's own."),
        Column("candidate", _S, "The text that was judged."),
        Column("expected", _S, "pass; or fail: the verdict must not be pass."),
        Column("verdict", _S, "pass, fail or unparsed."),
        Column("sound", _B, "Whether the verdict is as it must be."),
        Column("required", _B, "Whether the study says that a wrong verdict blocks."),
        Column("reason", _S, "Verdict unparsed: why; else empty."),
        Column("response_class", _S, "Class of the judge's answer."),
        Column("text", _S, "The judge's answer."),
        Column("request_key", _S, "SHA-256 of the normalised request."),
    ),
)

RECORDED = Table(
    "recorded",
    "recorded response: one cell's one attempt",
    (),
    ("position", "task_id", "replicate", "attempt"),
    (
        Column("request_key", _S, "SHA-256 of the normalised request; empty where nobody knows what was asked."),
        Column("occurrence", _I, "Which of the recorded responses to this request, from 0; without a key, to this task."),
        _TASK,
        Column("position", _I, "Place of the task in the benchmark's order, or in the imported file, from 0."),
        Column("replicate", _I, "Replicate that asked, counted from 0 in this recording; the manifest names the source's."),
        Column("attempt", _I, "0, or 1 for the retry rule's."),
        Column("request", _S, "The normalised request, canonical JSON; empty where unknown."),
        Column("response_class", _S, "complete, truncated, refusal, filtered, empty, malformed or infrastructure."),
        Column("finish_reason", _S, "As the provider said it."),
        Column("refusal", _S, "What the provider gave as its refusal; else empty."),
        Column("text", _S, "The answer."),
        Column("reasoning", _S, "The model's thinking, where it was returned apart from the answer."),
        Column("response_id", _S, "The provider's id of the answer."),
        Column("request_id", _S, "The provider's id of the exchange."),
        Column("served_model", _S, "Model that answered, as the provider said it."),
        Column("fingerprint", _S, "The provider's fingerprint of its system."),
        Column("input_tokens", _I, "Input tokens, cached ones too; null: unknown.", nullable=True),
        Column("output_tokens", _I, "Output tokens, reasoning too; null: unknown.", nullable=True),
        Column("cached_tokens", _I, "Of the input tokens, those read from a prompt cache; null: not said.", nullable=True),
        Column("cache_write_tokens", _I, "Of the input tokens, those written to a prompt cache; null: not said.", nullable=True),
        Column("reasoning_tokens", _I, "Of the output tokens, those of reasoning; null: not said.", nullable=True),
        Column("from_cache", _B, "Whether the server said that it returned a stored answer."),
        Column("headers", _S, "Response headers about rates, waits and the service, JSON object."),
        Column("response", _S, "The body as received; empty where it is not known."),
        Column("error", _S, "Classes infrastructure and malformed: what failed; else empty."),
        Column("escaped", pa.list_(_S), "Columns of this row in which lone surrogates are written as backslash escapes."),
    ),
)
"""A recording's one table. It lies under recordings/, not under a study, so it is not one of `TABLES`."""

_CONDITION = (
    Column("stack", _S, "Name of the stack."),
    Column("condition", _S, "Name of the condition or judge condition."),
)
_METHOD = (
    Column("method", _S, "How value and interval were made."),
    Column("covers", _S, "benchmark: these tasks, new runs. population: new tasks too. Empty without an interval or a test."),
    Column("level", _F, "Confidence level; null without an interval.", nullable=True),
    Column("n_tasks", _I, "Tasks that entered."),
    Column("n_replicates", _I, "Replicates per task (the smallest, if they differ)."),
    Column("seed", _I, "Seed; null: no randomness.", nullable=True),
    Column("resamples", _I, "Bootstrap resamples; null: none.", nullable=True),
    Column("undefined", _S, "Why value or interval is null; empty otherwise."),
    Column("note", _S, "When not to trust it; empty otherwise."),
)

ESTIMATES = Table(
    "estimates",
    "stack x condition x estimate x method",
    (),
    ("stack", "condition", "estimate", "method", "covers"),
    (
        *_LINEAGE,
        *_CONDITION,
        Column("estimate", _S, "score, score_run_sd, w, variable_tasks, variable_share, n_unmeasured, component_task, …"),
        Column("value", _F, "The estimate; null: undefined.", nullable=True),
        Column("lo", _F, "Lower end; null: none.", nullable=True),
        Column("hi", _F, "Upper end; null: none.", nullable=True),
        *_METHOD,
    ),
)

CONTRASTS = Table(
    "contrasts",
    "pair of conditions of a stack, or of stacks under a condition, x estimate x method",
    (),
    ("stack", "stack_b", "condition_a", "condition_b", "estimate", "method"),
    (
        *_LINEAGE,
        Column("stack", _S, "Name of the stack; of two stacks the minuend's."),
        Column("stack_b", _S, "Stack of the subtrahend; the same within a stack. Null in rows older than this column: the same."),
        Column("condition_a", _S, "Minuend."),
        Column("condition_b", _S, "Subtrahend; the same between two stacks."),
        Column(
            "estimate",
            _S,
            "score or w; of two judge conditions judges_bias, judges_kappa or judges_pabak; of two stacks score, and the standard"
            " errors of its difference se_total, se_data and se_prediction.",
        ),
        Column("value", _F, "a minus b, untruncated, or the standard error; null: undefined.", nullable=True),
        Column("lo", _F, "Lower end; null: none.", nullable=True),
        Column("hi", _F, "Upper end; null: none.", nullable=True),
        Column("se", _F, "Standard error of the difference; null: the method has none, or it is 0.", nullable=True),
        Column("p_value", _F, "Two-sided p-value of no difference; null: not computed or undefined.", nullable=True),
        Column(
            "p_adjusted",
            _F,
            "Holm's, of this row's p_value (in the headline the paired t's), over the pairs of stacks of this condition and method;"
            " null: no family.",
            nullable=True,
        ),
        Column("finding", _S, "real, not resolved or proves nothing; empty: a standard error."),
        Column("headline", _B, "Whether this is the contrast's one row that a run's summary quotes; the others are other methods."),
        Column("sentence", _S, "The finding in words."),
        *_METHOD,
    ),
)

BUDGETS = Table(
    "budgets",
    "stack x condition x delta",
    (),
    ("stack", "condition", "delta"),
    (
        *_LINEAGE,
        *_CONDITION,
        Column("delta", _F, "Difference of score to resolve."),
        Column("first_delta", _B, "Whether it is the study's first delta, the one that noise_floor shows."),
        Column("alpha", _F, "Two-sided error level."),
        Column("power", _F, "Power."),
        Column("w", _F, "Within-task variance that the budget is for; null: undefined.", nullable=True),
        Column("runs", _I, "Runs per arm; null: undefined.", nullable=True),
        Column("runs_lo", _I, "Budget at the lower end of the interval of w to quote, which is `method`'s.", nullable=True),
        Column("runs_hi", _I, "Budget at its upper end.", nullable=True),
        Column("w_cautious", _F, "One-sided 90 % Gaffke limit of w, at most 1/4; null: undefined.", nullable=True),
        Column("runs_cautious", _I, "Cautious budget: runs per arm at that limit.", nullable=True),
        Column("recommended", _I, "Runs to plan with: the cautious one under 10 runs (median) or variable tasks.", nullable=True),
        Column("mde", _F, "Minimum detectable effect at these runs of each task; null: nothing varied.", nullable=True),
        *_METHOD,
    ),
)

CHECKS = Table(
    "checks",
    "finding about the study",
    (),
    ("check", "stack", "condition", "sentence"),
    (
        *_LINEAGE,
        Column("check", _S, "Short name of the check."),
        Column("stack", _S, "Stack that it is about, or empty."),
        Column("condition", _S, "Condition that it is about, or empty."),
        Column("severity", _S, "info, warning or error."),
        Column("blocks", _B, "Whether the study's numbers must not be used for a decision."),
        Column("sentence", _S, "The finding in words."),
        Column("value", _F, "The number behind it; null: none.", nullable=True),
    ),
)

TABLES: Final = {
    t.name: t
    for t in (
        TASKS, PREFLIGHT, CALLS, GENERATIONS, EXECUTIONS, OUTCOMES, VERDICTS, PROBES, ESTIMATES, CONTRASTS, BUDGETS, CHECKS,
    )
}  # fmt: skip
