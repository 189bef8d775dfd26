"""`evalnoise init`, and the studies inside the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalnoise.studyfile.load import load_study
from flows.cli import app
from flows.shipped import shipped_studies

RUNNER = CliRunner()
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*arguments, code=0) -> str:
    result = RUNNER.invoke(app, ["init", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_default_is_the_starter_study_word_for_word():
    assert init() == "Wrote study.yaml. Next: evalnoise plan study.yaml\n"
    assert load_study(Path("study.yaml")) == load_study(ROOT / "studies/starter.yaml")
    written, shipped = (path.read_text().splitlines() for path in (Path("study.yaml"), ROOT / "studies/starter.yaml"))
    assert [line for line, other in zip(written, shipped, strict=True) if line != other] == [
        written[0],
        "#   evalnoise plan study.yaml     what would be done, and what it would cost",
        "#   evalnoise run study.yaml      do it; the same command resumes after a stop",
    ]


def test_the_schema_that_it_names_is_there():
    init("deep/er/x.yaml")
    first = Path("deep/er/x.yaml").read_text().splitlines()[0]
    named = Path("deep/er") / first.removeprefix("# yaml-language-server: $schema=")
    assert named.resolve() == ROOT / "schemas/study.schema.json"


@pytest.mark.parametrize("name", shipped_studies())
def test_every_template_gives_a_valid_study_of_that_name(name):
    init("My Study 1.yaml", "--template", name)
    study = load_study(Path("My Study 1.yaml"))
    original = load_study(ROOT / f"studies/{name}.yaml")
    assert study.study == "my-study-1"
    assert study == original.model_copy(update={"study": "my-study-1"})
    assert "studies/" not in Path("My Study 1.yaml").read_text()


def test_list_names_all():
    lines = init("--list").splitlines()
    assert [line.split()[0] for line in lines] == list(shipped_studies())
    assert lines[0] == "starter                 A whole noise study that costs nothing"
    assert not Path("study.yaml").exists()


def test_an_existing_file_is_kept_unless_forced():
    Path("study.yaml").write_text("mine")
    assert "expected no file of that name, found one. Give another name, or --force to replace it." in init(code=3)
    assert Path("study.yaml").read_text() == "mine"
    init("--force")
    assert load_study(Path("study.yaml")).study == "starter"


def test_a_folder_gets_study_yaml():
    Path("folder").mkdir()
    assert init("folder").startswith("Wrote folder/study.yaml.")


def test_a_place_that_cannot_be_written():
    Path("file").write_text("")
    assert "error: file/x.yaml: expected a place that can be written" in init("file/x.yaml", code=3)


def test_unknown_template():
    assert "--template nope: expected one of starter, cruxeval" in init("--template", "nope", code=2)


def test_the_wheel_carries_the_studies_and_the_schema(tmp_path):
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    assert (site / "schemas/study.schema.json").read_bytes() == (ROOT / "schemas/study.schema.json").read_bytes()
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import flows.shipped as s; print(*s.shipped_studies().values(), sep='\\n')"
    )
    found = subprocess.run(
        [sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()
    assert [Path(path).relative_to(site).as_posix() for path in found] == [
        f"flows/studies/{name}.yaml" for name in shipped_studies()
    ]
    assert [Path(path).read_bytes() for path in found] == [path.read_bytes() for path in shipped_studies().values()]


HEAVY = {"prefect", "duckdb", "pyarrow", "numpy", "scipy", "pydantic", "docker", "openai", "anthropic", "yaml"}


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom flows.cli import app\n"
        "result = CliRunner().invoke(app, ['--help'])\nassert result.exit_code == 0, result.output\n"
        f"print(*sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""
