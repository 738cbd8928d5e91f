"""The wheel and the sdist hold everything, and the base install works alone: no torch, no dev tools."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.servers import truth

ROOT = Path(__file__).parents[2]
SOURCES = ("perfdoctor", "tests", "scenarios", "benchmarks", "docs")
SINGLE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "constraints.txt", "pyproject.toml")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a wheel and an sdist of this tree, built with the installed hatchling: no download."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--sdist",
        "--wheel",
        "--outdir",
        folder,
        ROOT,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def base_install(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel beside links to the base requirements alone, as `pip install .` would leave it."""
    folder = tmp_path_factory.mktemp("base")
    zipfile.ZipFile(next(dist.glob("*.whl"))).extractall(folder)
    for name in sorted(_closure("perfdoctor") - {"perfdoctor"}):
        found = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            link = folder / top
            if not link.exists() and top != "__pycache__":
                link.symlink_to(Path(str(found.locate_file(top))))
    return folder


def _closure(name: str) -> set[str]:
    """A distribution and all it needs, extras left out."""
    found: set[str] = set()
    open_names = [name]
    while open_names:
        current = canonicalize_name(open_names.pop())
        if current in found:
            continue
        found.add(current)
        for line in importlib.metadata.requires(current) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                open_names.append(requirement.name)
    return found


def _files(folder: str) -> Iterator[str]:
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT).as_posix()


def perfdoctor(base: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command as the base install gives it; -S hides every package of the test environment."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PERFDOCTOR"))}
    return subprocess.run(
        [sys.executable, "-S", "-m", "perfdoctor", *arguments],
        env={**env, "PYTHONPATH": str(base)},
        cwd=cwd, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_the_wheel_holds_the_whole_package_and_nothing_else(dist: Path):
    """Code, fixes, data, templates and schemas; no tests, no scenarios."""
    names = zipfile.ZipFile(next(dist.glob("*.whl"))).namelist()
    packed = {name for name in names if ".dist-info/" not in name}

    assert set(_files("perfdoctor")) == packed
    for part in ("diagnosis/fixes/", "data/", "reports/templates/", "reports/schemas/"):
        assert [name for name in packed if name.startswith("perfdoctor/" + part)], part


def test_the_sdist_holds_what_the_tests_and_benchmarks_need(dist: Path):
    """Everything `make test` and `make bench` read."""
    with tarfile.open(next(dist.glob("*.tar.gz"))) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {file for folder in SOURCES for file in _files(folder)} | set(SINGLE)

    assert not wanted - packed


def test_the_wheel_names_its_command_and_extras(dist: Path):
    """`pip install perfdoctor[local]` is what the messages tell the user to type."""
    wheel = zipfile.ZipFile(next(dist.glob("*.whl")))
    meta = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
    points = next(name for name in wheel.namelist() if name.endswith("/entry_points.txt"))

    assert b"Provides-Extra: local" in wheel.read(meta)
    assert b"perfdoctor = perfdoctor.__main__:main" in wheel.read(points)


@pytest.mark.slow
def test_the_base_install_lists_and_explains_everything(base_install: Path, tmp_path: Path):
    """Pages come from data files and docstrings of the wheel; the repository is out of reach."""
    listed = perfdoctor(base_install, "explain", cwd=tmp_path)
    page = perfdoctor(base_install, "explain", "turn-kv-cache-off", cwd=tmp_path)

    assert 0 == listed.returncode, listed.stderr
    for name in ("serial-server", "enable-continuous-batching", "ttft"):
        assert name in listed.stdout
    assert "refuted" in page.stdout, page.stderr


@pytest.mark.slow
def test_the_base_install_checks_its_probes(base_install: Path, tmp_path: Path):
    """All probes answer, working or not."""
    done = perfdoctor(base_install, "check", "--json", cwd=tmp_path)

    assert 0 == done.returncode, done.stderr
    assert {"cpu", "disk", "gpu"} <= {state["probe"] for state in json.loads(done.stdout)}


@pytest.mark.slow
def test_the_base_install_drives_a_server_and_reports(base_install: Path, tmp_path: Path):
    """load-test, then each form of report, templates included; and the torch of the tests is not loaded."""
    with truth.serving("--tokens", "4") as server:
        arguments = ("load-test", "--endpoint", server.url, "-c", "2", "-n", "8", "--json")
        tested = perfdoctor(base_install, *arguments, cwd=tmp_path)
    html = perfdoctor(base_install, "report", "latest", "--html", "-o", "run.html", cwd=tmp_path)

    assert 0 == tested.returncode, tested.stderr
    assert 8 == json.loads(tested.stdout)["requests"]["ok"]
    assert 0 == html.returncode, html.stderr
    assert "<html" in (tmp_path / "run.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["diagnose", "load-test"])
def test_a_local_model_without_torch_names_the_extra(base_install: Path, tmp_path: Path, command: str):
    """Said at once, with the command to type, and no run folder is left behind."""
    done = perfdoctor(base_install, command, "--model", "tiny", cwd=tmp_path)

    assert 3 == done.returncode, done.stderr
    assert "pip install 'perfdoctor[local]'" in done.stderr
    assert not (tmp_path / "perfdoctor-runs").exists()
