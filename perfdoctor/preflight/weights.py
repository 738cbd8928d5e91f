"""Sizes of a model from its files' headers: parameters, bytes, work per decode step. Reads no weights.

safetensors: https://github.com/huggingface/safetensors#format. GGUF files are in gguf.py.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADER_LIMIT = 100 * 2**20  # the format's own limit

# (name, bytes) of an element by safetensors' type name
TYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
}
BYTES = dict(TYPES.values())
INPUT_EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "word_embeddings.weight", "tok_embeddings.weight")
OUTPUT_HEADS = ("lm_head.weight", "embed_out.weight")


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    elements: int
    bytes: int
    type: str  # as the file names it


@dataclass(frozen=True, slots=True)
class Weights:
    """Byte and FLOP counts are those of TargetFacts. None: cannot be told from the headers."""

    parameters: int | None = None
    dtype: str | None = None
    weights_bytes: int | None = None
    file_bytes: int | None = None
    step_bytes: int | None = None
    step_flops: int | None = None
    kv_bytes_per_token: int | None = None
    experts: bool = False  # a token uses only some of the weights


def measure_folder(folder: Path, dtype: str | None = None) -> Weights | None:
    """Sizes of a Hugging Face folder, loaded as `dtype` (None: as stored). None when it is no such folder."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        files = weight_files(folder)
        tensors = [tensor for file in files for tensor in read_header(file)]
        file_bytes = sum(file.stat().st_size for file in files)
    except (OSError, ValueError):
        return None
    if not tensors or not isinstance(config, dict):
        return None
    return sizes(config.get("text_config", config), tensors, file_bytes, dtype)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The files that a loader reads: those of the index; else the one usual name; else all."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
        return tuple(folder / name for name in sorted(names))
    single = folder / "model.safetensors"
    return (single,) if single.is_file() else tuple(sorted(folder.glob("*.safetensors")))


def read_header(file: Path) -> tuple[Tensor, ...]:
    """The tensors of a safetensors file. ValueError when the header is broken."""
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= HEADER_LIMIT:
            raise ValueError(f"{file.name} is no safetensors file")
        header = json.loads(stream.read(length))
    return tuple(_tensor(name, entry) for name, entry in header.items() if name != "__metadata__")


def _tensor(name: str, entry: Mapping[str, Any]) -> Tensor:
    elements = 1
    for side in entry["shape"]:
        elements *= side
    first, last = entry["data_offsets"]
    return Tensor(name, elements, last - first, entry["dtype"])


def sizes(
    config: Mapping[str, Any], tensors: Iterable[Tensor], file_bytes: int, dtype: str | None = None
) -> Weights:
    """The arithmetic. A decode step reads every weight once, but of the input embedding one row only; of a
    mixture of experts the active experts only (one sequence). Each weight read is one multiply and one add.

    Packed (quantised) integer weights hide the parameter count: it and the FLOPs are then None.
    """
    stored = tuple(tensors)
    packed = any(t.type not in TYPES for t in stored)
    scale = BYTES[dtype] if dtype in BYTES and not packed else None

    def in_memory(t: Tensor) -> int:
        return t.elements * scale if scale else t.bytes

    heads = [t for t in stored if t.name.endswith(OUTPUT_HEADS)]
    tied = config.get("tie_word_embeddings") is True or not heads
    if tied:
        stored = tuple(t for t in stored if t not in heads)
    read = [t for t in stored if tied or not t.name.endswith(INPUT_EMBEDDINGS)]
    active = _active_share(config)
    share = {t.name: active if ".experts." in t.name else 1.0 for t in read}
    largest = max(stored, key=lambda t: t.bytes)
    kind = dtype if scale else TYPES.get(largest.type, (largest.type.lower(), 0))[0]
    return Weights(
        parameters=None if packed else sum(t.elements for t in stored),
        dtype=kind,
        weights_bytes=sum(in_memory(t) for t in stored),
        file_bytes=file_bytes,
        step_bytes=round(sum(in_memory(t) * share[t.name] for t in read)),
        step_flops=None if packed else round(sum(2 * t.elements * share[t.name] for t in read)),
        kv_bytes_per_token=kv_bytes(config, BYTES.get(kind or "", 2)),
        experts=active < 1.0,
    )


def kv_bytes(config: Mapping[str, Any], element_bytes: int) -> int | None:
    """Key and value of one token in all layers. None for attention that caches something else (MLA)."""
    layers, heads = config.get("num_hidden_layers"), config.get("num_attention_heads")
    if not layers or not heads or "kv_lora_rank" in config:
        return None
    head_dim = config.get("head_dim") or config.get("hidden_size", 0) // heads
    kv_heads = config.get("num_key_value_heads") or heads
    return 2 * int(layers) * int(kv_heads) * int(head_dim) * element_bytes or None


def _active_share(config: Mapping[str, Any]) -> float:
    """Share of the expert weights that one token uses; 1 where there are none."""
    experts = config.get("num_local_experts") or config.get("num_experts") or config.get("n_routed_experts")
    chosen = config.get("num_experts_per_tok")
    return min(chosen / experts, 1.0) if experts and chosen else 1.0
