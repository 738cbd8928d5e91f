"""What the documents tell people to type works: commands parse, and the README's examples run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from perfdoctor import registry
from perfdoctor.cli import app
from tests.inside import perfdoctor
from tests.servers import truth

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "scenarios/README.md", "tests/golden/README.md")
    ),
    *sorted((ROOT / "perfdoctor/diagnosis/fixes").glob("*.md")),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SNIPPET = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|^ {4}(.+)$", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|[ '])(perfdoctor [-a-z].*)", re.MULTILINE)
_ELSEWHERE = ("./my-model", "shape:")  # models that this machine has not, or no time for
_ENDPOINT = "http://127.0.0.1:8000"


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of a language, the plain ones as ''."""
    return [body for found, body in _FENCE.findall(text) if found == language]


def commands(text: str) -> Iterator[str]:
    """Every perfdoctor command in a page's code, placeholders filled in.

    It ends with its line, a comment, or a gap before prose.
    """
    outside = _FENCE.sub("", text)
    yaml = (re.sub(r"\n +(?=--)", " ", block) for block in blocks(text, "yaml"))  # folded lines
    code = [*blocks(text, ""), *blocks(text, "sh"), *yaml]
    code += ["".join(found) for found in _SNIPPET.findall(outside)]
    for found in _COMMAND.findall("\n".join(code)):
        command = re.sub(r"\{\w*(?:concurrency|cores)\}", "2", found)
        command = re.sub(r"\{\w+\}|<[^>]*>", "x", command)
        yield re.split(r"\s#|\s{2,}|\s\.\.\.|\s>>", command)[0].rstrip()


def examples() -> list[str]:
    """The README's fenced commands, in their order."""
    lines = (line for block in blocks(README, "") for line in block.splitlines())
    return [line.partition("#")[0].strip() for line in lines if line.startswith("perfdoctor ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_a_page_parses(page: Path):
    """Commands and flags exist; values have the right type. Nothing is run."""
    for command in commands(page.read_text()):
        group, arguments = typer.main.get_command(app), shlex.split(command)[1:]
        while arguments and arguments[0] in getattr(group, "commands", ()):
            group = group.commands[arguments.pop(0)]
        if not hasattr(group, "commands"):
            group.make_context("perfdoctor", arguments)
        else:
            assert not [word for word in arguments if not word.startswith("-")], command


def test_the_command_finder_finds():
    """Prose is left out, placeholders are filled."""
    text = (
        "perfdoctor finds out. Run `perfdoctor explain x`, or\n\n    perfdoctor check   # here\n\n"
        'verify = "perfdoctor diagnose --model {model} -c {half_concurrency}"\n'
        "```\nA=1 perfdoctor report   the last run\n```\n"
    )

    assert {
        "perfdoctor explain x", "perfdoctor check", "perfdoctor diagnose --model x -c 2", "perfdoctor report"
    } == set(commands(text))  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("newcomer")
    (made / "server.log").write_text("Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 2.0%\n")
    return made


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PERFDOCTOR")}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=150)


@pytest.mark.server
def test_the_demos_command_prints_what_the_readme_shows(folder: Path):
    """Same sections in the same order, same cause, same next command; on a shorter run."""
    command = [sys.executable, "-m", "perfdoctor", "diagnose", "--model", "tiny", "--duration", "6s"]
    (shown,) = (block for block in blocks(README, "text") if "\nClear " in block)

    done = run(command, folder)

    assert 0 == done.returncode, done.stderr
    heads = re.findall(r"^[A-Z][a-z]+(?: 1)?(?=\s)", shown, re.MULTILINE)
    printed = re.findall(r"^[A-Z][a-z]+(?: 1)?(?=\s)", done.stdout, re.MULTILINE)
    assert heads == [head for head in dict.fromkeys(printed) if head in heads]
    assert "Cause found: Scheduling" in done.stdout
    assert "Report: perfdoctor-runs/" in done.stderr


@pytest.mark.server
@pytest.mark.parametrize("example", [e for e in examples() if not any(word in e for word in _ELSEWHERE)])
def test_an_example_of_the_readme_runs(folder: Path, example: str):
    """Each as printed, on a server of known pace where one is named. A run may end with 4: on a busy
    machine it is right to abstain."""
    diagnosis = " diagnose " in example
    shorter = ["--duration", "4s"] if diagnosis else []
    with truth.serving("--tokens", "8", "--gap-ms", "10") as server:
        words = shlex.split(example.replace(_ENDPOINT, server.url))
        done = run([sys.executable, "-m", *words, *shorter], folder)

    assert done.returncode in ((0, 4) if diagnosis or " load-test " in example else (0,)), done.stderr
    assert "internal error" not in done.stderr


LOADS = [
    line.partition(" #")[0].strip()
    for block in blocks(README, "sh")
    for line in block.splitlines()
    if line.startswith("perfdoctor load-test ")
]
_LONG = (("--duration", "300ms"), ("-n", "4"), ("--ramp", "1/s:20/s:500ms"))


@pytest.fixture(scope="module")
def server() -> Iterator[truth.Truth]:
    with truth.serving("--tokens", "8", "--gap-ms", "2", "--ttft-ms", "5") as running:
        yield running


@pytest.mark.server
@pytest.mark.parametrize("example", LOADS)
def test_a_load_of_the_readme_runs(
    server: truth.Truth,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    example: str,
):
    """With the files it names, and as short as its kind allows. Exit 4 is for a busy machine."""
    (scenario,) = blocks(README, "toml")
    (tmp_path / "nightly.toml").write_text(scenario.replace(_ENDPOINT, server.url))
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    (tmp_path / "trace.jsonl").write_text('{"at_s": 5, "prompt": "one"}\n{"at_s": 5.4, "prompt": "two"}\n')
    monkeypatch.chdir(tmp_path)
    url = server.scripted("good") if "--api http" in example else server.url
    words = shlex.split(example.replace(_ENDPOINT, url))[1:]
    for flag, short in _LONG:
        if flag in words:
            words[words.index(flag) + 1] = short

    ended = perfdoctor(capsys, *words)

    assert ended.code in (0, 1, 4), ended.err
    assert "0 failed" in ended.out, ended.out


@pytest.mark.server
def test_the_notebook_example_runs(folder: Path):
    """On the runs that the examples before it left."""
    (code,) = blocks(README, "python")

    done = run([sys.executable, "-c", code], folder)

    assert 0 == done.returncode, done.stderr


def test_the_exit_codes_are_those_of_the_code():
    """Each code that a command can end with is in the README's table, and no other."""
    from perfdoctor import cli, errors

    raised = {cls.exit_code for cls in errors.tree().values()} | {cli.INTERRUPTED, cli.INTERNAL, 0, 1}
    table = README.partition("## Exit codes")[2].partition("\n## ")[0]

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == raised


def test_every_class_that_is_judged_is_in_the_table():
    """A rule of a new class gets its question."""
    table = README.partition("## What it judges")[2].partition("\n## ")[0]
    judged = {rule.cls for _, rule, _ in registry.discover("perfdoctor.diagnosis.rules", "RULE")}

    assert judged <= set(re.findall(r"`([a-z-]+)`", table))
