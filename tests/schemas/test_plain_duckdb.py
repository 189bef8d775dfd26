"""The catalog in DuckDB's own command line, which is older than the library here and knows nothing of evalnoise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import evalnoise
from evalnoise.store.catalog import CATALOG_FILE
from schemas.macros import load_macros
from schemas.study import Study
from schemas.tables import TABLES
from schemas.views import load_views
from tests.support import stages

DUCKDB = Path(sys.executable).with_name("duckdb")
GRADES = """
create temp view grades as
select task_id as task, replicate as generation, score as grade from outcomes where stack = 'a' and condition = 'live';
from variance_components('grades')
"""


pytestmark = pytest.mark.filterwarnings("ignore::verifiers.sandbox.process.NoSandboxWarning")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plain") / "store"
    stages.run(Study.model_validate(stages.body()), root)
    evalnoise.connect(root).close()
    return root


def asked(command: list[str], query: str) -> list[dict[str, Any]]:
    """The rows that the command line prints, in an environment without Python's paths."""
    found = subprocess.run([*command, "-json", "-c", query], capture_output=True, text=True, timeout=60, env={}, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout) if found.stdout.strip() not in ("", "[{]") else []


def ours(root: Path, query: str) -> list[dict[str, Any]]:
    connection = evalnoise.connect(root)
    try:
        found = connection.execute(query)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    finally:
        connection.close()


@pytest.fixture
def plain(store: Path) -> list[str]:
    return [str(DUCKDB), "-readonly", str(store / CATALOG_FILE)]


def test_the_file_s_layout_is_one_that_duckdb_1_4_reads(store: Path) -> None:
    head = (store / CATALOG_FILE).read_bytes()[:20]
    assert head[8:12] == b"DUCK"
    assert int.from_bytes(head[12:20], "little") <= 67, f"written by {duckdb.__version__}"


@pytest.mark.parametrize(
    "query",
    [
        "select stack, condition, score, w, w_lo, w_hi, runs from noise_floor order by stack, condition",
        "select stack, condition, score, w, runs from noise_floor('small') order by stack, condition",
        "select condition, rerun_budget(w, n_tasks, 0.02) as runs from noise_floor order by condition",
        "select difference, total, data, prediction, se_runs from paired_noise('small/a/live', 'small/a/cold')",
        "select condition_a, condition_b, value, lo, hi from contrasts where estimate = 'w' and headline order by all",
        "select condition, avg(within_task_variance(passes, runs)) as w from task_counts group by condition order by condition",
        "select avg(pass_at_k(runs, passes, 2)) as one, avg(pass_hat_k(runs, passes, 2)) as every from task_counts",
        "select normal_quantile(0.975) as z, minimum_detectable_effect(0.03, 0.03, 164, 5) as d, run_sd(0.03, 164) as sd",
    ],
)
def test_a_query_gives_there_what_it_gives_here(store: Path, plain: list[str], query: str) -> None:
    here, there = ours(store, query), asked(plain, query)
    assert len(there) == len(here) > 0
    for one, other in zip(here, there, strict=True):
        assert other == {
            name: pytest.approx(value, rel=1e-12) if isinstance(value, float) else value for name, value in one.items()
        }


def recipes() -> list[str]:
    """The page's statements that need no file of the reader's."""
    page = (Path(__file__).parents[2] / "docs" / "guide" / "sql.md").read_text("utf-8")
    found = re.findall(r"```sql\n(.+?)```", page, re.DOTALL)
    return [text for text in found if "ATTACH" not in text and "my-grades" not in text]


@pytest.mark.parametrize("recipe", recipes())
def test_the_page_s_recipes_run(plain: list[str], recipe: str) -> None:
    names = {"starter/oracle/": "small/a/", "/temperature-zero": "/cold", "'starter'": "'small'"}
    for name, other in names.items():
        recipe = recipe.replace(name, other)
    assert asked(plain, recipe) or "blocks" in recipe


def test_components_of_a_view_that_the_analyst_makes(plain: list[str]) -> None:
    (found,) = asked(plain, GRADES)
    assert (found["n_tasks"], found["n_generations"], found["together_of"]) == (6, 3, "generation+grader")
    assert found["together"] >= 0


def test_every_view_and_macro_is_there(plain: list[str]) -> None:
    for name in (*TABLES, *(view.name for view in load_views())):
        asked(plain, f"from {name} limit 1")
    known = {row["name"] for row in asked(plain, "select function_name as name from duckdb_functions() where not internal")}
    assert known == {macro.name for macro in load_macros()}


def test_attached_beside_another_database(store: Path) -> None:
    attach = f"attach '{store / CATALOG_FILE}' as results (read_only); use results"
    query = f"{attach}; select count(*) as n from paired_noise('small/a/live', 'small/a/cold')"
    assert asked([str(DUCKDB)], query) == [{"n": 1}]


def test_an_error_says_what_to_write(plain: list[str]) -> None:
    command = [*plain, "-c", "from paired_noise('small/a/live', 'small/a/nothing')"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, env={}, check=False)
    assert found.returncode != 0
    assert "no outcomes of small/a/nothing; name an arm as STUDY/STACK/CONDITION" in found.stderr
