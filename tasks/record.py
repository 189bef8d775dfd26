"""Recording: the answers of replicates of a live condition, sealed in a folder of their own, for replays here or elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalnoise.canonical import restore_surrogates
from evalnoise.providers.recording import unknown_request
from evalnoise.recordings.recording import Recording
from evalnoise.recordings.row import COUNTS, FACTS, NOT_ANSWERED, Recorded
from evalnoise.store.recordings import RecordingFolder
from evalnoise.store.retries import retries
from evalnoise.store.store import SHORT, Store, StudyStore
from schemas.errors import StoreError
from schemas.protocol import Protocol
from schemas.recording import RecordingManifest
from schemas.records import Outcome, Response, ResponseClass
from schemas.tables import CALLS, GENERATIONS, PREFLIGHT
from tasks.workshop import Workshop

_FRESH = ("live", "temperature-zero")


def record_source(shop: Workshop, stack: str, condition: str) -> None:
    """Seal the recording that the condition replays, and hand it to the workshop. Sealing it again changes nothing."""
    source = shop.plan.study.condition(condition).source
    if source is None:
        raise ValueError(f"condition {condition} replays no condition of this study")
    folder, manifest = seal_condition(
        shop.store,
        shop.study_store,
        shop.plan.protocol,
        stack=stack,
        condition=source.condition,
        replicates=[source.replicate],
        suffix=_asked_again(shop.study_store, stack, source.condition, source.replicate),
    )
    name = f"recording {folder.path.name} ({manifest.digest[:SHORT]})"
    # Its one replicate is what every replicate of the replay repeats.
    recording = Recording(folder.read(), name, keyed=manifest.keyed, not_asked=frozenset(manifest.not_asked))
    shop.set_recording(stack, condition, recording)


def seal_condition(
    store: Store,
    study: StudyStore,
    protocol: Protocol,
    *,
    stack: str,
    condition: str,
    replicates: Sequence[int],
    name: str | None = None,
    suffix: str = "",
) -> tuple[RecordingFolder, RecordingManifest]:
    """Seal sealed replicates of a condition as a recording; their numbers become 0, 1, … in it.

    Args:
        store: Where the recording will lie.
        study: The protocol's folder.
        protocol: The protocol, for the versions of the rules that the rows were made by.
        stack: Name of the stack.
        condition: A condition that asked anew.
        replicates: Which, in the order that they get.
        name: The recording's name; None: one that says all of the above.
        suffix: What is added to such a name.

    Raises:
        StoreError: They are not sealed whole, or another recording has the name.
    """
    cells = [sealed_rows(study, protocol, stack, condition, replicate) for replicate in replicates]
    rows = [replace(row, replicate=number) for number, part in enumerate(cells) for row in part]
    gaps = list(replicates) != list(range(replicates[0], replicates[-1] + 1))
    ends = replicates if gaps or len(replicates) == 1 else (replicates[0], replicates[-1])
    numbers = ("." if gaps else "-").join(f"{number:04d}" for number in ends)
    named = name or f"{study.study}~{study.protocol[:SHORT]}~{stack}~{condition}~r{numbers}{suffix}"
    folder = RecordingFolder.named(store.root, named)
    unusable = [
        row["task_id"]
        for row in study.read(PREFLIGHT).to_pylist()
        if row["stack"] == stack and row["outcome"] != Outcome.PASS.value
    ]
    facts: dict[str, Any] = {"study": study.study, "protocol": study.protocol, "stack": stack, "condition": condition}
    manifest = folder.write(
        rows,
        source={"kind": "condition", **facts, "replicates": list(replicates)},
        # What was replayed from outside came in an order of its own.
        order="unknown" if f"{stack}/{condition}" in protocol.recordings else "time",
        not_asked=unusable,
        # 0: a protocol from before the rule had a number.
        request_normaliser=protocol.measurement.get("request_normaliser", 0),
        response_mapping=protocol.measurement.get("response_mapping", 0),
    )
    return folder, manifest


def sealed_rows(study: StudyStore, protocol: Protocol, stack: str, condition: str, replicate: int) -> list[Recorded]:
    """What one sealed replicate asked and got; without keys where it replayed answers of which nobody knows what was asked.

    Args:
        study: The protocol's folder.
        protocol: The protocol.
        stack: Name of the stack.
        condition: Name of the condition; one that replays has keys and texts, but no calls, so the rest stays empty.
        replicate: Which replicate.
    """
    _require_sealed(study, stack, condition, replicate)
    keys: dict[str, str | int] = {"stack": stack, "condition": condition, "replicate": replicate}
    calls: dict[tuple[str, int, str], Mapping[str, Any]] = {}
    for row in sorted(study.read(CALLS, **keys).to_pylist(), key=lambda row: row["sending"]):
        calls[row["task_id"], row["attempt"], row["request_key"]] = row
    model = next(str(one["model"]) for one in protocol.study["stacks"] if one["name"] == stack)
    found = []
    for row in study.read(GENERATIONS, **keys).to_pylist():
        key = row["request_key"]
        call = calls.get((row["task_id"], row["attempt"], key), {})
        found.append(
            Recorded(
                task_id=row["task_id"],
                replicate=replicate,
                attempt=row["attempt"],
                response=_response(row, call),
                # A replay of bare texts has a key that says no more than which task it is for.
                request_key="" if key == unknown_request(model, row["task_id"]).key() else key,
                request=call.get("request", ""),
                position=row["position"],
            )
        )
    return found


def _asked_again(study: StudyStore, stack: str, condition: str, replicate: int) -> str:
    """What tells the recording of a replicate, some of whose cells were asked again, from the one that was made before that."""
    prefix = f"measure~{stack}~{condition}~r{replicate:04d}~"
    if not any(shard.startswith(prefix) for retry in retries(study.manifest) for shard in retry.shards):
        return ""
    keys: dict[str, str | int] = {"stack": stack, "condition": condition, "replicate": replicate}
    digests = [file.sha256 for table in (CALLS, GENERATIONS) for file in study.files(table, **keys)]
    return f"~{hashlib.sha256(' '.join(digests).encode()).hexdigest()[:SHORT]}"


def fresh_conditions(protocol: Protocol) -> list[str]:
    """Names of a protocol's conditions that ask anew, and so can be recorded."""
    return [condition["name"] for condition in protocol.study["conditions"] if condition["kind"] in _FRESH]


def _require_sealed(study: StudyStore, stack: str, condition: str, replicate: int) -> None:
    prefix = f"measure~{stack}~{condition}~r{replicate:04d}~"
    planned = [shard for shard in study.manifest.planned if shard.startswith(prefix)]
    sealed = [shard for shard in planned if shard in study.manifest.live]
    if not planned or len(sealed) < len(planned):
        raise StoreError(
            f"study {study.study} ({study.protocol[:SHORT]}), stack {stack}, condition {condition}, replicate {replicate}",
            expected="a whole sealed replicate",
            found=f"{len(sealed)} of {len(planned)} shards" if planned else "none of that name",
            remedy="`evalnoise status` shows what is sealed; run the study to the end first.",
        )


def _response(generation: Mapping[str, Any], call: Mapping[str, Any]) -> Response:
    response_class = ResponseClass(generation["response_class"])
    told: dict[str, Any] = {name: call.get(name) or "" for name in FACTS} | {name: call.get(name) for name in COUNTS}
    return Response(
        text=restore_surrogates(generation["text"], escaped=generation["text_escaped"]),
        response_class=response_class,
        **told,
        from_cache=bool(call.get("from_cache")),
        headers=json.loads(call.get("headers") or "{}"),
        cost_usd=0.0,
        raw=call.get("response") or "",
        final=response_class in NOT_ANSWERED,
    )
