"""Traces: instants, contents, and what they share."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.replay import read_trace
from perfdoctor.loadgen.tokens import load_counter
from perfdoctor.model import Prompts
from tests.servers import _models


@pytest.fixture
def trace(tmp_path):
    """Reads a trace from rows, or from bytes."""

    def read(*rows, run=1, **prompts):
        path = tmp_path / "trace.jsonl"
        path.write_bytes(rows[0] if isinstance(rows[0], bytes) else "\n".join(map(json.dumps, rows)).encode())
        return read_trace(path, Prompts(**prompts), 0, run)

    return read


def mooncake(timestamp, length, blocks=None, **more):
    return {"timestamp": timestamp, "input_length": length, "output_length": 7, "hash_ids": blocks, **more}


def said(trace, number):
    return trace.source.prompt(number).messages[0][1]


def test_seconds_count_from_the_first_request(trace):
    """By either name."""
    found = trace({"at_s": 100.5, "prompt": "a"}, {"timestamp": 101, "prompt": "b", "max_tokens": 3})

    assert (0.0, 0.5) == found.due_s
    assert [("a", 48), ("b", 3)] == [(said(found, n), found.source.prompt(n).output_tokens) for n in (1, 2)]
    assert 2 == found.source.count


def test_mooncakes_timestamps_are_milliseconds(trace):
    """As its published traces have them; the answers are as long as they were."""
    found = trace(mooncake(0, 20), mooncake(3052, 30))

    assert (0.0, 3.052) == found.due_s
    assert [20, 30] == [len(said(found, n).split()) for n in (1, 2)]
    assert 7 == found.source.prompt(1).output_tokens


def test_the_same_hash_is_the_same_text(trace):
    """So that a prefix cache finds what it found when the trace was recorded; another run finds nothing."""
    rows = mooncake(0, 1100, [1, 2, 3]), mooncake(9, 1300, [1, 2, 4]), mooncake(9, 600, [5, 2])
    one, two, other = (said(trace(*rows), n).split() for n in (1, 2, 3))

    assert [1100, 1300, 600] == [len(words) for words in (one, two, other)]
    assert one[:1024] == two[:1024] != one[:512] + other[:512]
    assert one[1024:] != two[1024:1100]
    assert one[512:600] == other[512:600]
    assert said(trace(*rows), 1) != said(trace(*rows, run=2), 1)


def test_blocks_have_the_tokens_of_a_tokenizer(trace):
    """With one, a block is 512 of its tokens."""
    folder = str(_models.tiny())
    found = trace(mooncake(0, 1100, [1, 2, 3]), tokenizer=folder)

    assert 1090 <= load_counter(folder)(said(found, 1)) <= 1100


def test_lengths_without_hashes_share_nothing(trace):
    """Each is a prompt of its own."""
    found = trace(mooncake(0, 40), mooncake(1, 40))

    assert said(found, 1).split()[:2] != said(found, 2).split()[:2]


def test_rows_out_of_order_are_sorted_and_said(trace):
    """Logs are written when requests end."""
    found = trace({"at_s": 2, "prompt": "b"}, {"at_s": 1, "prompt": "a"}, {"at_s": 2, "prompt": "c"})

    assert (0.0, 1.0, 1.0) == found.due_s
    assert list("abc") == [said(found, n) for n in (1, 2, 3)]
    assert "sorted" in found.notes[0]
    assert () == trace({"at_s": 1, "prompt": "a"}, {"at_s": 1, "prompt": "b"}).notes


BAD = {
    "no instant": [{"prompt": "a"}],
    "text": [{"at_s": "1", "prompt": "a"}],
    "true": [{"at_s": True, "prompt": "a"}],
    "below 0": [{"at_s": -1, "prompt": "a"}],
    "nothing said": [{"at_s": 1}],
    "no length": [mooncake(0, 0)],
    "no list": [mooncake(0, 9, "1")],
    "another block size": [mooncake(0, 9000, [1])],
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_refused_with_its_line(trace, name):
    """The line is the file's own."""
    with pytest.raises(UsageError, match=r"line 2 of .*trace\.jsonl cannot be replayed"):
        trace({"at_s": 0, "prompt": "a"}, *BAD[name])


@pytest.mark.parametrize(
    "content",
    [b"", b"[1]", b"at_s,prompt\n1,a\n", b'{"at_s": NaN, "prompt": "a"}', b'{"at_s": 1e999, "prompt": "a"}'],
)
def test_another_file_is_refused(trace, content):
    """With its path."""
    with pytest.raises(UsageError, match=r"trace\.jsonl"):
        trace(content)


def test_a_trace_in_milliseconds_is_not_taken_for_seconds(trace):
    """It would last for weeks."""
    with pytest.raises(UsageError, match="days"):
        trace({"timestamp": 0, "prompt": "a"}, {"timestamp": 3_600_000, "prompt": "b"})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.binary(max_size=40)
    | st.dictionaries(
        st.sampled_from(["at_s", "timestamp", "input_length", "hash_ids", "prompt", "output_length"]),
        st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.lists(st.integers(0, 3), max_size=3)),
    ).map(lambda row: json.dumps(row).encode())
)
def test_any_bytes_are_a_trace_or_a_usage_error(trace, content):
    """Nothing else reaches the user."""
    try:
        found = trace(content)
    except UsageError:
        return
    assert found.due_s[0] == 0 and found.source.count == len(found.due_s)
