"""The notebook of the guide runs on a store, and the package gives what it uses without more imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from schemas.study import Study
from tests.support import stages

NOTEBOOK = Path(__file__).parents[2] / "docs" / "guide" / "notebook.ipynb"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kernel of this interpreter, by a specification that goes before any that the machine has."""
    folder = tmp_path / "jupyter" / "kernels" / "python3"
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "Python 3", "language": "python"}))
    places = {"JUPYTER_PATH": "jupyter", "JUPYTER_RUNTIME_DIR": "run", "JUPYTER_CONFIG_DIR": "config", "IPYTHONDIR": "ipython"}
    for name, place in places.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    return "python3"


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_is_committed_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert outputs(notebook) == []
    assert all(cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.filterwarnings("ignore::verifiers.sandbox.process.NoSandboxWarning")
def test_the_notebook_runs_on_a_store(tmp_path, kernel, monkeypatch) -> None:
    stages.run(Study.model_validate(stages.body()), tmp_path / "store")
    monkeypatch.setenv("EVALNOISE_STORE", str(tmp_path / "store"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name=kernel, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    made = outputs(notebook)
    assert [output for output in made if output.output_type == "error" or output.get("name") == "stderr"] == []
    charts = [output for output in made if "vega-lite" in output.get("data", {}).get("text/html", "")]
    assert len(charts) == 2
    printed = "".join(output.data.get("text/plain", "") for output in made if "data" in output)
    assert "benchmark" in printed
    assert "population" in printed
    assert "runs per arm resolve a difference of 0.1 on these 6 tasks" in printed


PROGRAM = """
import sys
import evalnoise
assert not {"numpy", "scipy", "duckdb"} & set(sys.modules)
assert evalnoise.stats.planning.budget.rerun_budget(0.0301, 0.0301, 164, 0.02) == 8
for holder, name in ((evalnoise, "nothing"), (evalnoise.stats, "nothing"), (evalnoise.stats, "_nothing")):
    try:
        getattr(holder, name)
    except AttributeError as error:
        assert "has no attribute" in str(error)
    else:
        raise AssertionError(name)
"""


def test_statistics_are_there_without_another_import_and_loaded_late() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
