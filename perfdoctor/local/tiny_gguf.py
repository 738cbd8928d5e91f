"""A tiny model in llama.cpp's format. Needs the `gguf` package, which only the tests install."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfdoctor.local import tiny_tokenizer as vocabulary

if TYPE_CHECKING:
    from perfdoctor.local.tiny import TinyModel

_TOP_LEVEL = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_IN_BLOCK = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name: str) -> str:
    """`model.layers.3.mlp.up_proj.weight` -> `blk.3.ffn_up.weight`."""
    path, _, kind = name.rpartition(".")
    if path in _TOP_LEVEL:
        return f"{_TOP_LEVEL[path]}.{kind}"
    layer, _, part = path.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{_IN_BLOCK[part]}.{kind}"


def write_gguf(model: TinyModel, path: Path) -> None:
    """Matrices as float16, vectors as float32. Qwen2 needs no permutation for llama.cpp's RoPE."""
    import gguf
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    _add_shape(writer, model)
    _add_vocabulary(writer, model.tokenizer, gguf.TokenType)
    for name, tensor in model.tensors.items():
        kind = np.float32 if tensor.ndim == 1 else np.float16
        writer.add_tensor(gguf_name(name), np.ascontiguousarray(tensor, kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: Any, model: TinyModel) -> None:
    shape = model.shape
    writer.add_name("tiny")
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_vocab_size(shape.vocab)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.norm_eps)


def _add_vocabulary(writer: Any, tokenizer: Any, kinds: Any) -> None:
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    special = dict.fromkeys(vocabulary.CONTROL, kinds.CONTROL)
    special.update(dict.fromkeys(vocabulary.MARKERS, kinds.USER_DEFINED))
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    text_end = tokenizer.token_to_id(vocabulary.END_OF_TEXT)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([special.get(token, kinds.NORMAL) for token in tokens])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_eos_token_id(tokenizer.token_to_id(vocabulary.TURN_END))
    writer.add_bos_token_id(text_end)
    writer.add_pad_token_id(text_end)
    writer.add_add_bos_token(False)
    writer.add_chat_template(vocabulary.CHAT_TEMPLATE)
