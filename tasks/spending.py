"""Spending: the price of every model of a study, and what its protocol has cost so far."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.parquet as pq

from evalnoise.sending.ledger import journalled, journals
from evalnoise.sending.prices import Price, PriceTable, max_output, price_of, price_table
from evalnoise.sending.purse import Purse
from evalnoise.store.manifest import Manifest, SealedFile
from evalnoise.store.retries import open_retry, pending
from evalnoise.store.store import StudyStore
from schemas.errors import BudgetError
from schemas.provider import RecordingProvider
from schemas.study import Study
from schemas.tables import CALLS
from tasks.freeze import Plan

_SEALED_COLUMNS: Final = ["cost_usd", "request"]


@dataclass(frozen=True, slots=True)
class Buyer:
    """A stack under a condition, or under a judge condition, that makes fresh calls."""

    stack: str
    condition: str
    provider: str
    model: str
    price: Price | None
    """None: unknown."""


def buyers(study: Study, table: PriceTable) -> list[Buyer]:
    """Who makes fresh calls in a study, with their prices."""
    found = []
    for condition in study.conditions:
        for stack in study.stacks:
            spec = study.provider(stack, condition)
            if condition.source is None and not isinstance(spec, RecordingProvider):
                found.append(Buyer(stack.name, condition.name, spec.name, stack.model, price_of(spec, stack.model, table)))
    for judge in study.judge.conditions if study.judge else ():
        price = price_of(judge.provider, judge.model, table)
        found += [Buyer(stack.name, judge.name, judge.provider.name, judge.model, price) for stack in study.stacks]
    return found


def check_prices(plan: Plan) -> None:
    """Raise StudyError for a price table that cannot be read, BudgetError for a limit of cost that cannot be kept."""
    known = buyers(plan.study, price_table(plan.study.prices))
    unpriced = dict.fromkeys(f"{buyer.model} ({buyer.provider})" for buyer in known if buyer.price is None)
    if plan.study.limits.max_cost is not None and unpriced:
        raise BudgetError(
            "limits.max_cost",
            expected="a known price for every model, for without one the limit cannot be kept",
            found=f"none for {', '.join(unpriced)}",
            remedy="State input_usd_per_million and output_usd_per_million in its provider, or give a file of `prices`; "
            "docs/guide/costs.md says how. Or take limits.max_cost away.",
        )


def purse_of(plan: Plan, store: StudyStore, table: PriceTable) -> Purse:
    """What the protocol may still cost after all that earlier runs sent. Raises StoreError."""
    limit = plan.study.limits.max_cost
    if limit is None:
        return Purse()
    prices = {(buyer.stack, buyer.condition): buyer.price for buyer in buyers(plan.study, table)}
    spent = held = 0.0
    # One look at the manifest for both sources: a shard counts by one of them.
    manifest = store.manifest
    sealed = manifest.live.keys() - _asked_again(store, manifest)
    files = [file for shard in sealed for file in manifest.live[shard] if file.table == CALLS.name]
    for stack, condition, cost, most in (*_sealed(store, files, prices), *_journalled(store, sealed, prices)):
        if cost is not None:
            spent += cost
        elif most is not None:
            held += most
        else:
            raise _no_bound(stack, condition)
    return Purse(limit, spent=spent, held=held)


def _asked_again(store: StudyStore, manifest: Manifest) -> set[str]:
    """Sealed shards of a retry that was broken off: their journals hold what is sealed, and what the retry sent since."""
    retry = open_retry(manifest)
    return set(pending(manifest, retry)) & journals(store) if retry else set()


Prices = dict[tuple[str, str], Price | None]
Spent = tuple[str, str, float | None, float | None]
"""Stack, condition, what a sending cost, and what it can have cost at most."""


def _sealed(store: StudyStore, files: Iterable[SealedFile], prices: Prices) -> Iterator[Spent]:
    for file in files:
        keys = dict(part.split("=", 1) for part in file.path.split("/")[:-1] if "=" in part)
        stack, condition = unquote(keys["stack"]), unquote(keys["condition"])
        rows: list[dict[str, Any]] = pq.ParquetFile(store.path / file.path).read(columns=_SEALED_COLUMNS).to_pylist()
        for row in rows:
            known = row["cost_usd"] is not None
            size = len(row["request"].encode())
            output = None if known else max_output(json.loads(row["request"]).get("body", {}))
            yield stack, condition, row["cost_usd"], None if known else _most(prices.get((stack, condition)), size, output)


def _journalled(store: StudyStore, sealed: Collection[str], prices: Prices) -> Iterator[Spent]:
    for shard, sendings in journalled(store, sealed):
        _, stack, condition, *_ = shard.split("~")
        for sending in sendings:
            yield stack, condition, sending.cost_usd, _most(prices.get((stack, condition)), sending.size, sending.max_output)


def _most(price: Price | None, size: int, output: int | None) -> float | None:
    return None if price is None else price.most(size, output)


def _no_bound(stack: str, condition: str) -> BudgetError:
    return BudgetError(
        "limits.max_cost",
        expected="to know what earlier runs can have cost at most",
        found=f"a sending of {stack} under {condition} with neither a cost nor a limit of tokens",
        remedy="Take limits.max_cost away for this study, or bound the output with max_tokens.",
    )
