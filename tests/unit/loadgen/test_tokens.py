"""Whose word an answer's number of tokens is."""

import msgspec
import pytest

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.tokens import count_output, load_counter
from tests.servers import _models


def answer(usage=None, stamps=0, counts=(), texts=None, thoughts=None):
    made = Answer()
    made.token_ns, made.token_counts = list(range(stamps)), list(counts)
    made.texts, made.thoughts = texts, thoughts
    if usage is not None:
        made.usage = msgspec.Raw(msgspec.json.encode({"completion_tokens": usage}))
    return made


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        (answer(9, 3, (1, 1, 1), ["a b"]), (9, "usage")),
        (answer(0, 0), (0, "usage")),
        (answer(None, 3, (1, 4, 4), ["a b"]), (9, "per_chunk")),
        (answer(None, 3, (1, 4), ["a b", " c"]), (3, "tokenizer")),
        (answer(None, 3, (), ["a b"], ["c"]), (3, "tokenizer")),
        (answer(None, 4, (), [], []), (4, "chunks")),
        (answer(None, 4), (4, "chunks")),
        (answer(None, 0), (0, "chunks")),
    ],
)
def test_the_best_source_counts_and_is_named(told, counted):
    """Usage, then every chunk's own, then a tokenizer over the text, then chunks."""
    assert counted == count_output(told, lambda text: len(text.split()), streamed=True)


def test_an_answer_that_was_not_streamed_has_no_chunks():
    """Without usage and tokenizer its tokens are not known, which is not 0."""
    assert (None, None) == count_output(answer(None, 0), None, streamed=False)
    assert (2, "tokenizer") == count_output(answer(texts=["a b"]), lambda text: len(text.split()), False)


def test_a_folders_tokenizer_counts_text():
    """Without the tokens that a template adds; the file itself may be named too."""
    folder = _models.tiny()

    assert 0 == load_counter(str(folder))("")
    assert 2 <= load_counter(str(folder / "tokenizer.json"))("Hello world") <= 6


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    """With what to name instead."""
    with pytest.raises(UsageError, match=r"tokenizer\.json"):
        load_counter(str(tmp_path))


def test_a_broken_tokenizer_is_refused(tmp_path):
    """The library raises what no user should see."""
    (tmp_path / "tokenizer.json").write_text('{"version": 1}')

    with pytest.raises(UsageError, match="no tokenizer"):
        load_counter(str(tmp_path))


def test_a_missing_library_is_named_with_the_extra(tmp_path, monkeypatch):
    """It is not part of a plain installation."""
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)

    with pytest.raises(UsageError, match="not installed") as found:
        load_counter(str(tmp_path))

    assert "perfdoctor[local]" in found.value.do
