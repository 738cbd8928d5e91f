"""Whose word an answer's number of tokens is."""

import asyncio
import sys
import threading

import msgspec
import pytest

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.recount import Recount
from perfdoctor.loadgen.tokens import count_output, count_texts, load_counter
from tests.factories import request
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
        (answer(9, 3, (1, 1, 1)), (9, "usage")),
        (answer(0, 0), (0, "usage")),
        (answer(None, 3, (1, 4, 4)), (9, "per_chunk")),
        (answer(None, 3, (1, 4)), (3, "chunks")),
        (answer(None, 0), (0, "chunks")),
    ],
)
def test_the_best_source_counts_and_is_named(told, counted):
    """Usage, then every chunk's own, then chunks."""
    assert counted == count_output(told, streamed=True)


def test_an_answer_that_was_not_streamed_has_no_chunks():
    """Without usage its tokens are not known, which is not 0."""
    assert (None, None) == count_output(answer(None, 0), streamed=False)


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        (answer(texts=["a b", " c"]), 3),
        (answer(texts=["a b"], thoughts=["c d"]), 4),
        (answer(texts=[]), None),
    ],
)
def test_a_tokenizer_counts_the_joined_texts(told, tokens):
    """Pieces of a word are one word; a tool call has no text."""
    assert tokens == count_texts(told, words)


def words(text):
    return len(text.split())


def counted(record, told, counter=words):
    """What is emitted of a record, and where its text was counted."""
    emitted, threads = [], []

    def count(text):
        threads.append(threading.current_thread())
        return counter(text)

    async def run():
        recount = Recount(count, emitted.append)
        recount.take(record, told)
        await recount.settle()

    asyncio.run(run())
    (only,) = emitted
    return only.output_tokens, only.token_source, set(threads)


def test_texts_are_counted_beside_the_loop():
    """Every open stream would wait for it."""
    tokens, source, threads = counted(
        request(output_tokens=2, token_source="chunks"), answer(texts=["a b c"])
    )

    assert (3, "tokenizer") == (tokens, source)
    assert threading.current_thread() not in threads and threads


@pytest.mark.parametrize(
    ("source", "texts"), [("usage", ["a b c"]), ("per_chunk", ["a b c"]), ("chunks", []), ("chunks", None)]
)
def test_a_better_count_stands(source, texts):
    """And without text there is nothing to count."""
    assert (2, source, set()) == counted(request(output_tokens=2, token_source=source), answer(texts=texts))


def test_a_tokenizer_that_fails_costs_its_count_alone():
    """The record is emitted all the same."""
    record = request(output_tokens=2, token_source="chunks")

    assert (2, "chunks") == counted(record, answer(texts=["a"]), counter=lambda text: 1 // 0)[:2]


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
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(UsageError, match="not installed") as found:
        load_counter(str(tmp_path))

    assert "perfdoctor[local]" in found.value.do
