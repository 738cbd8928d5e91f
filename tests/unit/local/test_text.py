"""Tokens become whole characters, and reasoning is told from the answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perfdoctor.local.text import Detokenizer, Splitter, opens_reasoning, plain_chat


def decode_bytes(tokens: Sequence[int]) -> str:
    """A vocabulary of the 256 bytes."""
    return bytes(tokens).decode(errors="replace")


def decode_words(tokens: Sequence[int]) -> str:
    """A vocabulary in which a token's text depends on what stands before it, as in SentencePiece."""
    return " ".join(f"w{token}" for token in tokens)


def pushed(tokens: Sequence[int], known: int = 256) -> list[str]:
    detokenizer = Detokenizer(decode_bytes, known)
    return [detokenizer.push(token) for token in tokens]


@pytest.mark.parametrize("text", ["plain", "naïve", "世界", "🙂!"])
def test_pieces_are_whole_characters_and_sum_to_the_text(text: str):
    """No piece shows a broken character, and every token has its piece."""
    tokens = text.encode()

    pieces = pushed(tokens)

    assert text == "".join(pieces)
    assert "�" not in "".join(pieces)
    assert len(tokens) == len(pieces)


def test_a_character_comes_with_its_last_byte():
    """Until then the pieces are empty."""
    assert ["", "", "", "🙂"] == pushed("🙂".encode())


def test_bytes_that_become_no_character_are_shown_at_the_limit():
    """A random model must not be silenced for ever: after four tokens what is there is given."""
    assert ["", "", "", "����"] == pushed([0x80] * 4)


def test_what_was_held_comes_with_the_next_whole_character():
    """A lone start byte is shown broken once the next token proves it so."""
    assert ["", "�a"] == pushed([0xC3, ord("a")])


def test_unknown_ids_have_a_visible_text_each():
    """The limit of the vocabulary: the last known id decodes, the next one is spelt out."""
    assert ["c", " t100"] == pushed([99, 100], known=100)


def test_an_unknown_id_releases_what_was_held():
    """Order is kept."""
    assert ["", "� t256"] == pushed([0xC3, 256])


def test_a_token_is_decoded_in_its_context():
    """The space between two words belongs to the second."""
    detokenizer = Detokenizer(decode_words, 256)

    assert ["w1", " w2", " w3"] == [detokenizer.push(token) for token in (1, 2, 3)]


def test_flush_gives_the_rest_once():
    """And nothing where nothing is held."""
    detokenizer = Detokenizer(decode_bytes, 256)
    detokenizer.push(0xC3)

    assert ["�", ""] == [detokenizer.flush(), detokenizer.flush()]


def test_reasoning_ends_at_its_marker():
    """The marker itself is neither."""
    splitter = Splitter(opening=7, closing=8, reasoning=True)

    assert ["reasoning", None, "answer"] == [splitter.place(token) for token in (1, 8, 2)]


def test_reasoning_may_be_opened_by_the_model():
    """Where the template leaves it to the model, as Qwen3's does."""
    splitter = Splitter(opening=7, closing=8, reasoning=False)

    assert [None, "reasoning", None, "answer"] == [splitter.place(token) for token in (7, 1, 8, 2)]


def test_without_markers_all_is_answer():
    """An ordinary chat model."""
    assert "answer" == Splitter(None, None, reasoning=False).place(1)


@pytest.mark.parametrize(
    ("prompt", "open_"),
    [
        ("hi", False),
        ("hi<think>\n", True),
        ("hi<think>\n\n</think>\n\n", False),
        ("</think> x <think>", True),
    ],
)
def test_whether_a_prompt_ends_inside_a_thought(prompt: str, open_: bool):
    """The last marker decides."""
    assert open_ is opens_reasoning(prompt)


def test_a_chat_without_a_template():
    """Roles and texts as lines, and the assistant's turn opened."""
    assert "user: hi\nassistant:" == plain_chat([("user", "hi")])
