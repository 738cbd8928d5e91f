"""The models behind `--model tiny`: made here, once, with no download, in a second or a few.

Every one is an ordinary folder that any engine loads as a Qwen2 checkpoint. Sampled at temperature 1 it
reasons, closes `</think>`, answers and stops by itself (see tiny_weights); greedy it loops until max_tokens.
The bytes depend on the preset, the seed, the Python version (its own documentation is the corpus) and the
version of `tokenizers`.

    python -m perfdoctor.local.tiny --out DIR [--preset medium] [--seed 0] [--gguf FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfdoctor.local import tiny_tokenizer as vocabulary
from perfdoctor.local import tiny_weights as weights
from perfdoctor.local.weights_file import write_bfloat16

FORMAT = 1  # part of the cache folder's name: raise it when the same seed no longer gives the same bytes

PRESETS = {
    "tiny": weights.Shape(vocab=2048, hidden=256, layers=2, heads=8, kv_heads=2, ffn=512),
    "medium": weights.Shape(vocab=4096, hidden=512, layers=8, heads=8, kv_heads=2, ffn=1536),
    "small": weights.Shape(vocab=8192, hidden=1024, layers=12, heads=16, kv_heads=4, ffn=4096),
}  # 2.2, 28.3 and 199.3 million parameters


@dataclass(frozen=True, slots=True)
class TinyModel:
    shape: weights.Shape
    tokenizer: Any  # tokenizers.Tokenizer
    tensors: dict[str, weights.Array]


def make(preset: str = "tiny", seed: int = 0) -> TinyModel:
    """The model in memory. `small` needs about 1.5 GB while it is made."""
    shape = PRESETS[preset]
    texts = vocabulary.corpus()
    tokenizer = vocabulary.train(texts, shape.vocab)
    bigrams = weights.count_bigrams(tokenizer, texts, shape.vocab, shape.hidden - 4)
    close, end = (tokenizer.token_to_id(t) for t in (vocabulary.THINK_END, vocabulary.TURN_END))
    return TinyModel(shape, tokenizer, weights.build(shape, bigrams, close, end, seed))


def write(model: TinyModel, folder: Path) -> None:
    """A Hugging Face model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    model.tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", vocabulary.tokenizer_config(model.shape.context))
    _write_json(folder / "config.json", _config(model))
    _write_json(folder / "generation_config.json", _generation_config(model.tokenizer))
    write_bfloat16(folder / "model.safetensors", model.tensors)


def write_atomically(model: TinyModel, folder: Path) -> Path:
    """The folder appears complete or not at all; when another process was first, its result stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write(model, draft / "model")
        (draft / "model").rename(folder)
    except OSError:
        if not is_complete(folder):
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def is_complete(folder: Path) -> bool:
    return (folder / "model.safetensors").is_file()


def cache_folder(preset: str) -> Path:
    """Where `--model tiny:PRESET` is kept; XDG_CACHE_HOME decides."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "perfdoctor" / "models" / f"tiny-{preset}-{FORMAT}"


def _config(model: TinyModel) -> dict[str, Any]:
    shape, token = model.shape, model.tokenizer.token_to_id
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_eps,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "bos_token_id": token(vocabulary.END_OF_TEXT),
        "eos_token_id": token(vocabulary.TURN_END),
        "torch_dtype": "bfloat16",
    }


def _generation_config(tokenizer: Any) -> dict[str, Any]:
    end, text_end = (tokenizer.token_to_id(t) for t in (vocabulary.TURN_END, vocabulary.END_OF_TEXT))
    return {
        "eos_token_id": [end, text_end],
        "pad_token_id": text_end,
        "bos_token_id": text_end,
        "do_sample": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perfdoctor.local.tiny", description="make a tiny model")
    parser.add_argument("--out", type=Path, required=True, help="model folder; kept when it is there already")
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--gguf", type=Path, help="also write this file for llama.cpp (needs the gguf package)"
    )
    args = parser.parse_args(argv)
    if is_complete(args.out) and not args.gguf:
        return 0
    model = make(args.preset, args.seed)
    if not is_complete(args.out):
        write_atomically(model, args.out)
    if args.gguf:
        from perfdoctor.local.tiny_gguf import write_gguf

        write_gguf(model, args.gguf)
    return 0


if __name__ == "__main__":
    sys.exit(main())
