"""Discovery against real servers that somebody else started."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor.clock import Clock
from perfdoctor.errors import UnknownModel
from perfdoctor.local.launch import launch
from perfdoctor.model import Target, TargetFacts
from perfdoctor.preflight import discover, find_local_server
from tests.servers._server import Server

pytestmark = pytest.mark.server


def look(endpoint: str, model: str | None = None) -> TargetFacts:
    return discover(Target(endpoint=endpoint, model=model), None)


def test_llamacpp_is_recognised(llamacpp: Server, tiny_gguf: Path) -> None:
    """Engine, version, model, slots and file of llama.cpp come from its own endpoints."""
    facts = look(llamacpp.url)

    assert ("llama.cpp", "tiny", 4) == (facts.engine, facts.model, facts.max_batch)
    assert "llamacpp" in (facts.engine_source or "")
    assert facts.engine_version
    assert str(tiny_gguf) == facts.model_path
    assert llamacpp.url == facts.url


def test_llamacpp_sizes_come_from_the_file(llamacpp: Server, tiny_gguf: Path) -> None:
    """The GGUF header tells parameters and the bytes of a step, in which the embedding is only looked up."""
    facts = look(llamacpp.url)

    assert tiny_gguf.stat().st_size == facts.file_bytes
    assert 2_164_736 == facts.parameters
    assert facts.step_bytes is not None
    assert facts.weights_bytes is not None
    assert 0.5 * facts.weights_bytes < facts.step_bytes < facts.weights_bytes


def test_processes_are_found_from_the_port(llamacpp: Server) -> None:
    """The process that listens is the one that was started, and it heads its tree."""
    facts = look(llamacpp.url)

    assert llamacpp.pid == facts.pid
    assert llamacpp.pid == facts.pids[0]
    assert not facts.remote


@pytest.mark.parametrize("shape", ["{}", "{}/", "{}/v1", "{}/v1/"])
def test_endpoint_may_be_written_in_any_way(llamacpp: Server, shape: str) -> None:
    """With or without /v1 and a slash, the root found is the same."""
    facts = look(shape.format(llamacpp.url))

    assert llamacpp.url == facts.url


def test_scheme_may_be_left_out(llamacpp: Server) -> None:
    """host:port means http."""
    facts = look(llamacpp.url.removeprefix("http://"))

    assert llamacpp.url == facts.url


def test_llamacpp_accepts_any_name_and_says_so(llamacpp: Server) -> None:
    """llama.cpp answers under every name; the facts hold the real one and the reason."""
    facts = look(llamacpp.url, "no-such-model")

    assert "tiny" == facts.model
    assert "ignores model names" in (facts.engine_source or "")


def test_transformers_plain_is_recognised(transformers_plain: Server, tiny_model: Path) -> None:
    """One request at a time; the model's folder is the served name."""
    facts = look(transformers_plain.url)

    assert ("transformers-serve", str(tiny_model), 1) == (facts.engine, facts.model, facts.max_batch)
    assert str(tiny_model.resolve()) == facts.model_path
    assert transformers_plain.pid == facts.pid
    assert ("bfloat16", "cpu") == (facts.dtype, facts.device)


def test_transformers_sizes_come_from_the_folder(transformers_plain: Server, tiny_model: Path) -> None:
    """Parameters and bytes are those of the safetensors header."""
    facts = look(transformers_plain.url)

    assert (2_164_736, 2 * 2_164_736) == (facts.parameters, facts.weights_bytes)
    assert (tiny_model / "model.safetensors").stat().st_size == facts.file_bytes
    assert 2 * 2 * 2 * 32 * 2 == facts.kv_bytes_per_token  # key and value, layers, heads, width, bytes


def test_continuous_batching_is_not_called_serial(transformers_cb: Server) -> None:
    """With batching the limit is not told, so it is unknown and not 1."""
    facts = look(transformers_cb.url)

    assert "transformers-serve" == facts.engine
    assert facts.max_batch is None


def test_unknown_model_lists_the_known(transformers_plain: Server) -> None:
    """A name the server does not have is refused before any load, with the names it has."""
    with pytest.raises(UnknownModel) as caught:
        look(transformers_plain.url, "no-such-model")

    assert transformers_plain.model in caught.value.why
    assert transformers_plain.model in caught.value.do


def test_a_server_on_a_usual_port_is_found(llamacpp: Server) -> None:
    """The search stops at the first port that serves models, and tells what it saw before."""
    port = int(llamacpp.url.rpartition(":")[2])

    found = find_local_server((1, port, 2))

    assert llamacpp.url == found.url
    assert ("1 closed", f"{port} serves models") == found.tried


def test_our_own_local_server_is_recognised() -> None:
    """A local server that another run started is known for what it is: it serves one request at a time."""
    server = launch("tiny", Clock(), emit=lambda _: None, log=lambda _: None)
    try:
        facts = look(server.url)
    finally:
        server.stop()

    assert ("perfdoctor-local", "tiny", 1) == (facts.engine, facts.model, facts.max_batch)
    assert server.pid == facts.pid
