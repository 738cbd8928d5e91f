"""A scenario file under the flags: they replace what they name, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfdoctor import flags
from perfdoctor.cli.load_test import GROUPS
from perfdoctor.errors import UsageError
from perfdoctor.model import Load, Scenario

FILE = """
[target]
endpoint = "http://127.0.0.1:1"
headers = { X-Tenant = "blue" }

[load]
concurrency = 8
duration_s = 10.0
prompts = { input_tokens = 200, output_tokens = "uniform(8,16)" }
"""


def read(folder: Path, text: str = FILE, **given: Any) -> Scenario:
    (folder / "load.toml").write_text(text)
    said: Mapping[str, Any] = {"scenario": str(folder / "load.toml"), **given}
    return flags.scenario_of(said, GROUPS, Scenario(load=Load(concurrency=1)))


def test_without_flags_the_file_holds(tmp_path: Path):
    """Its values, and the usual ones where it says nothing; not those of the command."""
    load = read(tmp_path).load

    assert (8, 10.0, "uniform(8,16)") == (load.concurrency, load.duration_s, load.prompts.output_tokens)
    assert Load().timeout_s == load.timeout_s


def test_flags_replace_what_they_name(tmp_path: Path):
    """A value beside others in the same table; headers are added to."""
    found = read(tmp_path, concurrency=2, prompt_tokens="30", header=["X-Other: red"])

    assert (2, 10.0) == (found.load.concurrency, found.load.duration_s)
    assert (30, "uniform(8,16)") == (found.load.prompts.input_tokens, found.load.prompts.output_tokens)
    assert {"X-Tenant": "blue", "X-Other": "red"} == found.target.headers


def test_a_rate_opens_the_files_closed_loop(tmp_path: Path):
    """Its number of users says nothing any more."""
    load = read(tmp_path, rate="300/min").load

    assert ("poisson", 5.0) == (load.arrival, load.rate)


def test_an_endpoint_takes_the_place_of_a_local_model(tmp_path: Path):
    """The model's name is not asked of a server that may serve another; a served name stays."""
    local = read(tmp_path, '[target]\nmodel = "tiny"\n', endpoint="http://x:1").target
    served = read(tmp_path, '[target]\nmodel = "m"\nendpoint = "http://y:1"\n', endpoint="http://x:1").target

    assert ("http://x:1", None) == (local.endpoint, local.model)
    assert ("http://x:1", "m") == (served.endpoint, served.model)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("[load]\nconcurrency = 0\n", r"line 2: `load.concurrency` cannot be 0"),
        ("[load]\n\nduration_s = -3.0\n", r"line 3: `load.duration_s` cannot be -3.0"),
        ("[load]\nrate = inf\n", r"line 2: `load.rate` cannot be inf"),
        ("[load]\nmax_error_rate = 10.0\n", r"line 2: `load.max_error_rate` cannot be 10.0"),
        ('[load]\nslo = "soon"\n', "'soon' is no limit"),
        ('[load]\narrival = "replay"\n', "a replay needs a trace"),
        ('[load]\nprompts = { file = "no.jsonl" }\n', "no.jsonl"),
        ('[target.wire]\nproxy = "http://me:hunter2@p:1"\n', "the --proxy is no usable URL"),
        ('[target]\nheaders = { "a b" = "x" }\n', "a --header is no"),
        ('name = "hog"\n[fault]\nuse = "scenarios.workloads.gil"\n', "causes a fault of its own"),
    ],
)
def test_values_that_no_flag_would_take(tmp_path: Path, text: str, phrase: str):
    """The ranges are those of the flags; a fault is not left out silently."""
    with pytest.raises(UsageError, match=phrase) as caught:
        read(tmp_path, text, endpoint="http://127.0.0.1:1")

    assert "hunter2" not in f"{caught.value.what}{caught.value.why}{caught.value.do}"


def test_a_body_takes_the_place_of_the_files_body(tmp_path: Path):
    """Whichever way either of them is given."""
    text = '[target]\napi = "http"\nendpoint = "http://x:1"\nbody_file = "picture"\n'

    target = read(tmp_path, text, body="x").target

    assert ("x", None) == (target.body, target.body_file)


def test_a_file_of_prompts_is_recognised(tmp_path: Path):
    """By its content, as with --prompts."""
    (tmp_path / "p.csv").write_text("prompt,max_tokens\nhello,3\n")

    load = read(tmp_path, f'[load.prompts]\nfile = "{tmp_path}/p.csv"\n', endpoint="http://127.0.0.1:1").load

    assert "csv" == load.prompts.source
