"""Study files: YAML to a validated Study, with every mistake located in the file; and the JSON Schema for editors.

Relative paths inside a study are left as they are: they are taken from the working directory, not from the file's folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from evalnoise.studyfile.errors import Places, Problem, study_error, validation_problems
from evalnoise.studyfile.nodes import parse
from evalnoise.studyfile.overrides import apply_override
from schemas.errors import StudyError
from schemas.study import Study

MAX_BYTES = 1 << 20
"""A larger file is no study."""


def load_study(path: Path, overrides: Sequence[str] = ()) -> Study:
    """The study in a YAML file, after ``path=value`` overrides. Raises one StudyError that lists every problem."""
    return load_with_places(path, overrides)[0]


@contextmanager
def opened_study(path: Path, overrides: Sequence[str] = ()) -> Iterator[Study]:
    """The study as from `load_study`; a StudyError of the body, which knows no file, leaves with the file and line it is about."""
    study, places = load_with_places(path, overrides)
    try:
        yield study
    except StudyError as error:
        raise places.located(error) from None


def load_with_places(path: Path, overrides: Sequence[str] = ()) -> tuple[Study, Places]:
    """The study as from `load_study`, and where each of its values stands."""
    file = str(path)
    places = Places(file)
    data, problems = parse(_read(path), places)
    for text in overrides:
        problem = apply_override(data, text, places)
        if problem:
            problems.append(problem)
    if data is None and problems:
        raise study_error(file, problems)
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        problems += _not_said_yet(problems, validation_problems(error, data, places, Study))
        raise study_error(file, problems) from None
    if problems:
        raise study_error(file, problems)
    return study, places


def study_json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a study file."""
    schema = Study.model_json_schema()
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


def _not_said_yet(said: list[Problem], more: list[Problem]) -> list[Problem]:
    """Problems at other paths than those that are known to have no usable value, and so were validated as None."""
    known = {problem.path for problem in said}
    return [problem for problem in more if problem.path not in known]


def _read(path: Path) -> str:
    """The file's text. Raises StudyError for whatever is no readable text file of a sensible size."""
    remedy = "Check the path; `evalnoise init` writes a commented study."
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise StudyError(str(path), expected="a study file", found="no such file", remedy=remedy) from None
    except IsADirectoryError:
        raise StudyError(str(path), expected="a study file", found="a folder", remedy=remedy) from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise StudyError(str(path), expected="a readable study file", found=said, remedy=remedy) from None
    if len(raw) > MAX_BYTES:
        raise StudyError(str(path), expected=f"at most {MAX_BYTES} bytes", found="a larger file", remedy=remedy)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{raw[error.start]:02X}"
        raise StudyError(f"{path}:{line}", expected="text in UTF-8", found=found, remedy="Save the file as UTF-8.") from None
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise StudyError(f"{path}:{line}", expected="text in UTF-8", found="a zero byte", remedy="Save the file as UTF-8.")
    return text
