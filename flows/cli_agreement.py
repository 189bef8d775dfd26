"""`agreement`: how steady a grader is, how right it is, and how much graders agree; of a study's judges, or of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli_options import DEFAULT_STORE, MOST_RESAMPLES, StoreOption, misuse

if TYPE_CHECKING:  # imported where they are needed, so that `--help` answers at once
    from evalnoise.readers.counts import Judged
    from evalnoise.report.agreement import Block, Drawn

_STUDY_FILES = (".yaml", ".yml")


def agreement(
    what: Annotated[
        str,
        typer.Argument(
            help="A study's name (or digits of a protocol), or a file of ratings: .csv, .jsonl, .parquet.", metavar="WHAT"
        ),
    ],
    *,
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Of a study: only this judge condition. Repeatable.", metavar="NAME")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="Of a study: a file of human labels (item, rating) to judge the judges by.", metavar="FILE"),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", help="Of a file: the rater whose ratings are the truth.", metavar="RATER")
    ] = None,
    raters: Annotated[
        str | None,
        typer.Option(
            "--raters", help="Of a file without `rating`: its columns that are raters. Default: all others.", metavar="A,B"
        ),
    ] = None,
    confidence_max: Annotated[
        float, typer.Option("--confidence-max", help="Of a file: what full confidence is called, 100 or 1.", metavar="C")
    ] = 100.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of a file: seed of the bootstrap.")] = 0,
    resamples: Annotated[int, typer.Option("--resamples", min=100, max=MOST_RESAMPLES, help="Of a file: resamples.")] = 20_000,
    level: Annotated[float, typer.Option("--level", help="Of a file: confidence level.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, with all intervals.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Say how steady a grader is, how right it is against execution or human labels, and how much graders agree."""
    from evalnoise.readers.tablefile import is_table_name
    from evalnoise.report.agreement import Drawn

    if not 0 < level < 1:
        raise misuse(f"--level {level!r}: expected a number between 0 and 1, for instance 0.95")
    if confidence_max <= 0:
        raise misuse(f"--confidence-max {confidence_max!r}: expected 100 or 1")
    if is_table_name(what) or (Path(what).is_file() and Path(what).suffix not in _STUDY_FILES):
        if judge or labels:
            raise misuse("--judge and --labels are for a study; name a study in the place of the file")
        drawn = Drawn(seed=seed, resamples=resamples, level=level)
        columns = [name.strip() for name in (raters or "").split(",") if name.strip()]
        about, blocks = _of_file(Path(what), drawn, reference=reference, confidence_max=confidence_max, raters=columns)
    else:
        if reference is not None or raters is not None:
            raise misuse(
                "--reference and --raters are for a file of ratings; a study's judges are held against execution, or --labels"
            )
        about, blocks = _of_study(store, what, judge or [], labels)
    _print(about, blocks, as_json=as_json)


def _of_file(
    path: Path, drawn: Drawn, *, reference: str | None, confidence_max: float, raters: list[str]
) -> tuple[dict[str, Any], list[Block]]:
    from dataclasses import asdict

    from evalnoise.readers.ratings import read_ratings, unknown_rater
    from evalnoise.report.agreement import rating_blocks

    ratings = read_ratings(path, confidence_max=confidence_max, raters=raters)
    if reference is not None and ratings.rater(reference) is None:
        raise unknown_rater(path, ratings, reference)
    blocks = rating_blocks(ratings, drawn, reference=reference)
    if not blocks:
        raise _nothing_to_compare(path)
    return {"file": str(path), "items": len(ratings.items), **asdict(drawn)}, blocks


def _nothing_to_compare(path: Path) -> Exception:
    """The error for a file that holds nothing to compare."""
    from schemas.errors import DataError

    return DataError(
        str(path),
        expected="an item rated twice, by two raters or against a reference",
        found="one rating per item, and nothing to hold it against",
        remedy="Add a column `rater` with a second rater, a column `reference`, or further rows of the same items.",
    )


def _of_study(store: Path, text: str, names: list[str], labels: Path | None) -> tuple[dict[str, Any], list[Block]]:
    from contextlib import closing

    from evalnoise.readers.arms import find_protocol
    from evalnoise.readers.counts import read_judged
    from evalnoise.report.agreement import judge_blocks
    from evalnoise.store.catalog import connect
    from evalnoise.store.store import Store
    from flows.cli_query import study_name

    with closing(connect(store)) as connection:
        study, digest, status = find_protocol(connection, store, text, study_name(text) or text)
        judged = _chosen(store, study, read_judged(connection, study, digest), names)
        whose = "execution"
        if labels is not None:
            judged, whose = _labelled(connection, (study, digest), judged, labels), "human labels"
    analysis = Store.open(store, create=False).protocol(digest).study.get("analysis", {})
    drawn = _as_the_study(analysis)
    about = {"study": study, "protocol": digest, "status": status, "seed": drawn.seed, "resamples": drawn.resamples}
    return about | {"level": drawn.level}, judge_blocks(judged, drawn, whose=whose)


def _as_the_study(analysis: dict[str, Any]) -> Drawn:
    """Seed, resamples and level as the analysis of the study takes them, so that the numbers are those of `estimates`."""
    from evalnoise.report.agreement import Drawn
    from schemas.study import Analysis

    asked = Analysis.model_validate(analysis)
    return Drawn(seed=asked.seed, resamples=asked.resamples, level=1 - asked.alpha)


def _chosen(store: Path, study: str, judged: list[Judged], names: list[str]) -> list[Judged]:
    from schemas.errors import StoreError

    known = list(dict.fromkeys(one.condition for one in judged))
    if not known:
        raise StoreError(
            f"{store}, study {study}",
            expected="sealed verdicts of a judge",
            found="none",
            remedy="Give the study a `judge` and run it, or name a file of ratings.",
        )
    for name in names:
        if name not in known:
            raise misuse(f"--judge {name}: study {study} has judge conditions {', '.join(known)}")
    return [one for one in judged if not names or one.condition in names]


def _labelled(connection: Any, where: tuple[str, str], judged: list[Judged], path: Path) -> list[Judged]:
    """The judges on the candidates of labelled tasks, with the labels as their reference."""
    from evalnoise.readers.ratings import read_ratings
    from evalnoise.report.agreement import labels_of, with_labels
    from schemas.errors import DataError

    query = "select task_id, position from tasks where study = $study and protocol = $protocol"
    rows = connection.execute(query, {"study": where[0], "protocol": where[1]}).fetchall()
    places = {str(task): int(position) for task, position in rows}
    ratings = read_ratings(path)
    if not ratings.binary:
        raise DataError(str(path), expected="labels of pass and fail", found=f"ratings {', '.join(ratings.categories[:10])}",
                        remedy="Write pass or fail, 1 or 0, yes or no.")  # fmt: skip
    labels = {places[item]: label for item, label in labels_of(ratings).items() if item in places}
    made = [with_labels(one, labels) for one in judged]
    if not any(len(one.verdicts) for one in made):
        raise DataError(str(path), expected="items that are ids of judged tasks", found=f"none of {len(ratings.items)}",
                        remedy='`evalnoise sql "select distinct task_id from verdicts"` lists them.')  # fmt: skip
    return made


def _print(about: dict[str, Any], blocks: list[Block], *, as_json: bool) -> None:
    from flows.views.agreement import lines

    if as_json:
        import json

        from evalnoise.report.agreement import as_plain

        typer.echo(json.dumps({**about, "blocks": [as_plain(block) for block in blocks]}, allow_nan=False))
        return
    for line in lines(about, blocks):
        typer.echo(line)
