"""`perfdoctor diagnose` on real servers whose truth is known. Classes and magnitudes, never figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e._command import diagnose, hits, signal
from tests.servers._server import Server

pytestmark = [pytest.mark.server, pytest.mark.alone]
FLAGS = ("-c", "4", "--duration", "10s")
FALSE = {"serial-server", "launch-bound-decode", "bandwidth-bound-decode", "slow-storage-load"}


def target(diagnosis: dict[str, Any]) -> dict[str, Any]:
    return dict(diagnosis["facts"]["target"])


def test_one_request_at_a_time_is_called_serial(
    transformers_plain: Server, tiny_model: Path, tmp_path: Path
) -> None:
    """Four users wait for each other, behind an echo of the prompt that hides it from naive clients."""
    found = diagnose(transformers_plain.url, *FLAGS, cwd=tmp_path)

    assert ("found", "scheduling") == (found["verdict"]["status"], found["verdict"]["class"])
    (serial,) = [f for f in found["findings"] if f["rule"] == "serial-server"]
    assert 0.4 < serial["share"] < 0.95  # three of four requests wait
    assert serial["fixes"]
    assert ("transformers-serve", str(tiny_model)) == (target(found)["engine"], target(found)["model"])
    assert transformers_plain.pid in target(found)["pids"]


def test_native_batching_server_is_accused_of_nothing(llamacpp: Server, tmp_path: Path) -> None:
    """Four slots for four users: well, or an honest `cannot say`; its own metrics were read."""
    found = diagnose(llamacpp.url, *FLAGS, cwd=tmp_path)

    assert not hits(found) & FALSE
    assert found["verdict"]["status"] in ("healthy", "insufficient_evidence")
    assert ("llama.cpp", "tiny", llamacpp.pid) == tuple(target(found)[k] for k in ("engine", "model", "pid"))
    assert "engine" not in {probe["probe"] for probe in found["unmeasured"]}
    batch = signal(found, "server.batch.mean")
    assert "the server's running gauge" == batch["source"]
    assert batch["value"] > 2


def test_continuous_batching_is_not_called_serial(transformers_cb: Server, tmp_path: Path) -> None:
    """Python serves four at a time; whether its host code sets the pace may be found or left open."""
    found = diagnose(transformers_cb.url, *FLAGS, cwd=tmp_path)

    assert not hits(found) & (FALSE - {"launch-bound-decode"})
    assert "transformers-serve" == target(found)["engine"]
    assert transformers_cb.pid in target(found)["pids"]
    assert signal(found, "gil.idle.share")["value"] < 0.3


def test_a_stranger_under_the_interpreter_lock_is_not_mistaken(
    transformers_hogged: Server, tmp_path: Path
) -> None:
    """A thread that does not serve holds the lock: that is the cause, and its own code not to blame."""
    found = diagnose(transformers_hogged.url, *FLAGS, cwd=tmp_path)

    assert signal(found, "gil.idle.share")["value"] >= 0.3
    assert not hits(found) & FALSE
    assert ("found", "gil") == (found["verdict"]["status"], found["verdict"]["class"])
    assert "threads that do not run the model hold Python's lock" in found["verdict"]["summary"]
