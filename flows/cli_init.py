"""`evalnoise init`: write a commented study to begin with."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from textwrap import shorten
from typing import Annotated

import typer

from flows.cli_options import misuse, refuse_same
from schemas.errors import EvalnoiseError, StudyError

_TEMPLATE_HELP = "The shipped study to begin with; `--list` names them."


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.", metavar="[FILE]")] = Path("study.yaml"),
    template: Annotated[str, typer.Option("--template", help=_TEMPLATE_HELP, metavar="NAME")] = "starter",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="Only list the templates.")] = False,
) -> None:
    """Write a commented study to begin with."""
    from flows.shipped import shipped_studies

    templates = shipped_studies()
    if show_list:
        for name, source in templates.items():
            typer.echo(f"{name:24}{_summary(source.read_text(encoding='utf-8'))}")
        return
    if template not in templates:
        raise misuse(f"--template {template}: expected one of {', '.join(templates)}")
    if path.is_dir():
        path /= "study.yaml"
    refuse_same("FILE", path, {"the template": templates[template]})
    _write(path, _adapted(templates[template].read_text(encoding="utf-8"), path), force)
    typer.echo(f"Wrote {path}. Next: evalnoise plan {shlex.quote(str(path))}")


def _write(path: Path, text: str, force: bool) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Mode "x" refuses an existing file in one step, so that nothing can slip in between a test and the write.
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        if not path.exists():  # it is a parent that is a file
            raise _unwritable(path, error) from None
        remedy = "Give another name, or --force to replace it."
        raise StudyError(str(path), expected="no file of that name", found="one", remedy=remedy) from None
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> EvalnoiseError:
    found = error.strerror or str(error)
    return StudyError(str(path), expected="a place that can be written", found=found, remedy="Give another path.")


def _adapted(text: str, path: Path) -> str:
    """The template with the place of the schema, its own file name in the commands, and the file's name as the study's."""
    import schemas
    from evalnoise.studyfile.errors import slug

    schema = Path(str(schemas.__file__)).parent / "study.schema.json"
    relative = Path(os.path.relpath(schema, path.absolute().parent)).as_posix()
    text = text.replace("$schema=../schemas/study.schema.json", f"$schema={relative}", 1)
    here = shlex.quote(str(path))
    text = re.sub(r"(evalnoise (?:plan|run)) (?:FILE|studies/\S+\.yaml)", lambda match: f"{match.group(1)} {here}", text)
    if path.stem == "study":
        return text
    return re.sub(r"(?m)^study: (\S+)( *)", lambda match: f"study: {slug(path.stem)}{match.group(2)}", text, count=1)


def _summary(text: str) -> str:
    """What a study's header says first, in a line."""
    words = " ".join(line.removeprefix("#").strip() for line in text.splitlines()[1:9] if line.startswith("#"))
    return shorten(words.partition(". ")[0].partition(": ")[0], 90, placeholder=" …")
