"""How `evalnoise agreement` prints: a block of lines for each judge, rater or pair, with notes under the numbers they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalnoise.report.agreement import Block, covers_words, quoted
from evalnoise.report.numbers import interval, number
from evalnoise.stats.agreement.kappa import landis_koch
from evalnoise.stats.estimate import Estimate
from flows.cli_errors import printable
from flows.views.folding import folded, width

_WORDS = {"kappa", "fleiss_kappa", "kappa_linear", "kappa_quadratic"}
_FOOTNOTES = {
    "prevalence": "prevalence is an index: share of passes minus share of fails, from -1 to 1.",
    "flip_rate": "flip_rate is the share of items that ever flip, not the chance that one verdict does: that is in `components`.",
}
_LANDIS_KOCH = (
    "Words after a kappa are Landis and Koch's convention of 1977, no finding. Where one verdict is rare, kappa is low "
    "even of good graders: read prevalence, false accepts and false rejects beside it."
)
_UNDER = " " * 21
_MOST_CATEGORIES = 8
_LONGEST_NAME = 16


def lines(about: dict[str, Any], blocks: Sequence[Block]) -> Iterator[str]:
    """The lines of a report."""
    yield folded(_head(about), rest="  ")
    words, defined = False, set[str]()
    for block in blocks:
        yield ""
        yield from _block(block)
        words = words or any(name in _WORDS and one.value is not None for name, one in block.numbers)
        defined |= {name for name, one in block.numbers if one.value is not None}
    if words:
        yield ""
        yield folded(_LANDIS_KOCH)
    if footnotes := [text for name, text in _FOOTNOTES.items() if name in defined]:
        yield ""
        yield from map(folded, footnotes)


def _head(about: dict[str, Any]) -> str:
    where = f"study {about['study']}, protocol {about['protocol'][:12]}" if "study" in about else f"{about['file']}"
    status = "" if about.get("status", "complete") == "complete" else " (not complete: its numbers may still change)"
    return printable(f"Agreement of {where}{status}; intervals at {100 * about['level']:g} %, seed {about['seed']}")


def _block(block: Block) -> Iterator[str]:
    facts = ", ".join(f"{count} {name}" for name, count in block.facts)
    yield folded(printable(f"{block.about}{f' ({facts})' if facts else ''}").replace("\n", " "), rest="  ")
    notes: dict[str, list[str]] = {}
    for name, estimate in quoted(block.numbers):
        yield folded(_number(name, estimate), first=f"  {name:<18} ", rest=_UNDER)
        if estimate.note:
            notes.setdefault(estimate.note, []).append(name)
    yield from _table(block)
    for one in block.bins:
        stated = f"{one.confidence:.3f} stated, {one.right:.3f} right"
        bin_of = f"confidence {one.lo:g} to {one.hi:g}: {stated} ({one.verdicts} verdicts on {one.tasks} items)"
        yield folded(bin_of, first="    ", rest=_UNDER)
    for note, names in notes.items():
        yield folded(f"{', '.join(dict.fromkeys(names))}: {note}", first="  * ", rest="    ")


def _number(name: str, estimate: Estimate) -> str:
    if estimate.value is None:
        return f"undefined: {estimate.undefined}"
    cells = [f"{number(estimate.value):>8}"]
    if estimate.lo is not None:
        cells += [interval(estimate.lo, estimate.hi), f"{covers_words(estimate.covers)}, {estimate.method}"]
    elif estimate.undefined:
        cells.append(f"no interval: {estimate.undefined}")
    word = f"  ({landis_koch(estimate.value)})" if name in _WORDS else ""
    return f"{'  '.join(cells)}{word}"


def _table(block: Block) -> Iterator[str]:
    if block.table is None or len(block.table) > _MOST_CATEGORIES:
        return
    columns = "reference" if block.kind == "reference" else "second"
    # As wide as the names, as far as there is room beside the column of the rows' names.
    room = max(7, min(_LONGEST_NAME + 2, (width() - 12) // (len(block.table) + 1)))
    names = [printable(name).replace("\n", " ")[: room - 2] for name in block.categories]
    wide = max(5, *map(len, names)) + 2
    yield f"    {columns + ':':>{wide + 8}}" + "".join(f"{name:>{wide}}" for name in names)
    for name, row in zip(names, block.table, strict=True):
        yield f"    {name:>{wide + 8}}" + "".join(f"{int(count):>{wide}}" for count in row)
