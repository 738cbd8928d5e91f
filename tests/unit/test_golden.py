"""Golden runs are judged as a person has checked them to be; the trimmer keeps what judging needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfdoctor import store
from perfdoctor.model import HostFacts, Sample, Target
from tests import factories as make
from tests.golden import trim

FOLDER = Path(__file__).parents[1] / "golden"
RUNS = sorted(path.parent for path in FOLDER.glob("*/run.json"))


# Runs whose cause is known and not yet found. Take a name out when its run is judged right: the test insists.
OPEN: dict[str, str] = {}


def run_parameters() -> list[Any]:
    return [
        pytest.param(
            path, marks=pytest.mark.xfail(reason=OPEN[path.name], strict=True) if path.name in OPEN else ()
        )
        for path in RUNS
    ]


@pytest.mark.parametrize("path", run_parameters(), ids=[path.name for path in RUNS])
def test_a_golden_run_is_judged_as_before(path: Path):
    """What expected.json names of class, first rule, confidence and trust."""
    expected = json.loads((path / "expected.json").read_text())
    judged = trim.judged(store.open_run(path))

    assert expected == {key: judged[key] for key in expected}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_a_golden_run_stays_small(path: Path):
    """Many will be kept."""
    assert sum(file.stat().st_size for file in path.iterdir()) <= 300_000


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_a_golden_run_names_no_machine_and_no_person(path: Path):
    """Host name replaced, no home folder, no temporary folder."""
    text = "".join(file.read_text() for file in path.glob("*.json*"))

    assert "host" == store.open_run(path).facts.host.hostname
    assert not [word for word in ("/root/", "/home/", "/tmp/") if word in text]


def write_run(folder: Path) -> store.Run:
    """A serial server under 4 users, its probes at 5 Hz, with names in it that nobody should see."""
    run_facts = make.facts(
        argv=("diagnose", "--model", "/home/jane/models/m", "-o", "/tmp/secret-place/run"),
        host=HostFacts(hostname="janes-box", cores=2),
        scenario=make.Scenario(target=Target(endpoint="http://gpu7.corp.example:8000")),
        target=make.TargetFacts(url="http://gpu7.corp.example:8000", model_path="/home/jane/models/m"),
    )
    writer = store.create_run(run_facts, folder)
    for record in (*make.baseline_requests(), *make.serial_requests(36)):
        writer.append_request(record)
    samples = (*make.counters("cpu", start_s=0.0, host_busy_s=1.5), *make.serving_thread(0.9))
    for sample in samples:
        writer.append_sample(sample)
    writer.append_stacks("main;generate (/home/jane/app.py:3) 7")
    writer.log("janes-box /home/jane")
    writer.seal(state="complete")
    return store.open_run(folder)


def test_trimming_keeps_the_verdict_and_every_request(tmp_path: Path):
    """Half the size, the same judgement."""
    run = write_run(tmp_path / "run")
    size = sum(file.stat().st_size for file in run.path.iterdir())

    trim.trim(run, tmp_path / "out", size // 2)
    after = store.open_run(tmp_path / "out")

    assert trim.judged(run) == trim.judged(after)
    assert len(run.read_requests()) == len(after.read_requests())
    assert len(after.read_samples()) < len(run.read_samples())
    assert sum(file.stat().st_size for file in after.path.iterdir()) <= size // 2


def test_trimming_leaves_no_name_behind(tmp_path: Path):
    """Host, user, folders and a server's host name are in no byte of the golden folder."""
    trim.trim(write_run(tmp_path / "run"), tmp_path / "out", 300_000)

    written = b"".join(file.read_bytes() for file in (tmp_path / "out").iterdir())
    for word in (b"jane", b"corp", b"secret-place"):
        assert word not in written
    assert "http://server.example:8000" == store.open_run(tmp_path / "out").facts.target.url


def test_a_run_that_cannot_be_trimmed_enough_is_refused(tmp_path: Path):
    """Requests are never dropped to make it fit."""
    with pytest.raises(ValueError, match="larger than 1000 bytes"):
        trim.trim(write_run(tmp_path / "run"), tmp_path / "out", 1000)

    assert not (tmp_path / "out").exists()


def test_thinning_keeps_ends_edges_and_telemetry():
    """Of 0..9, with an edge between 4 and 5: every fourth, both sides of the edge, and the last."""
    series = [make.sample("cpu", float(i), busy_s=i) for i in range(10)]
    told = [make.sample("serve", float(i), {"request": "1"}, done_s=i) for i in range(10)]

    kept = trim.thin([*series, *told], edges=(4.5,), every={"cpu": 4})

    assert [0, 4, 5, 8, 9] == [s.at_s for s in kept if s.probe == "cpu"]
    assert 10 == len([s for s in kept if s.probe == "serve"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/jane/m/model.safetensors", "/golden/model.safetensors"),
        ("see /root/x/log.txt: broken", "see /golden/log.txt: broken"),
        ("cat /proc/41/stat", "cat /proc/41/stat"),
        ("http://127.0.0.1:8000/v1/models", "http://127.0.0.1:8000/v1/models"),
        ("janes-box is it", "host is it"),
        ("janes-boxer", "janes-boxer"),
        ("MB/s and req/s", "MB/s and req/s"),
    ],
)
def test_paths_and_names_are_replaced_and_nothing_else(text: str, expected: str):
    """The kernel's files and loopback URLs stay readable."""
    assert [expected] == trim.without_paths([text], {"janes-box": "host"})


def test_nulls_read_back_the_same():
    """Left out, a missing value is still missing."""
    sample = Sample(at_s=1.23456789, probe="cpu", values={"a": None, "b": 0.0})

    again = msgspec.convert(trim.compact(msgspec.to_builtins(sample)), Sample)

    assert (1.234568, None, 0.0) == (again.at_s, again.values.get("a"), again.values["b"])
