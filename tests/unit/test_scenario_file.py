"""A scenario file is read strictly: what is wrong is named with its line, its value and what is allowed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import tomli_w

from perfdoctor import store
from perfdoctor.errors import UsageError
from perfdoctor.model import Load, Prompts, Scenario, Target, Wire
from perfdoctor.scenario_file import line_of, read_scenario

# file, where, which key and value, what to do
WRONG = {
    "misspelt key": (
        'name = "x"\n[load]\nconcurency = 4\n',
        3,
        "[load] has no key `concurency`",
        "`concurrency`",
    ),
    "misspelt table": ('name = "x"\n\n[lod]\n', 3, "a scenario has no key `lod`", "write `load`"),
    "unknown inner table": ("[load.prompt.x]\ny = 1\n", 1, "[load] has no key `prompt`", "write `prompts`"),
    "unknown, like nothing": ("[target]\nzzz = 4\n", 2, "[target] has no key `zzz`", "leave it out"),
    "text for a number": (
        '[load]\nconcurrency = "many"\n',
        2,
        "`load.concurrency` cannot be 'many'",
        "a whole number",
    ),
    "text for seconds": ('[load]\nduration_s = "10s"\n', 2, "cannot be '10s'", "a number, in seconds"),
    "word of a list": ('[load]\narrival = "posson"\n', 2, "cannot be 'posson'", "closed, constant, poisson"),
    "inline table": (
        "[load]\nprompts = { input_tokens = 4.5 }\n",
        2,
        "`load.prompts.input_tokens`",
        "a text in quotes",
    ),
    "number for a table": ("load = 3\n", 1, "`load` cannot be 3", "a table"),
    "yes": ('[target]\nwire = { insecure = "yes" }\n', 2, "`target.wire.insecure`", "true or false"),
    "torn corner": ("[load]\nramp = [[0, 1], [3]]\n", 2, "`load.ramp`", "[second, rate] pairs"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, case: str):
    """File and line, the key with its value, and what it may be."""
    text, line, what, do = WRONG[case]
    path = tmp_path / "load.toml"
    path.write_text(text)

    with pytest.raises(UsageError) as caught:
        read_scenario(path)

    assert caught.value.what.startswith(f"{path}, line {line}: ")
    assert what in caught.value.what
    assert do in caught.value.do


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"a = \n", "no TOML"),
        (b"\xff\xfe\x00", "no text"),
        (b"#" * 2**21, "larger"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_scenario(tmp_path: Path, content: bytes | None, phrase: str):
    """Garbage, another encoding, something huge, nothing: each by its name."""
    path = tmp_path / "load.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UsageError, match=phrase):
        read_scenario(path)


def test_a_runs_own_scenario_can_be_run_again(tmp_path: Path):
    """What a run folder keeps is read as it was written."""
    ran = Scenario(
        target=Target(endpoint="http://x", headers={"A": "b"}, wire=Wire(insecure=True)),
        load=Load(ramp=((0.0, 1.0), (30.0, 20.0)), prompts=Prompts(input_tokens="normal(48,12)")),
    )
    kept = store._plain(msgspec.to_builtins(ran))
    (tmp_path / "scenario.toml").write_text(tomli_w.dumps(kept))

    assert ran == read_scenario(tmp_path / "scenario.toml")


def test_the_line_of_a_key_that_stands_nowhere():
    """Of a table that has it not, the table; of no table at all, none."""
    text = "# load\n\n[load]\nrate = 3.0\n[load.prompts]\nturns = 2\n"

    assert 4 == line_of(text, ("load", "rate"))
    assert 6 == line_of(text, ("load", "prompts", "turns"))
    assert 3 == line_of(text, ("load", "seed"))
    assert None is line_of(text, ("target", "api"))
