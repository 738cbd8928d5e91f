"""The tiny model's vocabulary: a byte-level BPE learned from text that every Python installation carries.

Special tokens and splitting are Qwen2's, so that engines that know Qwen2 read it without help. The chat
template opens the reasoning in the prompt, as DeepSeek-R1's does; `enable_thinking=false` closes it there.
"""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

END_OF_TEXT = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"
THINK = "<think>"
THINK_END = "</think>"
CONTROL = (END_OF_TEXT, TURN_START, TURN_END)  # left out when special tokens are skipped
MARKERS = (THINK, THINK_END)  # ordinary text to a decoder

# The published pre-tokenizer pattern of Qwen2; llama.cpp calls it "qwen2".
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# `content.split(...)` is the expression by which llama.cpp recognises a template that reasons: keep its form.
CHAT_TEMPLATE = """\
{%- for turn in messages -%}
{%- set content = turn.content -%}
{%- if content is not string -%}
{%- set content = content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join -%}
{%- endif -%}
{%- if turn.role == 'assistant' and '</think>' in content -%}
{%- set content = content.split('</think>')[-1].lstrip('\\n') -%}
{%- endif -%}
{{- '<|im_start|>' + turn.role + '\\n' + content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n<think>\\n' -}}
{%- if enable_thinking is defined and enable_thinking is false -%}
{{- '\\n</think>\\n\\n' -}}
{%- endif -%}
{%- endif -%}
"""

CORPUS_CHARS = 1_500_000  # enough for 8,192 tokens; more only costs time


def corpus(limit: int = CORPUS_CHARS) -> tuple[str, ...]:
    """English about Python: the interpreter's help topics, then docstrings of the standard library."""
    texts: list[str] = []
    size = 0
    for text in _stdlib_prose():
        if size >= limit:
            break
        texts.append(text)
        size += len(text)
    return tuple(texts)


def _stdlib_prose() -> Iterator[str]:
    from pydoc_data.topics import topics

    yield from (topics[name] for name in sorted(topics))
    root = Path(sysconfig.get_paths()["stdlib"])
    packages = (
        "asyncio", "collections", "concurrent", "email", "http", "importlib", "json", "logging",
        "multiprocessing", "unittest", "urllib", "xml",
    )  # fmt: skip
    for folder in (root, *(root / name for name in packages)):
        for source in sorted(folder.glob("*.py")):
            yield from docstrings(source.read_text(encoding="utf-8", errors="replace"))


def docstrings(source: str) -> tuple[str, ...]:
    """Docstrings of a module, its classes and functions; none when it does not parse here."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return ()
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (ast.get_docstring(node) for node in nodes if isinstance(node, kinds))
    return tuple(text for text in found if text)


def train(texts: tuple[str, ...], vocab: int) -> Any:
    """A `tokenizers.Tokenizer` of exactly `vocab` tokens; ValueError when the text cannot give that many."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(CONTROL) - len(MARKERS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    for group, special in ((CONTROL, True), (MARKERS, False)):
        tokenizer.add_tokens([AddedToken(token, special=special, normalized=False) for token in group])
    if tokenizer.get_vocab_size() != vocab:
        raise ValueError(f"the corpus gave {tokenizer.get_vocab_size()} tokens instead of {vocab}")
    return tokenizer


def tokenizer_config(context: int) -> dict[str, Any]:
    """tokenizer_config.json: read by transformers; everything else stands in tokenizer.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "bos_token": None,
        "eos_token": TURN_END,
        "pad_token": END_OF_TEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
