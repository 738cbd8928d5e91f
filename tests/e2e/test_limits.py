"""What this machine runs out of before a server does: open files and local ports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import truth
from tests.servers._server import ROOT

pytestmark = pytest.mark.server

# An open loop without a cap, and its driver's health, as one line of JSON.
OPEN_LOOP = """
import json, sys
from collections import Counter
from perfdoctor import trust
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, Target
records = []
load = Load(arrival="constant", rate=100.0, drain_s=0.5)
async def inside():
    async with Driver(Target(endpoint=sys.argv[1]), load, Clock(), records.append) as driver:
        await driver.run_stage(Stage("warmup", 1, requests=1))
        await driver.run_stage(Stage("steady", None, duration_s=1.0))
        assert not driver.aborted, driver.aborted
        return driver.client_facts()
facts = loop.run(inside())
print(json.dumps({
    "outcomes": Counter(r.outcome for r in records if r.phase == "steady"),
    "errors": sorted({r.error for r in records if r.error}),
    "trust": trust.judge(facts, records).status, "fds": [facts.fds_open, facts.fds_limit],
    "ports": [facts.ports_used, facts.ports_limit],
}))
"""


def open_loop(url: str, *prefix: str) -> dict:
    done = subprocess.run(
        [*prefix, sys.executable, "-c", OPEN_LOOP, url],
        capture_output=True, text=True, timeout=60, cwd=ROOT, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def test_more_users_than_open_files_is_refused_at_once(tmp_path: Path) -> None:
    """Before a run folder is made, with the command that would allow it."""
    done = subprocess.run(
        [
            *("prlimit", "--nofile=150:150", sys.executable, "-m", "perfdoctor", "load-test"),
            *("--endpoint", "http://127.0.0.1:9", "-c", "200", "-n", "200"),
        ],
        env={**os.environ, "PERFDOCTOR_RUNS": str(tmp_path / "runs")},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert 2 == done.returncode
    assert "needs 300 open files" in done.stderr and "ulimit -Hn 300" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_the_soft_limit_alone_stops_nobody() -> None:
    """It is raised to what the load needs."""
    with truth.serving("--tokens", "1", "--ttft-ms", "5") as server:
        found = open_loop(server.url, "prlimit", "--nofile=40:4000")

    assert {"ok": 100} == found["outcomes"]
    assert 4000 == found["fds"][1]


def test_an_open_loop_that_runs_out_of_files_blames_the_client() -> None:
    """The connects fail here, are counted as such, and the run is no verdict on the server."""
    with truth.serving("--ttft-ms", "1500") as server:
        found = open_loop(server.url, "prlimit", "--nofile=60:60")

    assert 100 == sum(found["outcomes"].values())
    assert found["outcomes"]["connect"] > 20
    assert any("open files" in error for error in found["errors"]), found["errors"]
    assert "invalid" == found["trust"]


@pytest.mark.root
def test_an_open_loop_that_runs_out_of_ports_blames_the_client() -> None:
    """Forty local ports, a hundred requests that stay open."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("a port range of its own needs root, unshare and iproute2")
    prepare = (
        "ip link set lo up && echo 40000 40039 > /proc/sys/net/ipv4/ip_local_port_range && "
        f"{sys.executable} -m tests.servers.truth --port 8000 --ttft-ms 1500 >/dev/null & "
        'server=$!; sleep 1.5; "$@"; code=$?; kill $server; exit $code'
    )
    found = open_loop("http://127.0.0.1:8000", "unshare", "-n", "sh", "-c", prepare, "sh")

    assert 100 == sum(found["outcomes"].values())
    assert 60 == pytest.approx(found["outcomes"]["connect"], abs=3)
    assert [40, 40] == found["ports"]
    assert "invalid" == found["trust"]
