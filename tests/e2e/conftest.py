"""Real servers, each started once a session, on free loopback ports; their logs lie in the session's tmp."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import _models, transformers_serve
from tests.servers import llamacpp as llamacpp_program
from tests.servers._server import Server


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """Folder of the tiny model with real weights, tokenizer and chat template."""
    return _models.tiny()


@pytest.fixture(scope="session")
def tiny_gguf() -> Path:
    pytest.importorskip("gguf")
    return _models.gguf()


@pytest.fixture(scope="session")
def server_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def llamacpp(tiny_gguf: Path, server_logs: Path) -> Iterator[Server]:
    """llama.cpp with 4 slots and one compute thread."""
    pytest.importorskip("xllamacpp")
    with llamacpp_program.serving(tiny_gguf, server_logs / "llamacpp.log", slots=4) as server:
        yield server


@pytest.fixture(scope="session")
def transformers_plain(tiny_model: Path, server_logs: Path) -> Iterator[Server]:
    """`transformers serve`, one request after another."""
    with transformers_serve.serving(tiny_model, server_logs / "transformers-plain.log") as server:
        yield server


@pytest.fixture
def transformers_hogged(tiny_model: Path, server_logs: Path) -> Iterator[Server]:
    """Continuous batching beside a thread that spins under the interpreter lock half of the time."""
    log, when = server_logs / "transformers-hogged.log", server_logs / "hog"
    fault = transformers_serve.gil_hog(when)
    with transformers_serve.serving(tiny_model, log, batching=True, fault=fault) as server:
        when.touch()
        yield server


@pytest.fixture(scope="session")
def transformers_cb(tiny_model: Path, server_logs: Path) -> Iterator[Server]:
    """`transformers serve` with continuous batching, warmed up at temperature 1, which then sticks."""
    log = server_logs / "transformers-cb.log"
    with transformers_serve.serving(tiny_model, log, batching=True) as server:
        yield server
