"""Sizes of a loaded model as TargetFacts: what one decode step must read and compute. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from perfdoctor.model import TargetFacts

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts of a decoder-only transformer. `parameters` counts a tied matrix once."""

    parameters: int
    embedding: int  # parameters of the input embedding
    tied: bool  # the output head is the input embedding
    layers: int
    kv_heads: int
    head_dim: int


def with_sizes(facts: TargetFacts, sizes: Sizes, dtype: str) -> TargetFacts:
    """Of the input embedding a step reads one row, so it counts only where it is the output head as well.

    Two floating-point operations a weight; attention's own work, which grows with the context, is left out
    (diagnosis reference, section 4). Keys and values are kept in the weights' dtype.
    """
    width = DTYPE_BYTES[dtype]
    stepped = sizes.parameters - (0 if sizes.tied else sizes.embedding)
    return msgspec.structs.replace(
        facts,
        parameters=sizes.parameters,
        dtype=dtype,
        weights_bytes=sizes.parameters * width,
        step_bytes=stepped * width,
        step_flops=2 * stepped,
        kv_bytes_per_token=2 * sizes.layers * sizes.kv_heads * sizes.head_dim * width,
        max_batch=1,
    )
