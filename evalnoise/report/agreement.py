"""Agreement as blocks of named numbers: each judge or rater with itself, with the truth, with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from evalnoise.readers.counts import Judged, common_verdicts
from evalnoise.readers.ratings import NONE, Ints, Rater, Ratings
from evalnoise.stats.agreement.calibration import Bin, Calibration, calibration
from evalnoise.stats.agreement.confusion import confusion, majority
from evalnoise.stats.agreement.icc import icc, icc_f
from evalnoise.stats.agreement.kappa import Weights, agreement_table, cohen_kappa, pass_fail_table, two_graders
from evalnoise.stats.agreement.many import Metric, category_counts, fleiss_kappa, krippendorff_alpha
from evalnoise.stats.agreement.panel import Named, against, itself, judge_calibration, two_judges
from evalnoise.stats.estimate import Covers, Estimate
from evalnoise.stats.variance import variable_share

_MOST_RATERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Numbers about one thing."""

    about: str
    """What they are about; may hold hostile text."""
    kind: str
    """`itself`, `reference`, `pair` or `all`."""
    numbers: tuple[tuple[str, Estimate], ...]
    """Names and estimates; several of one name have intervals of several kinds."""
    table: Ints | None = None
    """Counts, (K, K): rows what was judged, columns the reference or the second judge; categories as in `categories`."""
    categories: tuple[str, ...] = ()
    """Of the table."""
    bins: tuple[Bin, ...] = ()
    """Reliability table of the stated confidences."""
    facts: tuple[tuple[str, int], ...] = ()
    """Counts: verdicts, those that could not be read, those that state a confidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How intervals are made."""

    seed: int
    """Seed of all resampling."""
    resamples: int
    """Resamples."""
    level: float
    """Confidence level."""

    def options(self) -> dict[str, Any]:
        """As keyword arguments."""
        return {"seed": self.seed, "resamples": self.resamples, "level": self.level}


def quoted(numbers: Sequence[tuple[str, Estimate]]) -> list[tuple[str, Estimate]]:
    """The numbers with one interval for each name and what it covers: of several, the first whose note warns of nothing.

    The percentile interval comes second in what the paper quotes and is narrower; it is taken where nothing speaks against it.
    """
    groups: dict[tuple[str, str], list[Estimate]] = {}
    for name, estimate in numbers:
        groups.setdefault((name, estimate.covers), []).append(estimate)
    chosen = {key: _to_quote(group) for key, group in groups.items()}
    defined = {name for (name, covers), estimate in chosen.items() if estimate.lo is not None}
    return [(name, one) for (name, covers), one in chosen.items() if one.lo is not None or covers or name not in defined]


def _to_quote(group: list[Estimate]) -> Estimate:
    plain = [one for one in group if "percentile" in one.method and not one.note and one.lo is not None]
    others = [one for one in group if "percentile" not in one.method and one.lo is not None]
    return (plain or others or group)[0]


# --- judges of a study ---------------------------------------------------------------------------------------------------


def judge_blocks(judged: Sequence[Judged], drawn: Drawn, *, whose: str = "execution") -> list[Block]:
    """Blocks of judge conditions, each for itself and against its reference, then of every two on the same candidates.

    Args:
        judged: Judge conditions.
        drawn: How intervals are made.
        whose: Whose word the reference is.
    """
    blocks = [block for one in judged for block in _judge(one, drawn, whose)]
    for first, second in combinations(judged, 2):
        if first.stack == second.stack:
            a, b = common_verdicts(first, second)
            found = two_judges(a, b, **drawn.options())
            about = f"{first.condition} and {second.condition} on candidates of {first.stack}, majority against majority"
            table = pass_fail_table(majority(a), majority(b))
            blocks.append(Block(about=about, kind="pair", numbers=tuple(found.named()), table=table, categories=("pass", "fail")))
    return blocks


def _judge(judged: Judged, drawn: Drawn, whose: str) -> Iterator[Block]:
    verdicts, options = judged.verdicts, drawn.options()
    passes, runs = (verdicts == 1).sum(axis=1), (verdicts != -1).sum(axis=1)
    name = f"{judged.condition} on candidates of {judged.stack}"
    facts = (("candidates", len(verdicts)), ("repeats", verdicts.shape[1]), ("unparsed", int((verdicts == -1).sum())))
    yield Block(about=f"{name}, with itself", kind="itself", numbers=tuple(itself(passes, runs, verdicts, **options)), facts=facts)
    found = judge_calibration(verdicts, judged.reference, judged.confidence, judged.stated, **options)
    numbers = (*against(verdicts, judged.reference, **options), *found.named())
    yield _against(
        f"{name}, majority against {whose}", majority(verdicts), judged.reference, numbers=numbers, found=found, drawn=drawn
    )


def _against(
    about: str, verdicts: Ints, reference: Ints, *, numbers: Sequence[tuple[str, Estimate]], found: Calibration, drawn: Drawn
) -> Block:
    table = confusion(verdicts, reference, level=drawn.level).table
    known = int((reference != NONE).sum())
    without = int(((verdicts == NONE) & (reference != NONE)).sum())
    facts = (
        ("items with a known answer", known),
        ("of them without a majority", without),
        ("verdicts", found.verdicts),
        ("with a confidence", found.stated),
    )
    return Block(
        about=about,
        kind="reference",
        numbers=tuple(numbers),
        table=table,
        categories=("pass", "fail"),
        bins=found.bins,
        facts=facts,
    )


# --- ratings of a file ---------------------------------------------------------------------------------------------------


def rating_blocks(ratings: Ratings, drawn: Drawn, *, reference: str | None = None) -> list[Block]:
    """Blocks of a file's raters: each with itself where it rated an item twice, with the reference, every two, and all together.

    Args:
        ratings: The file.
        drawn: How intervals are made.
        reference: The rater whose ratings are the truth; None: the file's own column, if it has one.
    """
    truth, judges, whose = ratings.reference, list(ratings.raters), "the reference"
    named = ratings.rater(reference) if reference is not None else None
    if named is not None:
        truth, judges, whose = _single(named, ratings), [one for one in judges if one is not named], named.name
    blocks = [_itself(rater, ratings, drawn) for rater in ratings.raters if _repeated(rater)]
    if truth is not None:
        blocks += [_with_truth(rater, ratings, truth, whose, drawn) for rater in judges]
    if 2 <= len(judges) <= _MOST_RATERS:
        blocks += [_pair(a, b, ratings, drawn) for a, b in combinations(judges, 2)]
    if len(judges) >= 2:
        blocks.append(_all(judges, ratings, drawn))
    return blocks


def _repeated(rater: Rater) -> bool:
    return bool(((rater.codes != NONE).sum(axis=1) >= 2).any())


def _single(rater: Rater, ratings: Ratings) -> Ints:
    """One code per item: the rating that was given most often, -1 for a tie and for none."""
    if ratings.binary:
        return majority(rater.codes)
    counts = category_counts(rater.codes, len(ratings.categories))
    most = counts.max(axis=1)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    return np.where((most > 0) & alone, counts.argmax(axis=1), NONE).astype(np.int64)


def _itself(rater: Rater, ratings: Ratings, drawn: Drawn) -> Block:
    codes, options = rater.codes, drawn.options()
    present = codes != NONE
    if ratings.binary:
        numbers = tuple(itself((codes == 1).sum(axis=1), present.sum(axis=1), codes, **options))
    else:
        numbers = tuple(_steadiness(codes, ratings, drawn))
    facts = (("items", int(present.any(axis=1).sum())), ("ratings", int(present.sum())))
    return Block(about=f"{rater.name}, with itself", kind="itself", numbers=numbers, facts=facts)


def _steadiness(codes: Ints, ratings: Ratings, drawn: Drawn) -> Named:
    """Of ratings in more than two categories."""
    present = codes != NONE
    counts = category_counts(codes, len(ratings.categories))
    # As a count of passes: an item that never changed its category has all its ratings in one.
    yield "flip_rate", variable_share(counts.max(axis=1), counts.sum(axis=1), level=drawn.level)
    yield from _alphas(codes, ratings, drawn)
    if ratings.values is not None:
        numbers = np.where(present, np.array(ratings.values)[codes], 0.0)
        yield "icc", icc(numbers, present, **drawn.options())
        if present.all() and numbers.shape[1] >= 2:
            yield "icc", icc_f(numbers, level=drawn.level)


def _alphas(codes: Ints, ratings: Ratings, drawn: Drawn) -> Named:
    present, options = codes != NONE, drawn.options()
    yield "alpha", krippendorff_alpha(codes, present, metric=Metric.NOMINAL, **options)
    if ratings.values is not None:
        numbers = np.where(present, np.array(ratings.values)[codes], 0.0)
        yield "alpha_ordinal", krippendorff_alpha(numbers, present, metric=Metric.ORDINAL, **options)
        yield "alpha_interval", krippendorff_alpha(numbers, present, metric=Metric.INTERVAL, **options)


def _with_truth(rater: Rater, ratings: Ratings, truth: Ints, whose: str, drawn: Drawn) -> Block:
    about = f"{rater.name} against {whose}"
    if ratings.binary:
        found = calibration(rater.codes, truth, rater.confidence, rater.stated, **drawn.options())
        numbers = (*against(rater.codes, truth, **drawn.options()), *(found.named() if found.stated else ()))
        return _against(about, majority(rater.codes), truth, numbers=numbers, found=found, drawn=drawn)
    return _two(about, "reference", (_single(rater, ratings), truth), ratings, drawn)


def _pair(first: Rater, second: Rater, ratings: Ratings, drawn: Drawn) -> Block:
    return _two(f"{first.name} and {second.name}", "pair", (_single(first, ratings), _single(second, ratings)), ratings, drawn)


def _two(about: str, kind: str, codes: tuple[Ints, Ints], ratings: Ratings, drawn: Drawn) -> Block:
    size = len(ratings.categories)
    table = pass_fail_table(*codes) if ratings.binary else agreement_table(*codes, max(size, 2))
    numbers = list(two_graders(table, **drawn.options()).named())
    if size > 2:
        numbers = [(name, estimate) for name, estimate in numbers if name not in {"prevalence", "bias"}]
    if ratings.values is not None and size > 2:
        for weights in (Weights.LINEAR, Weights.QUADRATIC):
            weighted = cohen_kappa(table, weights=weights, places=ratings.values, **drawn.options())
            numbers.append((f"kappa_{weights}", weighted))
    categories = ("pass", "fail") if ratings.binary else ratings.categories
    return Block(about=about, kind=kind, numbers=tuple(numbers), table=table if size == len(table) else None, categories=categories)


def _all(raters: Sequence[Rater], ratings: Ratings, drawn: Drawn) -> Block:
    codes = np.column_stack([_single(rater, ratings) for rater in raters])
    kappa = fleiss_kappa(category_counts(codes, len(ratings.categories)), **drawn.options())
    numbers = (("fleiss_kappa", kappa), *_alphas(codes, ratings, drawn))
    return Block(about=f"all {len(raters)} raters", kind="all", numbers=numbers, facts=(("items", len(codes)),))


# --- as plain values -----------------------------------------------------------------------------------------------------


def as_plain(block: Block) -> dict[str, Any]:
    """The block for JSON, all intervals in it."""
    return {
        "about": block.about,
        "kind": block.kind,
        **{name.replace(" ", "_"): count for name, count in block.facts},
        "numbers": [{"name": name, **asdict(estimate)} for name, estimate in block.numbers],
        "table": None if block.table is None else {"categories": list(block.categories), "counts": block.table.tolist()},
        "reliability": [asdict(one) for one in block.bins],
    }


def with_labels(judged: Judged, labels: dict[int, int]) -> Judged:
    """The judge on the candidates that have a label, which takes the place of the executed reference.

    Args:
        judged: The judge.
        labels: By the task's place in the benchmark: 1 pass, 0 fail.
    """
    chosen = np.array([place in labels for place in judged.positions.tolist()], dtype=bool)
    kept = replace(
        judged,
        verdicts=judged.verdicts[chosen],
        confidence=judged.confidence[chosen],
        stated=judged.stated[chosen],
        positions=judged.positions[chosen],
    )
    return replace(kept, reference=np.array([labels[place] for place in kept.positions.tolist()], dtype=np.int64))


def labels_of(ratings: Ratings) -> dict[str, int]:
    """One label per item, 1 or 0: the majority over all raters of a file of pass and fail. Ties are left out."""
    codes = majority(np.hstack([rater.codes for rater in ratings.raters]))
    return {item: int(code) for item, code in zip(ratings.items, codes, strict=True) if code != NONE}


def covers_words(covers: str) -> str:
    """What an interval covers, in words."""
    return {Covers.POPULATION: "new items", Covers.BENCHMARK: "new runs"}.get(Covers(covers), "")
