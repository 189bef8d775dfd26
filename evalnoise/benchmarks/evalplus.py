"""HumanEval+ and MBPP+ from their official JSON Lines, plain or gzipped."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from evalnoise.benchmarks.base import (
    INPUT_MAX_BYTES,
    SHARED_VARIABLE,
    Kinds,
    benchmark,
    check_fields,
    data_path,
    decompress,
    json_lines,
    read_source,
)
from evalnoise.benchmarks.restoration import restore_mbpp
from schemas.errors import DataError
from schemas.records import Benchmark, Task, TaskKind
from schemas.study import EvalplusBenchmark
from schemas.values import TooLargeError, UnencodableError, encode


@dataclass(frozen=True, slots=True)
class Release:
    """A release that is known by its digest."""

    benchmark: str
    """Name of the benchmark in rows."""
    version: str
    """The release's own version."""
    md5: str
    """MD5 of the decompressed JSON Lines, as the release's authors name it."""
    repository: str
    """Where the file is published, on GitHub."""


RELEASES: Mapping[Literal["humaneval", "mbpp"], Release] = {
    "humaneval": Release("humaneval+", "v0.1.10", "fe585eb4df8c88d844eeb463ea4d0302", "evalplus/humanevalplus_release"),
    "mbpp": Release("mbpp+", "v0.2.0", "ee43ecabebf20deef4bb776a405ac5b1", "evalplus/mbppplus_release"),
}
_FIELDS: Mapping[str, Kinds] = {
    "task_id": str,
    "prompt": str,
    "entry_point": str,
    "canonical_solution": str,
    "base_input": list,
    # Mbpp/793 has an empty object where all others have a list.
    "plus_input": (list, dict),
    "atol": (int, float),
}
_OPTIONAL: Mapping[str, Kinds] = {"test": str, "assertion": str, "contract": str}
_HUMANEVAL_ORACLES: Mapping[str, str] = {"find_zero": "find_zero"}
_MBPP_ORACLES: Mapping[str, str] = {
    "are_equivalent": "anything",
    "sum_div": "or_zero",
    "surface_Area": "pyramid_surface",
    "digit_distance_nums": "digit_distance",
    **dict.fromkeys(("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly"), "same_set"),
    **dict.fromkeys(("larg_nnum", "intersection_array", "find_dissimilar", "Diff"), "same_set"),
    **dict.fromkeys(("check_str", "text_match_three", "text_starta_endb"), "not_none"),
}
"""EvalPlus's special rules by the entry points that it names; checker `evalplus` says what each means."""


def load_evalplus(spec: EvalplusBenchmark) -> Benchmark:
    """The tasks of a HumanEval+ or MBPP+ file in file order. Raises DataError."""
    release = RELEASES[spec.dataset]
    remedy = (
        f"The file is public: releases of {release.repository} on GitHub, {release.version}. Let {SHARED_VARIABLE} name the folder "
        "whose data/evalplus/ holds it, or let the study's `benchmark.path` name the file."
    )
    path = data_path(spec.path)
    data, source = read_source(path, remedy=remedy)
    data = decompress(data, path, remedy=remedy)
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    wanted = (spec.md5 or release.md5).lower()
    if found != wanted:
        whose = "as the study says" if spec.md5 else f"that of {release.benchmark} {release.version}"
        raise DataError(
            str(path),
            expected=f"JSON Lines with the MD5 {wanted}, {whose}",
            found=f"MD5 {found} ({len(data)} bytes decompressed)",
            remedy=f"{remedy} If you mean another release, give its digest as `benchmark.md5`.",
        )
    make = _humaneval if spec.dataset == "humaneval" else _mbpp
    return benchmark(release.benchmark, _tasks(data, path, make, remedy), [source], remedy=remedy)


def _tasks(data: bytes, path: Path, make: Callable[[Mapping[str, Any], str, str], Task], remedy: str) -> Iterator[tuple[str, Task]]:
    for where, row in json_lines(data, path, remedy=remedy):
        check_fields(row, where, required=_FIELDS, optional=_OPTIONAL, remedy=remedy)
        yield where, make(row, where, remedy)


def _humaneval(row: Mapping[str, Any], where: str, remedy: str) -> Task:
    """The prompt ends in the function's head and docstring; the canonical solution is the body alone."""
    head = re.search(rf"^def {re.escape(row['entry_point'])}\b", row["prompt"], re.MULTILINE)
    if head is None:
        expected = f"a prompt that begins the function {row['entry_point']}"
        raise DataError(where, expected=expected, found="none", remedy=remedy)
    return replace(
        _task(row, _inputs(row, where, remedy), _HUMANEVAL_ORACLES),
        code=row["prompt"][: head.start()],
        reference=row["prompt"] + row["canonical_solution"],
        test=row.get("test", ""),
    )


def _mbpp(row: Mapping[str, Any], where: str, remedy: str) -> Task:
    """The prompt is a docstring of its own; the canonical solution is a whole program."""
    return replace(_task(row, _inputs(row, where, remedy, restore_mbpp), _MBPP_ORACLES), test=row.get("assertion", ""))


def _task(row: Mapping[str, Any], inputs: tuple[str, ...], oracles: Mapping[str, str]) -> Task:
    return Task(
        id=row["task_id"],
        kind=TaskKind.FUNCTION,
        prompt=row["prompt"],
        reference=row["canonical_solution"],
        entry_point=row["entry_point"],
        inputs=inputs,
        n_base_inputs=len(row["base_input"]),
        atol=float(row["atol"]),
        oracle=oracles.get(row["entry_point"], ""),
    )


def _inputs(
    row: Mapping[str, Any], where: str, remedy: str, restore: Callable[[str, list[Any]], list[Any]] | None = None
) -> tuple[str, ...]:
    """The base inputs and then the plus inputs, encoded."""
    encoded = []
    for number, arguments in enumerate((*row["base_input"], *row["plus_input"])):
        place = f"{where}, {row['task_id']}, input {number}"
        if not isinstance(arguments, list):
            expected, found = "a list of arguments", type(arguments).__name__
            raise DataError(place, expected=expected, found=found, remedy=remedy)
        try:
            restored = restore(row["task_id"], arguments) if restore else arguments
            encoded.append(encode(restored, max_bytes=INPUT_MAX_BYTES))
        except (UnencodableError, TooLargeError, TypeError, ValueError) as error:
            found = f"{type(error).__name__}: {error}"
            raise DataError(place, expected="arguments of known types", found=found, remedy=remedy) from None
    return tuple(encoded)
