"""Preemptions counted over the lines of a log."""

from __future__ import annotations

import pytest

from perfdoctor.logs import Preempted, read_line

TOTAL = "WARNING Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode, total_num_cumulative_preemption={}"
RETRACTED = "[2026-09-13 16:06:07] KV cache pool is full. Retract requests. #retracted_reqs: {}, #new_token_ratio: 0.1"
DECODE = "[2026-01-02 12:00:00] Decode batch. #running-req: 5, #token: 1234, token usage: 0.12, #queue-req: 2"
V0 = "Running: 1 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.3%, CPU KV cache usage: 0.0%."
V1 = "Running: 4 reqs, Waiting: 12 reqs, GPU KV cache usage: 85.5%, Prefix cache hit rate: 12.0%"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([TOTAL.format(51)], 1),  # the fifty before may be of yesterday
        ([TOTAL.format(51), TOTAL.format(101)], 51),
        ([TOTAL.format(51), TOTAL.format(1)], 2),  # a restart
        ([RETRACTED.format(3), RETRACTED.format(1)], 4),
        ([DECODE], 0),
        ([V0], 0),
        ([V1], None),
        ([V1.replace("GPU", "Preemptions: 2, GPU")] * 2, 4),
        ([], None),
    ],
)
def test_preemptions_add_up(lines, expected):
    """None while no line tells whether there were any: vLLM's version 1 engine is silent about them."""
    preempted = Preempted()
    for line in lines:
        preempted.take(read_line(line))

    assert expected == preempted.count
