"""Messages survive the pipe, and a child's end is told from its last words."""

from __future__ import annotations

import io
import os

import pytest

from perfdoctor.clock import Clock
from perfdoctor.errors import ModelError
from perfdoctor.local.gpu import STATISTICS, allocator_values
from perfdoctor.local.launch import exit_error
from perfdoctor.local.telemetry import Channel, Failed, Known, Reading, Ready, decode_lines
from perfdoctor.model import TargetFacts


def test_every_kind_of_message_arrives_as_it_was_sent():
    """In order, through a real pipe."""
    reading, writing = os.pipe()
    channel = Channel(writing, Clock())
    facts = TargetFacts(url="http://127.0.0.1:1", parameters=5)

    channel.sample("load", {"seconds": 1.5}, {"phase": "import"})
    channel.absent("torch", "no GPU")
    channel.send(Known(facts=facts))
    channel.send(Ready(facts=facts, calibration={"gpu_copy_bytes_per_s": None}))
    channel.failed(ModelError("a", "b", "c"))
    os.close(writing)

    with os.fdopen(reading, "rb") as stream:
        sample, absent, *rest = decode_lines(stream)
    assert isinstance(sample, Reading) and isinstance(absent, Reading)
    assert ("load", {"seconds": 1.5}, {"phase": "import"}) == (
        sample.sample.probe, sample.sample.values, sample.sample.labels,
    )  # fmt: skip
    assert ("absent", "no GPU") == (absent.sample.status, absent.sample.why)
    ready = Ready(facts=facts, calibration={"gpu_copy_bytes_per_s": None})
    assert [Known(facts=facts), ready, Failed(what="a", why="b", do="c")] == rest


def test_a_torn_last_line_is_dropped():
    """The child was killed while writing it."""
    whole = b'{"kind":"failed","what":"a"}\n'

    assert [Failed(what="a")] == list(decode_lines(io.BytesIO(whole + whole[:-5])))


def test_a_vanished_parent_is_no_error():
    """The generation must not fail because nobody listens."""
    reading, writing = os.pipe()
    os.close(reading)

    Channel(writing, Clock()).sample("serve", {})

    os.close(writing)


def test_a_killed_child_points_at_the_memory():
    """SIGKILL without a word."""
    assert "out-of-memory" in exit_error(-9, ()).why


@pytest.mark.parametrize(("tail", "why"), [((), "it printed nothing"), (("a", "Bus error"), "Bus error")])
def test_any_other_end_repeats_the_last_line(tail: tuple[str, ...], why: str):
    """With the exit code; the rest is in the log."""
    error = exit_error(7, tail)

    assert why == error.why
    assert "exit code 7" in error.what


def test_allocator_statistics_that_torch_lacks_are_none():
    """An older torch keeps fewer."""
    values = allocator_values({"allocated_bytes.all.current": 5})

    assert 5 == values["allocated_bytes"]
    assert values["device_allocs"] is None
    assert STATISTICS.keys() == values.keys()
