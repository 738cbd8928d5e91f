"""Weights, in closed form, of a Qwen2 network that behaves like a small reasoning model.

Nothing is trained. The residual stream of a token holds, in this order,

    row    hidden-4 numbers: log P(next token | this token) for the printable tokens, from a bigram count
    ONE    1, a constant to which the output head attaches biases
    CLOSE  1 on `</think>`, else 0
    SEEN   0; one attention head writes 1 here once `</think>` stands anywhere in the context
    PAD    whatever makes the vector's length the same for all tokens

so RMSNorm divides every vector by one known number, which the last norm's weight takes back: the logit of
a printable token is its log probability plus a constant. ONE, CLOSE and SEEN let `</think>` appear only
while reasoning (chance 1/REASONING_MEAN a step) and the end of turn only after at least one answer token
(chance 1/ANSWER_MEAN). All other matrices are noise: they cost the full work of the architecture and
reach the residual stream too weakly to be seen in a logit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfdoctor.local import tiny_tokenizer as vocabulary

Array = np.ndarray[Any, np.dtype[Any]]

REASONING_MEAN = 40.0  # tokens
ANSWER_MEAN = 80.0
DEPTH = 4.5  # a row spans +-DEPTH: e^-9 is the least chance that is told from zero
NEVER = -20.0  # logit of what must not be sampled; larger ones round too coarsely in bfloat16
FOCUS = 24.0  # attention score of `</think>`: e^24 outweighs a full context
NOISE = 0.02
FAINT = 2e-5  # of the projections that write to the residual stream; not 0, so that no zero can be skipped


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides how much a forward pass computes and reads."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    context: int = 8192
    rope_theta: float = 1e6
    norm_eps: float = 1e-6

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


@dataclass(frozen=True, slots=True)
class Bigrams:
    """`rows[t, j]` is log P(next = printable[j] | current = t), each row summing to one in probability."""

    printable: Array  # token ids
    rows: Array  # (vocab, len(printable)), float32


def count_bigrams(tokenizer: Any, texts: tuple[str, ...], vocab: int, printable: int) -> Bigrams:
    """Pairs counted over the texts, for the most frequent whole ASCII tokens as successors."""
    counts = np.zeros((vocab, vocab), np.float32)
    for encoding in tokenizer.encode_batch(list(texts)):
        ids = np.asarray(encoding.ids)
        np.add.at(counts, (ids[:-1], ids[1:]), 1)
    frequency = counts.sum(axis=0) * _whole_ascii(tokenizer, vocab)
    chosen = np.sort(np.argsort(-frequency, kind="stable")[:printable])
    # A token that has never been followed by anything falls back on plain frequency.
    backed_off = counts[:, chosen] + 0.5 * frequency[chosen] / frequency[chosen].sum()
    logs = np.log(backed_off / backed_off.sum(axis=1, keepdims=True))
    return Bigrams(chosen, _normalised(np.maximum(logs, -2 * DEPTH)).astype(np.float32))


def _whole_ascii(tokenizer: Any, vocab: int) -> Array:
    texts = tokenizer.decode_batch([[i] for i in range(vocab)], skip_special_tokens=True)
    return np.array([bool(t) and t.isascii() and t not in vocabulary.MARKERS for t in texts])


def _normalised(logs: Array) -> Array:
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


def stop_logit(mean_length: float) -> float:
    """Logit that wins one step in `mean_length` from the printable tokens, whose weights sum to e^DEPTH."""
    return DEPTH - math.log(mean_length - 1)


def build(shape: Shape, bigrams: Bigrams, close: int, end: int, seed: int) -> dict[str, Array]:
    """All tensors by their Qwen2 names. `close` and `end` are the ids of `</think>` and of the turn's end."""
    tensors = _noise(shape, np.random.default_rng(seed))
    one, closes, seen, _ = range(shape.hidden - 4, shape.hidden)
    embedding, rms = _embedding(shape, bigrams, close)
    tensors["model.embed_tokens.weight"] = embedding
    _attend_to_close(tensors, shape, rms, source=closes, target=seen)
    tensors["model.norm.weight"] = np.full(shape.hidden, rms, np.float32)
    head = np.zeros((shape.vocab, shape.hidden), np.float32)
    head[:, one] = NEVER
    head[bigrams.printable, np.arange(len(bigrams.printable))] = 1
    head[bigrams.printable, one] = 0
    reasoning, answer = stop_logit(REASONING_MEAN), stop_logit(ANSWER_MEAN)
    head[close, [one, seen]] = reasoning, NEVER - reasoning
    head[end, [one, seen, closes]] = NEVER, answer - NEVER, NEVER
    tensors["lm_head.weight"] = head
    return tensors


def _embedding(shape: Shape, bigrams: Bigrams, close: int) -> tuple[Array, float]:
    """(the table, the root mean square that every row of it has: a power of two, exact in bfloat16)."""
    table = np.zeros((shape.vocab, shape.hidden), np.float32)
    table[:, : bigrams.rows.shape[1]] = bigrams.rows + DEPTH
    table[:, -4] = 1
    table[close, -3] = 1
    squares = (table**2).sum(axis=1)
    rms = 2.0 ** math.ceil(math.log2(math.sqrt(squares.max() / shape.hidden)))
    table[:, -1] = np.sqrt(shape.hidden * rms**2 - squares)
    return table, rms


def _attend_to_close(tensors: dict[str, Array], shape: Shape, rms: float, source: int, target: int) -> None:
    """Query head 0 of layer 0 copies CLOSE of any earlier position to SEEN of this one.

    It works in the pair of dimensions that RoPE turns slowest: with theta 1e6 and 8,192 positions by
    less than 0.03 rad, so a constant query meets the key wherever it stands.
    """
    prefix = "model.layers.0.self_attn."
    first = slice(0, shape.head_dim)
    for part in "qkv":
        tensors[f"{prefix}{part}_proj.weight"][first] = 0
        tensors[f"{prefix}{part}_proj.bias"][first] = 0
    side = math.sqrt(FOCUS * math.sqrt(shape.head_dim))  # undoes attention's 1/sqrt(head_dim)
    slowest = shape.head_dim // 2 - 1
    tensors[f"{prefix}q_proj.bias"][slowest] = side
    tensors[f"{prefix}k_proj.weight"][slowest, source] = side * rms
    tensors[f"{prefix}v_proj.weight"][0, source] = rms
    tensors[f"{prefix}o_proj.weight"][:, first] = 0
    tensors[f"{prefix}o_proj.weight"][target, 0] = 1


def _noise(shape: Shape, random: np.random.Generator) -> dict[str, Array]:
    def normal(scale: float, *size: int) -> Array:
        return random.standard_normal(size, np.float32) * np.float32(scale)

    hidden, ffn, kv = shape.hidden, shape.ffn, shape.kv_heads * shape.head_dim
    tensors: dict[str, Array] = {"model.embed_tokens.weight": np.empty(0)}
    for layer in range(shape.layers):
        block = {
            "input_layernorm.weight": np.ones(hidden, np.float32),
            "post_attention_layernorm.weight": np.ones(hidden, np.float32),
            "self_attn.o_proj.weight": normal(FAINT, hidden, hidden),
            "mlp.gate_proj.weight": normal(NOISE, ffn, hidden),
            "mlp.up_proj.weight": normal(NOISE, ffn, hidden),
            "mlp.down_proj.weight": normal(FAINT, hidden, ffn),
        }
        for part, rows in (("q", hidden), ("k", kv), ("v", kv)):
            block[f"self_attn.{part}_proj.weight"] = normal(NOISE, rows, hidden)
            block[f"self_attn.{part}_proj.bias"] = normal(NOISE, rows)
        tensors.update({f"model.layers.{layer}.{name}": tensor for name, tensor in block.items()})
    return tensors
