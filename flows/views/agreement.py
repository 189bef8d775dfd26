"""How `evalnoise agreement` prints: a block of lines for each judge, rater or pair, with notes under the numbers they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalnoise.report.agreement import Block, covers_words, quoted
from evalnoise.report.numbers import interval, number
from evalnoise.stats.agreement.kappa import landis_koch
from evalnoise.stats.estimate import Estimate
from flows.cli_errors import printable

_WORDS = {"kappa", "fleiss_kappa", "kappa_linear", "kappa_quadratic"}
_FOOTNOTES = {
    "prevalence": "prevalence is an index: share of passes minus share of fails, from -1 to 1.",
    "flip_rate": "flip_rate is the share of items that ever flip, not the chance that one verdict does: that is in `components`.",
}
_MOST_CATEGORIES = 8
_LONGEST_NAME = 16


def lines(about: dict[str, Any], blocks: Sequence[Block]) -> Iterator[str]:
    """The lines of a report."""
    yield _head(about)
    words, defined = False, set[str]()
    for block in blocks:
        yield ""
        yield from _block(block)
        words = words or any(name in _WORDS and one.value is not None for name, one in block.numbers)
        defined |= {name for name, one in block.numbers if one.value is not None}
    if words:
        yield ""
        yield "Words after a kappa are Landis and Koch's convention of 1977, no finding. Where one verdict is rare, kappa is low"
        yield "even of good graders: read prevalence, false accepts and false rejects beside it."
    if footnotes := [text for name, text in _FOOTNOTES.items() if name in defined]:
        yield ""
        yield from footnotes


def _head(about: dict[str, Any]) -> str:
    where = f"study {about['study']}, protocol {about['protocol'][:12]}" if "study" in about else f"{about['file']}"
    status = "" if about.get("status", "complete") == "complete" else " (not complete: its numbers may still change)"
    return printable(f"Agreement of {where}{status}; intervals at {100 * about['level']:g} %, seed {about['seed']}")


def _block(block: Block) -> Iterator[str]:
    facts = ", ".join(f"{count} {name}" for name, count in block.facts)
    yield printable(f"{block.about}{f' ({facts})' if facts else ''}").replace("\n", " ")
    notes: dict[str, list[str]] = {}
    for name, estimate in quoted(block.numbers):
        yield _number(name, estimate)
        if estimate.note:
            notes.setdefault(estimate.note, []).append(name)
    yield from _table(block)
    for one in block.bins:
        stated = f"{one.confidence:.3f} stated, {one.right:.3f} right"
        yield f"    confidence {one.lo:g} to {one.hi:g}: {stated} ({one.verdicts} verdicts on {one.tasks} items)"
    for note, names in notes.items():
        yield f"  * {', '.join(dict.fromkeys(names))}: {note}"


def _number(name: str, estimate: Estimate) -> str:
    if estimate.value is None:
        return f"  {name:<18} undefined: {estimate.undefined}"
    cells = [f"{number(estimate.value):>8}"]
    if estimate.lo is not None:
        cells += [interval(estimate.lo, estimate.hi), f"{covers_words(estimate.covers)}, {estimate.method}"]
    elif estimate.undefined:
        cells.append(f"no interval: {estimate.undefined}")
    word = f"  ({landis_koch(estimate.value)})" if name in _WORDS else ""
    return f"  {name:<18} {'  '.join(cells)}{word}"


def _table(block: Block) -> Iterator[str]:
    if block.table is None or len(block.table) > _MOST_CATEGORIES:
        return
    columns = "reference" if block.kind == "reference" else "second"
    names = [printable(name).replace("\n", " ")[:_LONGEST_NAME] for name in block.categories]
    width = max(6, *map(len, names)) + 2
    yield f"    {columns + ':':>{width + 8}}" + "".join(f"{name:>{width}}" for name in names)
    for name, row in zip(names, block.table, strict=True):
        yield f"    {name:>{width + 8}}" + "".join(f"{int(count):>{width}}" for count in row)
