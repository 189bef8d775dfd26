"""Packages for candidates: their normal form, wheels alone, the same bytes each time, errors that say what to do."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path, PurePosixPath

import pytest

from schemas.errors import ExecutorError, StudyError
from schemas.records import Outcome
from schemas.verifier import VerifierSpec
from tests.verifiers.support import function_task, reference_of
from tests.verifiers.wheels import make_source, make_wheel, only_from
from verifiers.image import packages
from verifiers.image.install import InstallError, install, last_words, pip, settle, uv
from verifiers.image.packages import content_digest, install_here, normalised, not_installed, packages_digest, packages_folder
from verifiers.verify import Verifier, resolve_executor

HOME = PurePosixPath("/opt/evalnoise-packages")
UV = str(Path(sys.executable).parent / "uv")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip and uv look in, instead of an index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    only_from(folder, monkeypatch)
    monkeypatch.setenv("EVALNOISE_HOME", str(tmp_path / "home"))
    return folder


def test_the_normal_form() -> None:
    assert normalised(["Zope.Interface==7.0", "a__B==1", "a-b==1", "X[Two,one_A]==2.0+cpu"]) == (
        "a-b==1",
        "x[one-a,two]==2.0+cpu",
        "zope-interface==7.0",
    )
    assert packages_digest(normalised(["b==1", "A==2"])) == packages_digest(normalised(["a==2", "B==1"]))
    assert packages_digest(("a==1",)) != packages_digest(("a==2",))
    assert packages_digest(()) == ""


def test_one_package_with_two_versions() -> None:
    with pytest.raises(StudyError) as caught:
        normalised(["tool_z==1", "Tool.Z==2"], "stacks.3.verifier.packages")
    assert (caught.value.where, caught.value.found) == ("stacks.3.verifier.packages", "tool-z with two versions, 1 and 2")


@pytest.mark.parametrize("installer", [pip(sys.executable), uv(UV, sys.executable)], ids=["pip", "uv"])
def test_only_what_is_imported_is_left(wheels: Path, tmp_path: Path, installer: list[str]) -> None:
    make_wheel(wheels, "tiny_one", "1.0", more={"tiny_one/old.py": "print 'two'\n", "tiny_one/data.txt": "x"})
    for name in ("a", "b"):
        install(installer, ["tiny-one==1.0"], tmp_path / name, HOME)
    found = sorted(path.relative_to(tmp_path / "a").as_posix() for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert found == [
        "tiny_one-1.0.dist-info/METADATA",
        "tiny_one-1.0.dist-info/WHEEL",
        "tiny_one-1.0.dist-info/entry_points.txt",
        "tiny_one/__init__.py",
        f"tiny_one/__pycache__/__init__.{sys.implementation.cache_tag}.pyc",
        "tiny_one/data.txt",
        "tiny_one/old.py",
    ]
    assert content_digest(tmp_path / "a") == content_digest(tmp_path / "b")
    code = (tmp_path / "a" / found[4]).read_bytes()
    assert b"/opt/evalnoise-packages/tiny_one/__init__.py" in code
    assert str(tmp_path).encode() not in code
    every = list((tmp_path / "a").rglob("*"))
    assert {path.stat().st_mtime for path in every} == {0.0}
    assert {stat.S_IMODE(path.stat().st_mode) for path in every if path.is_file()} == {0o644}


def test_pip_and_uv_give_the_same(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels, "tiny_one", "1.0")
    install(pip(sys.executable), ["tiny-one==1.0"], tmp_path / "a", HOME)
    install(uv(UV, sys.executable), ["tiny-one==1.0"], tmp_path / "b", HOME)
    assert content_digest(tmp_path / "a") == content_digest(tmp_path / "b")


def test_settling_keeps_programs_and_a_package_called_bin(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    for name in ("bin/__init__.py", "Scripts/run", "tool/program", "tool/link", ".lock", "tool/__pycache__/x.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "tool/program").chmod(0o755)
    (folder / "tool/link").unlink()
    (folder / "tool/link").symlink_to("/etc/passwd")
    settle(folder, HOME)
    left = {p.relative_to(folder).as_posix(): stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()}
    cached = f"bin/__pycache__/__init__.{sys.implementation.cache_tag}.pyc"
    assert left == {"bin/__init__.py": 0o644, cached: 0o644, "tool/program": 0o755}


@pytest.mark.parametrize("installer", [pip(sys.executable), uv(UV, sys.executable)], ids=["pip", "uv"])
def test_needs_must_be_named(wheels: Path, tmp_path: Path, installer: list[str]) -> None:
    make_wheel(wheels, "Tiny_One", "1.0")
    make_wheel(wheels, "needy", "2.0", needs=("tiny-one",))
    with pytest.raises(InstallError) as caught:
        install(installer, ["needy==2.0"], tmp_path / "a", HOME)
    assert caught.value.missing == ("tiny-one==1.0",)
    install(installer, ["needy==2.0", *caught.value.missing], tmp_path / "b", HOME)
    error = packages.not_installed(["needy==2.0"], caught.value.found, caught.value.missing, "Python 3")
    assert error.remedy.startswith("Add to `packages`: tiny-one==1.0.")


def test_a_source_is_never_run(wheels: Path, tmp_path: Path) -> None:
    make_source(wheels, "onlysource", "1.0")
    with pytest.raises(ExecutorError) as caught:
        install_here(["onlysource==1.0"], tmp_path / "a")
    assert "onlysource==1.0" in caught.value.found
    assert "No matching distribution" in caught.value.found
    assert "Only wheels are installed" in caught.value.remedy
    assert not (wheels / "was-run").exists()


@pytest.mark.parametrize("installer", [pip(sys.executable), uv(UV, sys.executable)], ids=["pip", "uv"])
def test_no_network_is_said_and_no_address(
    tmp_path: Path, installer: list[str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    address = "https://someone:secret@127.0.0.1:9/simple"
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, address)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(InstallError) as caught:
        install(installer, ["no-such-thing==1"], tmp_path / "a", HOME)
    assert caught.value.found.startswith("the package index did not answer; ")
    for part in ("secret", "someone", "127.0.0.1", "simple"):
        assert part not in caught.value.found


def test_last_words() -> None:
    said = (
        "WARNING: x\nERROR: HTTP error 401 while getting https://u:p@index.example/simple (from host='index.example')\nERROR: no\n"
    )
    assert last_words(said) == "ERROR: HTTP error 401 while getting … (from …) ERROR: no"
    assert last_words("something\nelse") == "something else"
    assert last_words("") == ""
    assert last_words("error " + "x" * 9_000) == "error " + "x" * 393 + "…"
    versions = "error: no such version (from versions: " + ", ".join(["2.4.1"] * 99)
    assert last_words(versions).endswith("2.4.1, 2.4.1 …")
    assert 390 < len(last_words(versions)) <= 400
    error = not_installed(["numpy==9"], last_words(versions), (), "Python 3")
    assert "2.4.1, 2.4.1 … Check names" in str(error)


def test_without_pip_and_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert packages._installer()[:3] == [UV, "pip", "install"]
    monkeypatch.setattr("shutil.which", lambda _, **__: None)
    with pytest.raises(ExecutorError, match="neither pip nor uv"):
        install_here(["a==1"], tmp_path / "a")


def test_the_folder_for_processes_is_made_once_and_mended(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels, "tiny_one", "1.0")
    folder, digest = packages_folder(["Tiny_One==1.0"])
    assert folder.is_relative_to(tmp_path / "home" / "packages")
    assert [path.name for path in sorted(folder.iterdir())] == ["tiny_one", "tiny_one-1.0.dist-info"]
    made = folder.stat().st_ino
    assert packages_folder(["tiny-one==1.0"]) == (folder, digest)
    assert folder.stat().st_ino == made, "not made again"
    (folder / "tiny_one" / "__init__.py").write_text("VERSION = 'a candidate wrote this'\n")
    leftover = folder.parent.with_name(f"{folder.parent.name}.new")
    (leftover / "site").mkdir(parents=True)
    assert packages_folder(["tiny-one==1.0"]) == (folder, digest)
    assert (folder / "tiny_one" / "__init__.py").read_text().startswith("VERSION = '1.0'")
    assert not leftover.exists()


def test_two_processes_install_at_once(wheels: Path) -> None:
    make_wheel(wheels, "tiny_one", "1.0")
    code = "from verifiers.image.packages import packages_folder; print(packages_folder(['tiny-one==1.0']))"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {process.communicate(timeout=60)[0].strip() for process in both}
    assert said == {str(packages_folder(["tiny-one==1.0"]))}


def test_a_cache_that_cannot_be_written(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVALNOISE_HOME", str(tmp_path / "file"))
    with pytest.raises(ExecutorError, match="Not a directory") as caught:
        packages_folder(["tiny-one==1.0"])
    assert "EVALNOISE_HOME" in caught.value.remedy


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALNOISE_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/of/mine")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert packages._cache() == Path("/of/mine/evalnoise/packages")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert packages._cache() == Path.home() / ".cache/evalnoise/packages"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert packages._cache() == Path("/var/cache/evalnoise/packages")


def test_candidates_in_processes(wheels: Path) -> None:
    """They import the package, the standard library stays before it, and another set of packages is another executor."""
    more = {"json.py": "raise SystemExit('shadow')\n", "textwrap/__init__.py": "X = 1\n", "tabnanny.py": "X = 1\n"}
    make_wheel(wheels, "tiny_one", "1.0", more=more)
    make_wheel(wheels, "tiny_two", "1.0")
    plain = VerifierSpec(executor="process", workers=1)
    spec = plain.model_copy(update={"packages": ("tiny-one==1.0",)})
    task = function_task("", ("tiny_one",), ("sys",), ("numpy",))
    code = (
        "import tabnanny, json, os\n"
        "def f(name):\n"
        "    assert not hasattr(tabnanny, 'X') and os.environ['OMP_NUM_THREADS'] == '1'\n"
        "    try: return getattr(__import__(name), 'VERSION', 'none')\n"
        "    except ImportError: return 'absent'\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        info, other, none = (
            resolve_executor(each, []) for each in (spec, spec.model_copy(update={"packages": ("tiny-two==1.0",)}), plain)
        )
    assert len({info.rootfs, other.rootfs, none.rootfs}) == 3
    with Verifier(spec, "differential", info) as verifier:
        check = verifier.check(task, reference_of('"1.0"', '"none"', '"absent"'), code).result(60)
    assert (check.outcome, check.detail) == (Outcome.PASS, "")
    with Verifier(plain, "differential", none) as verifier:
        check = verifier.check(task, reference_of('"absent"', '"none"', '"absent"'), code).result(60)
    assert (check.outcome, check.detail) == (Outcome.PASS, "")
