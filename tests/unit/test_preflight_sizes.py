"""Sizes of a model from the headers of its files, and where those files lie."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from perfdoctor.preflight.discover import eager, roof_refused
from perfdoctor.preflight.gguf import measure_gguf
from perfdoctor.preflight.processes import Processes, locate
from perfdoctor.preflight.weights import Tensor, measure_folder, read_header, sizes, weight_files

CONFIG = {"num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 256}


def tensor(name: str, elements: int, kind: str = "BF16", size: int = 2) -> Tensor:
    return Tensor(name, elements, elements * size, kind)


def write_safetensors(path: Path, shapes: dict[str, list[int]]) -> None:
    header, at = {}, 0
    for name, shape in shapes.items():
        length = 2 * shape[0] * shape[1]
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + length]}
        at += length
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + b"\0" * at)


def test_an_untied_embedding_is_looked_up() -> None:
    """A step reads all but the input embedding, once; two operations for each weight."""
    found = sizes(CONFIG, [tensor("model.embed_tokens.weight", 100), tensor("lm_head.weight", 100)], 400)

    assert (200, 400, 200, 200) == (
        found.parameters,
        found.weights_bytes,
        found.step_bytes,
        found.step_flops,
    )


@pytest.mark.parametrize("stored_head", [True, False])
def test_a_tied_embedding_is_read_as_the_head(stored_head: bool) -> None:
    """Tied weights count once, whether or not the file repeats them."""
    head = [tensor("lm_head.weight", 100)] if stored_head else []

    found = sizes(
        {**CONFIG, "tie_word_embeddings": stored_head}, [tensor("model.embed_tokens.weight", 100), *head], 0
    )

    assert (100, 200) == (found.parameters, found.step_bytes)


def test_only_active_experts_are_read() -> None:
    """2 of 8 experts: a quarter of their bytes."""
    config = {**CONFIG, "num_local_experts": 8, "num_experts_per_tok": 2}

    found = sizes(config, [tensor("layers.0.mlp.experts.0.w", 800), tensor("layers.0.norm", 10)], 0)

    assert 2 * (200 + 10) == found.step_bytes
    assert 2 * 810 == found.weights_bytes


def test_packed_weights_hide_the_parameter_count() -> None:
    """Quantised integers: bytes are known, parameters and FLOPs are not."""
    found = sizes(CONFIG, [tensor("layers.0.qweight", 100, "I32", 4)], 400)

    assert (None, 400, None) == (found.parameters, found.weights_bytes, found.step_flops)


def test_another_dtype_at_load_changes_the_bytes() -> None:
    """Loaded as float32, bf16 files take twice the memory, also for keys and values."""
    stored = sizes(CONFIG, [tensor("w", 100)], 200)
    wide = sizes(CONFIG, [tensor("w", 100)], 200, "float32")

    assert ("bfloat16", 200) == (stored.dtype, stored.weights_bytes)
    assert ("float32", 400, 200) == (wide.dtype, wide.weights_bytes, wide.file_bytes)
    assert 2 * (stored.kv_bytes_per_token or 0) == wide.kv_bytes_per_token


@pytest.mark.parametrize(
    ("expected", "config"),
    [
        (2 * 2 * 2 * 32 * 2, CONFIG),
        (2 * 2 * 2 * 128 * 2, {**CONFIG, "head_dim": 128}),
        (None, {**CONFIG, "kv_lora_rank": 512}),
        (None, {}),
    ],
)
def test_cache_of_one_token(expected: int | None, config: dict[str, Any]) -> None:
    """Key and value x layers x heads x width x bytes; unknown for other kinds of attention."""
    assert expected == sizes(config, [tensor("w", 1)], 2).kv_bytes_per_token


def test_only_the_files_of_the_index_count(tmp_path: Path) -> None:
    """A second copy of the weights in the folder is not loaded, so it is not measured."""
    write_safetensors(tmp_path / "model-1.safetensors", {"a": [10, 10]})
    write_safetensors(tmp_path / "consolidated.safetensors", {"a": [10, 10]})
    index = {"weight_map": {"a": "model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))

    found = measure_folder(tmp_path)

    assert (tmp_path / "model-1.safetensors",) == weight_files(tmp_path)
    assert found is not None
    assert 100 == found.parameters


@pytest.mark.parametrize("raw", [b"", b"\1\0", struct.pack("<Q", 2**60), struct.pack("<Q", 9) + b"{broken}}"])
def test_a_broken_file_gives_no_sizes(tmp_path: Path, raw: bytes) -> None:
    """Discovery goes on without sizes; nothing large is read."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors").write_bytes(raw)

    with pytest.raises(ValueError):
        read_header(tmp_path / "model.safetensors")
    assert measure_folder(tmp_path) is None


@pytest.mark.parametrize("raw", [b"", b"GGUF", b"GGUF" + struct.pack("<IQQ", 3, 2**60, 1), b"PK" * 40])
def test_a_broken_gguf_gives_no_sizes(tmp_path: Path, raw: bytes) -> None:
    """A file that only looks like GGUF is no reason to stop."""
    file = tmp_path / "m.gguf"
    file.write_bytes(raw)

    assert measure_gguf(file) is None
    assert measure_gguf(tmp_path / "absent.gguf") is None


# --------------------------------------------------------------------------------- places


def test_a_relative_path_starts_at_the_server(tmp_path: Path) -> None:
    """`vllm serve models/x` means a folder under the server's working directory."""
    (tmp_path / "models" / "x").mkdir(parents=True)

    assert tmp_path / "models" / "x" == locate("models/x", Processes(folder=tmp_path))
    assert locate("models/x", Processes()) is None


def test_a_hub_name_lies_in_the_server_s_cache(tmp_path: Path) -> None:
    """The cache is the one of the server's environment, not ours."""
    snapshot = tmp_path / "hub" / "models--Org--Name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)

    found = locate("Org/Name", Processes(folder=tmp_path, environment={"HF_HOME": str(tmp_path)}))

    assert snapshot == found
    assert locate("Org/Other", Processes(folder=tmp_path, environment={"HF_HOME": str(tmp_path)})) is None


@pytest.mark.parametrize(
    ("experts", "command", "word"),
    [
        (False, ["vllm", "serve", "m"], None),
        (False, ["vllm", "serve", "m", "--tensor-parallel-size", "1"], None),
        (True, ["vllm", "serve", "m"], "experts"),
        (False, ["vllm", "serve", "m", "--tensor-parallel-size", "2"], "2 devices"),
        (False, ["vllm", "serve", "m", "--speculative-config", "{}"], "speculative"),
        (False, ["llama-server", "-m", "m", "--draft-max", "4"], "speculative"),
    ],
)
def test_a_roof_is_refused_where_bytes_are_no_limit(experts, command, word):
    """Experts, speculation and several devices each break the arithmetic."""
    found = roof_refused(experts, command)

    assert (word is None and found is None) or (found is not None and word in found)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("vllm", "serve", "m", "--enforce-eager"), True),
        (("python", "-m", "sglang.launch_server", "--disable-cuda-graph"), True),
        (("vllm", "serve", "m"), None),
        ((), None),
    ],
)
def test_graphs_are_off_where_the_command_line_says_so(
    command: tuple[str, ...], expected: bool | None
) -> None:
    """Without the flag they may still be: by a file of settings or a variable."""
    assert expected is eager(command)
