"""The tiny model's folder: loadable, deterministic, and behaving as its weights promise."""

from __future__ import annotations

import filecmp
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfdoctor.local import tiny, tiny_tokenizer, tiny_weights
from perfdoctor.local.tiny_gguf import gguf_name, write_gguf

PROMPT = "<|im_start|>user\nWhat is a list?<|im_end|>\n<|im_start|>assistant\n<think>\n"


@pytest.fixture(scope="module")
def loaded(tiny_folder: Path) -> Any:
    """(model in float32, tokenizer), as transformers loads them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, report = AutoModelForCausalLM.from_pretrained(
        tiny_folder, dtype=torch.float32, output_loading_info=True
    )
    assert not any(report.values())  # no missing, unexpected or mismatched keys
    return model, AutoTokenizer.from_pretrained(tiny_folder)


@pytest.fixture(scope="module")
def bigrams(tiny_model: tiny.TinyModel) -> tiny_weights.Bigrams:
    shape = tiny_model.shape
    texts = tiny_tokenizer.corpus()
    return tiny_weights.count_bigrams(tiny_model.tokenizer, texts, shape.vocab, shape.hidden - 4)


def next_token_chances(loaded: Any, text: str) -> np.ndarray:
    import torch

    model, tokenizer = loaded
    with torch.inference_mode():
        logits = model(**tokenizer(text, return_tensors="pt")).logits[0, -1]
    return torch.softmax(logits, -1).numpy()


@pytest.mark.parametrize(("preset", "millions"), [("tiny", 2.2), ("medium", 28.3), ("small", 199.3)])
def test_presets_have_their_size(preset: str, millions: float):
    """The sizes are what the presets are chosen by; counted from the shape, nothing is built."""
    s = tiny.PRESETS[preset]
    kv = s.kv_heads * s.head_dim
    layer = 2 * s.hidden * (s.hidden + kv) + 3 * s.hidden * s.ffn + s.hidden + 2 * kv + 2 * s.hidden
    total = 2 * s.vocab * s.hidden + s.layers * layer + s.hidden

    assert millions == round(total / 1e6, 1)


@pytest.mark.slow
def test_next_tokens_follow_the_bigram_table(loaded: Any, bigrams: tiny_weights.Bigrams):
    """Reasoning, on any context: the table's row of the last token, scaled by the chance to go on."""
    last = loaded[1](PROMPT).input_ids[-1]
    going_on = 1 - 1 / tiny_weights.REASONING_MEAN

    chances = next_token_chances(loaded, PROMPT)

    expected = going_on * np.exp(bigrams.rows[last])
    np.testing.assert_allclose(expected, chances[bigrams.printable], rtol=0.1, atol=1e-4)


@pytest.mark.slow
def test_reasoning_ends_only_while_reasoning(loaded: Any):
    """`</think>` has its constant chance before it has been said, and none afterwards."""
    close = loaded[1].convert_tokens_to_ids("</think>")

    assert next_token_chances(loaded, PROMPT + " the")[close] == pytest.approx(1 / 40, rel=0.05)
    assert next_token_chances(loaded, PROMPT + " the</think> list")[close] < 1e-9


@pytest.mark.slow
def test_the_turn_ends_only_after_an_answer(loaded: Any):
    """The end has its constant chance once an answer token was printed, however long the context."""
    end = loaded[1].convert_tokens_to_ids("<|im_end|>")
    answered = PROMPT + " the</think>" + " list" * 2000

    assert next_token_chances(loaded, PROMPT + " the")[end] < 1e-9
    assert next_token_chances(loaded, PROMPT + " the</think>")[end] < 1e-9
    assert next_token_chances(loaded, PROMPT + " the</think> list")[end] == pytest.approx(1 / 80, rel=0.05)
    assert next_token_chances(loaded, answered)[end] == pytest.approx(1 / 80, rel=0.05)


@pytest.mark.slow
def test_sampled_it_reasons_answers_and_stops(loaded: Any):
    """With nothing but the folder's own generation settings, in every one of eight runs at once."""
    import torch

    model, tokenizer = loaded
    prompt = tokenizer([PROMPT] * 8, return_tensors="pt")
    torch.manual_seed(0)

    rows = model.generate(**prompt, max_new_tokens=1500)

    for row in rows[:, prompt.input_ids.shape[1] :]:
        reasoning, closed, answer = tokenizer.decode(row).partition("</think>")
        assert closed
        assert reasoning.isascii()
        assert answer.partition("<|im_end|>")[0]
        assert "<|im_end|>" in answer


@pytest.mark.slow
def test_same_seed_same_bytes(tiny_folder: Path, tmp_path: Path):
    """A second build of the same preset and seed writes the same files; another seed does not."""
    names = sorted(path.name for path in tiny_folder.iterdir())

    tiny.write(tiny.make("tiny"), tmp_path / "again")
    tiny.write(tiny.make("tiny", seed=1), tmp_path / "other")

    assert (names, [], []) == filecmp.cmpfiles(tiny_folder, tmp_path / "again", names, shallow=False)
    assert not filecmp.cmp(
        tiny_folder / "model.safetensors", tmp_path / "other/model.safetensors", shallow=False
    )


def test_racing_writers_leave_one_whole_folder(tiny_model: tiny.TinyModel, tmp_path: Path):
    """The one that loses keeps the winner's folder and cleans up after itself."""
    target = tmp_path / "models" / "tiny"

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: tiny.write_atomically(tiny_model, target), range(4)))

    assert [target] * 4 == results
    assert [target] == list(target.parent.iterdir())
    assert tiny.is_complete(target)


def test_a_folder_that_is_there_is_kept(tiny_folder: Path):
    """The command does no work twice."""
    before = (tiny_folder / "model.safetensors").stat().st_mtime_ns

    assert 0 == tiny.main(["--out", str(tiny_folder)])

    assert before == (tiny_folder / "model.safetensors").stat().st_mtime_ns


def test_the_cache_obeys_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Set: below it. Empty: below the home directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "perfdoctor/models/tiny-medium-1" == tiny.cache_folder("medium")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert Path.home() / ".cache/perfdoctor/models/tiny-tiny-1" == tiny.cache_folder("tiny")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("lm_head.weight", "output.weight"),
        ("model.layers.11.self_attn.q_proj.bias", "blk.11.attn_q.bias"),
        ("model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"),
    ],
)
def test_gguf_names(ours: str, theirs: str):
    """llama.cpp's names of the same tensors."""
    assert theirs == gguf_name(ours)


def test_gguf_holds_the_same_tensors_and_vocabulary(tiny_model: tiny.TinyModel, tmp_path: Path):
    """Read back with the library that wrote it; that llama.cpp answers with it is an end-to-end test."""
    gguf = pytest.importorskip("gguf")

    write_gguf(tiny_model, tmp_path / "tiny.gguf")

    reader = gguf.GGUFReader(tmp_path / "tiny.gguf")
    assert {gguf_name(name) for name in tiny_model.tensors} == {t.name for t in reader.tensors}
    assert tiny_model.shape.vocab == len(reader.fields["tokenizer.ggml.tokens"].data)
