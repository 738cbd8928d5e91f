"""A server on another host, played by a network namespace of its own: only what latency shows is judged."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scenarios.workloads import Unavailable, _link
from tests.e2e._command import diagnose, hits, perfdoctor, signal
from tests.servers import truth

pytestmark = [pytest.mark.server, pytest.mark.root, pytest.mark.alone]
FLAGS = ("-c", "4", "--duration", "5s")
HOST_PROBES = {"cpu", "disk", "gil", "gpu", "io", "memory"}


@pytest.fixture(scope="module")
def remote() -> Iterator[truth.Truth]:
    """Behind a virtual cable, at an address that no interface of this side has."""
    flags = ("--ttft-ms", "20", "--gap-ms", "5", "--tokens", "16")
    with contextlib.ExitStack() as stack:
        try:
            host, prefix = stack.enter_context(_link.another_host())
        except Unavailable as reason:
            pytest.skip(str(reason))
        yield stack.enter_context(truth.serving(*flags, host=host, prefix=prefix))


def test_host_probes_say_that_the_server_is_elsewhere(remote: truth.Truth, tmp_path: Path) -> None:
    """Each is unsupported with that reason and a way out; nothing of this host is taken for the server's, and
    what could not be judged from outside is named."""
    found = diagnose(remote.url, *FLAGS, cwd=tmp_path)

    unmeasured = {p["probe"]: p for p in found["unmeasured"]}
    assert set(unmeasured) >= HOST_PROBES
    for name in HOST_PROBES:
        assert "unsupported" == unmeasured[name]["status"]
        assert "another host" in unmeasured[name]["why"]
        assert unmeasured[name]["enable"]
    assert found["facts"]["target"]["remote"]
    assert not found["facts"]["target"]["pids"]
    assert not found["facts"]["calibration"]
    assert all(signal(found, n)["value"] is None for n in ("cpu.serving.busy.share", "roof.achievable.rate"))
    assert ("healthy", set()) == (found["verdict"]["status"], hits(found))
    unknown = {r["rule"] for r in found["rules"] if r["status"] == "unknown"}
    assert {"launch-bound-decode", "bandwidth-bound-decode"} <= unknown
    assert "launch-bound-decode" in found["verdict"]["summary"]


def test_a_serial_remote_server_is_found_from_latency_alone(remote: truth.Truth, tmp_path: Path) -> None:
    """Waiting shows from outside: the time to the first token grows with the users, the tokens do not."""
    found = diagnose(remote.timed(slots=1, ttft_ms=20, gap_ms=5, tokens=16), *FLAGS, cwd=tmp_path)

    assert ("found", "scheduling") == (found["verdict"]["status"], found["verdict"]["class"])
    assert (
        "TTFT under load minus TTFT of one request at a time" == signal(found, "server.queue.share")["source"]
    )
    assert 0.5 < signal(found, "server.queue.share")["value"] < 0.9


def test_check_says_the_same_without_load(remote: truth.Truth, tmp_path: Path) -> None:
    """`perfdoctor check --endpoint` on a remote server."""
    _, states, _ = perfdoctor("check", "--endpoint", remote.url, cwd=tmp_path)

    assert {p["probe"] for p in states if p["status"] == "unsupported"} >= HOST_PROBES
