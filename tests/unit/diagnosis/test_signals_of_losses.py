"""Signals of lost time: memory, shared pauses, the lock, clocks, transfer."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis.measure import measure_all
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.model import GpuFacts, RequestRecord, RunFacts, Sample, Signal
from tests.factories import (
    H200,
    counters,
    facts,
    gauges,
    local_target,
    parallel_requests,
    request,
    sample,
    served,
)

GPU0 = {"gpu": "0"}


def signal(
    name: str,
    run: RunFacts | None = None,
    requests: list[RequestRecord] | None = None,
    samples: list[Sample] | None = None,
) -> Signal:
    found = measure_all(Observations(run or facts(), "complete", requests or [], samples or []))
    return found[name]


def on_gpu(**changes: object) -> RunFacts:
    return facts(target=local_target("cuda:0"), gpus=(H200,), **changes)


# ------------------------------------------------------------------------------ memory


def test_refaults_per_token_against_the_weights() -> None:
    """4 requests of 11 tokens; 440 MB read again in the 40 s are 10 MB a token, of 1 GB of weights 1 %."""
    samples = counters("memory", refault_file_bytes=440e6 / 40)

    found = signal("memory.refault.share", facts(target=local_target()), parallel_requests(4), samples)

    assert 0.01 == pytest.approx(found.value)


def test_refaults_need_the_size_of_the_weights() -> None:
    """Bytes alone say nothing about a model that nobody knows."""
    found = signal(
        "memory.refault.share",
        requests=parallel_requests(4),
        samples=counters("memory", refault_file_bytes=1.0),
    )

    assert "size of the weights" in (found.missing or "")


def test_blocked_threads_stand_in_for_delay_accounting() -> None:
    """The kernel's own count when it is on; else how often a thread was found blocked."""
    exact = counters("io", blkio_delay_s=0.25)
    sampled = [sample("io", 20.0 + i, blocked_threads=float(i % 4 == 0)) for i in range(40)]

    assert (0.25, "delay accounting") == _value_and_source(signal("io.blocked.share", samples=exact))
    assert 0.25 == signal("io.blocked.share", samples=sampled).value
    assert signal("io.blocked.share").value is None


def _value_and_source(found: Signal) -> tuple[object, object]:
    return pytest.approx(found.value), found.source


def test_many_blocked_threads_are_no_more_than_all_of_the_time() -> None:
    """Two threads that wait all the time lose the time once."""
    assert 1.0 == signal("io.blocked.share", samples=counters("io", blkio_delay_s=2.0)).value


# ------------------------------------------------------------------------------ pauses


def blocked_streams(users: int, blocked_s: float, period_s: float = 0.8) -> list[RequestRecord]:
    """Streams of a chunk every 20 ms, except for `blocked_s` out of every period, when nobody gets any."""
    ticks = [20.0 + i * 0.02 for i in range(1000)]
    at = tuple(t for t in ticks if (t - 20.0) % period_s >= blocked_s - 1e-9)
    return [
        request(i, 20.0, token_at_s=at, first_token_s=at[0], last_token_s=at[-1], end_s=at[-1])
        for i in range(users)
    ]


def test_a_loop_blocked_half_of_the_time_is_seen_across_streams() -> None:
    """0.4 s of every 0.8 s; p95 of the gaps stays at 20 ms, and half of the time nothing arrives."""
    streams = blocked_streams(4, blocked_s=0.4)

    assert 0.5 == pytest.approx(signal("stall.shared.share", requests=streams).value, abs=0.03)
    assert 0.41 == pytest.approx(signal("stall.shared.p50", requests=streams).value, abs=0.02)


def test_an_undisturbed_server_shares_no_pause() -> None:
    """The step itself is no pause, at whatever pace."""
    assert 0.0 == signal("stall.shared.share", requests=blocked_streams(4, blocked_s=0.0)).value


def test_streams_that_pause_in_turns_share_nothing() -> None:
    """Each has long gaps, but another one always moves."""
    first = tuple(20.0 + i * 0.02 for i in range(500) if (i // 25) % 2 == 0)
    second = tuple(20.0 + i * 0.02 for i in range(500) if (i // 25) % 2 == 1)
    records = [
        request(i, 20.0, token_at_s=at, first_token_s=at[0], last_token_s=at[-1], end_s=at[-1])
        for i, at in enumerate((first, second))
    ]

    assert 0.0 == signal("stall.shared.share", requests=records).value


def test_one_stream_shares_with_nobody() -> None:
    """Missing, not zero."""
    found = signal("stall.shared.share", requests=blocked_streams(1, blocked_s=0.4))

    assert "two streams" in (found.missing or "")


@pytest.mark.parametrize(("latency", "expected"), [(0.01, 0.0), (0.05, 0.0), (0.25, 0.5)])
def test_unanswered_questions_add_up(latency: float, expected: float) -> None:
    """100 questions in 40 s that each wait 0.2 s beyond the first 50 ms: half of the time."""
    samples = [sample("health", 20.0 + i * 0.4, latency_s=latency) for i in range(100)]

    assert expected == pytest.approx(signal("health.unanswered.share", samples=samples).value)


# ------------------------------------------------------------------------------ the lock


def test_who_else_holds_the_lock() -> None:
    """Windows without a forward pass do not count, and without any the answer is missing."""
    mixed = [sample("gil", 30.0, {"pid": "1"}, held_share=0.9, other_share=0.8)]
    mixed += [sample("gil", 40.0, {"pid": "1"}, held_share=0.9, other_share=None)]

    assert 0.8 == signal("gil.other.share", samples=mixed).value
    assert signal("gil.other.share", samples=mixed[1:]).value is None


# ------------------------------------------------------------------------------ clocks and transfer


def test_heat_is_told_from_the_power_cap() -> None:
    """One reading in four is thermal (0x20), all are power-capped (0x4)."""
    samples = [
        sample("gpu", 20.0 + i, GPU0, clock_event_reasons=float(0x4 | (0x20 if i % 4 == 0 else 0)))
        for i in range(40)
    ]

    assert 0.25 == signal("gpu.clock.thermal.share", on_gpu(), samples=samples).value
    assert 1.0 == signal("gpu.clock.power_cap.share", on_gpu(), samples=samples).value


def test_hidden_clock_reasons_are_missing() -> None:
    """MIG and some virtual GPUs: unknown, and never "not throttled"."""
    samples = gauges("gpu", labels=GPU0, clock_event_reasons=None, power_w=100.0)

    assert signal("gpu.clock.thermal.share", on_gpu(), samples=samples).value is None


def test_lost_clock() -> None:
    """1,485 of 1,980 MHz: a quarter is lost."""
    gpu = GpuFacts(index=0, name="NVIDIA H200", sm_clock_max_mhz=1980.0)
    run = facts(target=local_target("cuda:0"), gpus=(gpu,))

    found = signal("gpu.clock.lost.share", run, samples=gauges("gpu", labels=GPU0, sm_clock_mhz=1485.0))

    assert 0.25 == pytest.approx(found.value)


@pytest.mark.parametrize(("rate", "expected"), [(53e6, 0.0), (10.1e9, 1.0)])
def test_transfer_of_a_step_against_its_weights(rate: float, expected: float) -> None:
    """At 0.1 s a step and 1 GB of weights, 10 GB/s beyond the launches send them all anew."""
    samples = gauges("gpu", labels=GPU0, graphics_active=0.01, pcie_rx_bytes_per_s=rate)

    found = signal("transfer.per_step.share", on_gpu(), parallel_requests(40), samples)

    assert expected == pytest.approx(found.value, rel=0.06)


def test_an_exporter_stands_in_where_the_driver_has_no_counters() -> None:
    """An A100: NVML gives its power, DCGM its activity."""
    samples = gauges("gpu", labels=GPU0, power_w=200.0, dram_active=None)
    samples += gauges("dcgm", labels=GPU0, dram_active=0.61, graphics_active=0.99)

    found = signal("gpu.dram_active.steady.p50", on_gpu(), parallel_requests(40), samples)

    assert 0.61 == found.value


# ------------------------------------------------------------------------------ prefill


def test_prefill_is_what_the_server_spent_on_the_prompt() -> None:
    """0.1 s to the first token, of which 0.04 s queue: 0.06 s for 48 tokens, 800 tokens a second."""
    records = parallel_requests(8)
    samples = [served(r, queue_s=0.04) for r in records]

    assert 0.06 == pytest.approx(signal("prefill.mean", requests=records, samples=samples).value)
    assert 800 == pytest.approx(signal("prefill.tokens_per_s", requests=records, samples=samples).value)
    assert 0.06 / 1.1 == pytest.approx(
        signal("request.prefill.share", requests=records, samples=samples).value
    )


def test_prefill_counters_need_a_prefill_that_holds_a_reading() -> None:
    """GPM is read every 0.2 s."""
    long = [request(i, 20.0 + 3 * i, ttft_s=2.0) for i in range(8)]
    short = [request(i, 20.0 + 3 * i, ttft_s=0.1) for i in range(8)]
    counters_ = gauges("gpu", labels=GPU0, tensor_active=0.47, graphics_active=0.98, dram_active=0.27)

    seen = signal("gpu.tensor_active.prefill.p50", on_gpu(), long, counters_ + [served(r) for r in long])
    unseen = signal("gpu.tensor_active.prefill.p50", on_gpu(), short, counters_ + [served(r) for r in short])

    assert 0.47 == seen.value
    assert unseen.value is None


def test_prefill_stretch_compares_the_two_lengths() -> None:
    """Twice the prompt, 0.19 s instead of 0.1 s."""
    usual = [request(i, 61.0 + i, phase="experiment", kind="usual") for i in range(3)]
    longer = [request(9 + i, 70.0 + i, 0.19, phase="experiment", kind="long_prompt") for i in range(3)]

    assert 1.9 == pytest.approx(signal("prefill.stretch", requests=usual + longer).value)
    assert signal("prefill.stretch", requests=usual).value is None


def test_growth_within_an_answer() -> None:
    """Chunks 10 ms apart at first and 30 ms apart at the end."""
    gaps = [0.01] * 20 + [0.02] * 20 + [0.03] * 20
    at = [20.0]
    for gap in gaps:
        at.append(at[-1] + gap)
    long = request(1, 20.0, token_at_s=tuple(at), last_token_s=at[-1], end_s=at[-1])

    assert 3.0 == pytest.approx(signal("decode.growth", requests=[long]).value)
    assert signal("decode.growth", requests=[request(1, 20.0)]).value is None
