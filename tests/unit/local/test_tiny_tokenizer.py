"""The tiny model's vocabulary and chat template."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest

from perfdoctor.local import tiny, tiny_tokenizer


def render(messages: list[dict[str, Any]], **options: Any) -> str:
    # the settings transformers and llama.cpp render with
    engine = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    template = engine.from_string(tiny_tokenizer.CHAT_TEMPLATE)
    return template.render(messages=messages, add_generation_prompt=True, **options)


@pytest.mark.parametrize("text", ["What is a list?", "  two\n\nlines\t", "Grüße, 世界 🙂", "x = [1, 22]"])
def test_any_text_survives_the_round_trip(tiny_model: tiny.TinyModel, text: str):
    """Byte level: nothing is unknown."""
    ids = tiny_model.tokenizer.encode(text).ids

    assert text == tiny_model.tokenizer.decode(ids)


def test_special_tokens_are_one_token_each(tiny_model: tiny.TinyModel):
    """Engines look for these ids; a split marker would never close the reasoning."""
    for token in (*tiny_tokenizer.CONTROL, *tiny_tokenizer.MARKERS):
        assert 1 == len(tiny_model.tokenizer.encode(token).ids)


def test_too_little_text_is_refused():
    """A smaller vocabulary than promised would not fit the weights."""
    with pytest.raises(ValueError, match="instead of 2048"):
        tiny_tokenizer.train(("hardly any text",), 2048)


def test_docstrings_come_in_source_order_and_bad_source_gives_none():
    """Files of the standard library that need another version are passed over."""
    assert ("a", "b") == tiny_tokenizer.docstrings('"""a"""\ndef f():\n    """b"""\n')
    assert () == tiny_tokenizer.docstrings("def (")


def test_the_corpus_stops_at_its_limit():
    """It costs seconds otherwise."""
    texts = tiny_tokenizer.corpus(10_000)

    assert 10_000 <= sum(map(len, texts))
    assert 10_000 > sum(map(len, texts[:-1]))


def test_the_prompt_opens_the_reasoning():
    """As DeepSeek-R1's does: the model's first token is already a thought."""
    prompt = render([{"role": "user", "content": "hi"}])

    assert "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n" == prompt


def test_thinking_can_be_switched_off():
    """The reasoning is closed inside the prompt."""
    prompt = render([{"role": "user", "content": "hi"}], enable_thinking=False)

    assert prompt.endswith("<think>\n\n</think>\n\n")


def test_earlier_reasoning_is_dropped():
    """Else `</think>` of an old turn would make the model skip its reasoning."""
    prompt = render([{"role": "assistant", "content": "<think>a thought</think>\n\nfour"}])

    assert "assistant\nfour<|im_end|>" in prompt


def test_content_may_be_a_list_of_parts():
    """The other form the API allows; parts that are no text are left out."""
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]

    assert "user\nab<|im_end|>" in render([{"role": "user", "content": parts}])
