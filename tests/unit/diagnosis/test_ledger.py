"""The ledger: disjoint rows that sum to the whole, from the best source at hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdoctor.diagnosis import ledger
from perfdoctor.diagnosis.observations import Observations
from perfdoctor.model import LedgerRow, RequestRecord, RunFacts, Sample, TargetFacts
from tests.factories import (
    H200,
    baseline_requests,
    counters,
    facts,
    gauges,
    load_samples,
    local_target,
    request,
    sample,
    serial_requests,
    served,
    serving_thread,
)

CPU_STEP = sample("step", 70.0, wall_s=0.1, profiled_wall_s=0.12, kernel_s=0.06, device_s=None)
GPU_STEP = sample("step", 70.0, wall_s=0.025, profiled_wall_s=0.047, device_s=0.003, kernel_s=None)


def kept(run: RunFacts, requests: list[RequestRecord], samples: list[Sample] | None = None) -> ledger.Ledger:
    return ledger.keep(Observations(run, "complete", requests, samples or []))


def seconds(rows: tuple[LedgerRow, ...]) -> dict[str, float]:
    return {r.row: pytest.approx(r.seconds) for r in rows}


def test_server_stamps() -> None:
    """With the server's stamps every row is exact, the wire included, and nothing is unexplained."""
    record = request(ttft_s=3.1, decode_s=1.0, due_s=-0.2)
    stamps = served(record, queue_s=2.0, tokenise_s=0.5, wire_s=0.01)

    found = kept(facts(), [record], [stamps])

    assert {
        "client_wait": 0.2,
        "network": 0.02,
        "server_queue": 2.0,
        "tokenise": 0.5,
        "prefill": 0.58,
        "decode": 1.0,
        "unexplained": 0.0,
    } == seconds(found.mean)
    assert 0.0 == pytest.approx(found.unexplained_share)


def test_unserved_request_is_unexplained() -> None:
    """A request the server has no stamps of keeps the client's rows, and the rest is nobody's."""
    known, unknown = request(0, ttft_s=0.1, decode_s=0.9), request(1, ttft_s=0.1, decode_s=0.9)

    found = kept(facts(), [known, unknown], [served(known)])

    assert {"prefill": 0.05, "decode": 0.45, "unexplained": 0.5} == seconds(found.mean)
    assert 0.5 == pytest.approx(found.unexplained_share)


def test_server_histograms() -> None:
    """Sums over counts of the steady phase are the mean rows; what TTFT holds beyond them is unexplained."""
    engine = counters("engine", queue_sum_s=1.0, queue_count=2.0, prefill_sum_s=0.4, prefill_count=2.0)

    found = kept(facts(), [request(sent_s=21.0, ttft_s=1.0)], engine)

    assert {"server_queue": 0.5, "prefill": 0.2, "decode": 1.0, "unexplained": 0.3} == seconds(found.mean)
    assert "the server's histograms" == found.mean[0].source


def test_parts_that_exceed_the_whole_are_cut_and_told() -> None:
    """A histogram that claims more than the client saw: rows sum to the whole, and the source says so."""
    engine = counters("engine", queue_sum_s=4.0, queue_count=2.0, prefill_sum_s=0.4, prefill_count=2.0)

    found = kept(facts(), [request(sent_s=21.0, ttft_s=1.0, decode_s=1.0)], engine)

    assert {"server_queue": 2.0, "unexplained": 0.0} == seconds(found.mean)
    assert "parts exceeded the whole by 60 %" in found.mean[-1].source


def test_streamed_timings() -> None:
    """TTFT beyond the prefill that the server streams is queue."""
    record = request(sent_s=21.0, ttft_s=1.0, server_prefill_s=0.2, server_decode_s=0.9)

    found = kept(facts(), [record])

    assert {"server_queue": 0.8, "prefill": 0.2, "decode": 0.9, "unexplained": 0.1} == seconds(found.mean)


def test_difference_of_experiments() -> None:
    """Without a word from the server, what TTFT grew by over one request at a time is queue."""
    found = kept(facts(), [request(sent_s=21.0, ttft_s=1.0), *baseline_requests(ttft_s=0.1)])

    assert {"server_queue": 0.9, "prefill": 0.1, "decode": 1.0, "unexplained": 0.0} == seconds(found.mean)


def test_several_users_without_any_source() -> None:
    """Time to first token stays unexplained when nothing tells waiting from work."""
    found = kept(facts(baseline=None), [request(sent_s=21.0, ttft_s=1.0)])

    assert {"decode": 1.0, "unexplained": 1.0} == seconds(found.mean)


def test_one_user_cannot_queue() -> None:
    """At one user the time to the first token is prefill."""
    found = kept(facts(concurrency=1, baseline=None), [request(sent_s=21.0, ttft_s=1.0)])

    assert {"prefill": 1.0, "decode": 1.0, "unexplained": 0.0} == seconds(found.mean)


def test_connecting_is_a_row() -> None:
    """A new connection costs its own row, and not the server's."""
    record = request(sent_s=21.0, ttft_s=1.0, connected_s=21.3, reused=False)

    found = kept(facts(concurrency=1, baseline=None), [record])

    assert {"connect": 0.3, "prefill": 0.7, "decode": 1.0, "unexplained": 0.0} == seconds(found.mean)


def test_decode_of_a_cpu_step() -> None:
    """1 GB at 20 GB/s is 50 ms of a 100 ms step with 60 ms of arithmetic: 50 memory, 10 compute, 40 gap."""
    run = facts(concurrency=1, target=local_target(), calibration={"copy_bytes_per_s": 20e9})

    found = kept(run, [request(sent_s=21.0, prompt_tokens=None)], [CPU_STEP])

    assert {
        "prefill": 0.06,  # as long as a step, so divided like one
        "prefill.launch_gap": 0.04,
        "decode.memory": 0.5,
        "decode.compute": 0.1,
        "decode.launch_gap": 0.4,
        "unexplained": 0.0,
    } == seconds(found.mean)


def test_decode_of_a_gpu_step() -> None:
    """3 ms of kernels in a 25 ms step: 88 % is launch gap; device time of unknown kind stays undivided."""
    run = facts(concurrency=1, target=local_target("cuda:0", step_bytes=None))

    found = kept(run, [request(sent_s=21.0)], [GPU_STEP])

    assert {"prefill": 0.1, "decode": 0.12, "decode.launch_gap": 0.88, "unexplained": 0.0} == seconds(
        found.mean
    )


@pytest.mark.parametrize(("busy", "gap", "left"), [(0.80, 0.9, 0.0), (0.79, None, 0.9)])
def test_idle_device_is_a_gap_only_under_a_busy_host(busy: float, gap: float | None, left: float) -> None:
    """GPU counters alone do not say why a device idles."""
    run = facts(concurrency=1, target=local_target("cuda:0"))
    counted = gauges("gpu", labels={"gpu": "0"}, graphics_active=0.1, dram_active=0.0445)

    found = seconds(kept(run, [request(sent_s=21.0)], counted + serving_thread(busy)).mean)

    assert 0.05 == found["decode.memory"]
    assert gap == found.get("decode.launch_gap")
    assert left == found["unexplained"]


@pytest.mark.parametrize(("unasked", "gap"), [(0.0, 0.6), (0.29, 0.6), (0.3, None)])
def test_a_lock_that_is_held_unasked_is_no_launch_gap(unasked: float, gap: float | None) -> None:
    """The interpreter's share of the pace counts only while it is the serving thread's."""
    run = facts(concurrency=1, target=TargetFacts(step_bytes=10**9), calibration={"copy_bytes_per_s": 100e9})
    windows = [sample("gil", at, {"pid": "1"}, held_share=v) for at, v in ((1.0, unasked), (30.0, 0.6))]

    found = seconds(kept(run, [request(sent_s=21.0)], windows + serving_thread(0.9)).mean)

    assert gap == found.get("decode.launch_gap")


def test_waiting_for_a_cpu_is_taken_out_first() -> None:
    """A tenth of the time in the run queue: a tenth of prefill and of decode."""
    run = facts(concurrency=1, baseline=None)

    found = kept(run, [request(sent_s=21.0)], serving_thread(0.8, waiting=0.1))

    assert {"prefill": 0.09, "decode": 0.9, "runq_delay": 0.11, "unexplained": 0.0} == seconds(found.mean)


def test_p95_is_one_request() -> None:
    """The p95 ledger is the request at the nearest rank."""
    records = [request(i, 21.0 + i, ttft_s=0.1 * (i + 1)) for i in range(20)]

    found = kept(facts(concurrency=1, baseline=None), records)

    assert {"prefill": 1.9, "decode": 1.0, "unexplained": 0.0} == seconds(found.p95)


def test_intervals_come_from_the_spread() -> None:
    """Equal requests have no interval to speak of; different ones do, around the mean."""
    same = kept(facts(), [request(i, 21.0) for i in range(4)]).mean[0]
    different = kept(facts(concurrency=1), [request(i, 21.0, decode_s=1.0 + i) for i in range(4)]).mean[1]

    assert same.low_s == same.high_s == pytest.approx(same.seconds)
    assert different.low_s is not None
    assert different.high_s is not None
    assert 0 < different.low_s < 2.5 < different.high_s


def test_no_request() -> None:
    """Without a complete request there is no ledger, and it says why."""
    found = kept(facts(), [])

    assert () == found.mean == found.p95
    assert "no steady request was completed" == found.missing
    assert found.unexplained_share is None


# ------------------------------------------------------------------------------ loading


def test_load_ledger() -> None:
    """2 s of import, 10 s of weights of which 8 in wait, 1 s of copying, 1 s of the first pass."""
    samples = load_samples(import_=2.0, weights=10.0, to_device=1.0, first_forward=1.0)
    samples += counters("io", 0.0, 14.0, blkio_delay_s=0.0)[:11]
    samples += [sample("io", t, blkio_delay_s=d) for t, d in ((2.0, 100.0), (12.0, 108.0), (14.0, 108.0))]

    found = kept(facts(), [], samples)

    assert {
        "import": 2.0,
        "storage_wait": 8.0,
        "deserialise": 2.0,
        "host_to_device": 1.0,
        "first_forward": 1.0,
        "unexplained": 0.0,
    } == seconds(found.load)


def test_load_wait_by_blocked_threads() -> None:
    """Where the kernel keeps no delay, the share of readings with a blocked thread stands in."""
    samples = load_samples(import_=2.0, weights=10.0)
    samples += [sample("io", t / 2, blkio_delay_s=None, blocked_threads=float(t % 2)) for t in range(5, 24)]

    found = {r.row: r for r in kept(facts(), [], samples).load}

    assert 5.0 == pytest.approx(found["storage_wait"].seconds, abs=0.5)
    assert "share of readings with a thread blocked on IO" == found["storage_wait"].source


def test_load_wait_unseen() -> None:
    """When storage wait cannot be seen, only CPU time of the process is believed; the rest is unexplained."""
    samples = load_samples(import_=2.0, weights=10.0) + counters("cpu", 0.0, 12.0, oncpu_s=0.3)

    found = kept(facts(), [], samples)

    assert {"import": 2.0, "deserialise": 3.0, "unexplained": 7.0} == seconds(found.load)


def test_total_beyond_the_phases_is_unexplained() -> None:
    """Time between phases belongs to none of them."""
    samples = [
        sample("load", 0.0, {"phase": "import"}, started_s=0.0, seconds=1.0),
        sample("load", 3.0, {"phase": "total"}, started_s=0.0, seconds=3.0),
    ]

    found = kept(facts(), [], samples)

    assert {"import": 1.0, "unexplained": 2.0} == seconds(found.load)


# ------------------------------------------------------------------------------ properties

moment = st.floats(0.0, 5.0, allow_nan=False)


@st.composite
def any_request(draw: st.DrawFn, index: int = 0) -> RequestRecord:
    """Instants in order, everything else at will."""
    wait, connect, first, decoding = (draw(moment) for _ in range(4))
    return request(
        draw(st.integers(0, 50)),
        21.0,
        connect + first,
        decoding + 0.001,
        due_s=21.0 - wait,
        connected_s=draw(st.sampled_from([None, 21.0 + connect])),
        server_prefill_s=draw(st.none() | moment),
        server_decode_s=draw(st.none() | moment),
        prompt_tokens=draw(st.none() | st.integers(0, 10_000)),
    )


@st.composite
def any_samples(draw: st.DrawFn, records: list[RequestRecord]) -> list[Sample]:
    """Any mixture of sources, consistent or not."""
    found: list[Sample] = []
    if draw(st.booleans()):
        names = ("arrived_s", "started_s", "tokenised_s", "first_token_s", "last_token_s")
        for r in records:
            stamps = {n: draw(st.none() | st.floats(15.0, 40.0)) for n in names}
            found.append(sample("serve", 30.0, {"request": str(r.id)}, **stamps))
    if draw(st.booleans()):
        rates = {n: draw(st.floats(0.0, 50.0)) for n in ("queue_sum_s", "prefill_sum_s")}
        found += counters("engine", queue_count=1.0, prefill_count=1.0, every_s=5.0, **rates)
    if draw(st.booleans()):
        found += serving_thread(draw(st.floats(0.0, 1.0)), draw(st.floats(0.0, 1.0)))
    return found + draw(st.sampled_from([[], [CPU_STEP], [GPU_STEP]]))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rows_sum_to_the_whole(data: st.DataObject) -> None:
    """Whatever the sources claim: rows are not negative, sum to the mean and to the p95, and shares to 1."""
    records = data.draw(st.lists(any_request(), min_size=1, max_size=6))
    samples = data.draw(any_samples(records))
    run = facts(target=data.draw(st.sampled_from([local_target(), local_target("cuda:0"), TargetFacts()])))

    found = kept(run, [*records, *data.draw(st.sampled_from([[], baseline_requests()]))], samples)

    totals = [(r.last_token_s or 0.0) - r.due_s for r in records]
    assert math.fsum(totals) / len(totals) == pytest.approx(math.fsum(r.seconds for r in found.mean))
    assert any(t == pytest.approx(math.fsum(r.seconds for r in found.p95)) for t in totals)
    for rows in (found.mean, found.p95):
        assert 1.0 == pytest.approx(math.fsum(r.share for r in rows))
        assert all(r.seconds >= 0 for r in rows)
        assert 1 == sum(r.row == "unexplained" for r in rows)
        assert len(rows) == len({r.row for r in rows})


def test_serial_server_is_mostly_queue() -> None:
    """Four users before one worker: in the long run three of four seconds are queue."""
    found = kept(facts(), [*serial_requests(40), *baseline_requests()])

    queue = next(r for r in found.mean if r.row == "server_queue")
    assert 0.74 == pytest.approx(queue.share, abs=0.01)


# ------------------------------------------------------------------------------ losses


def test_losses_are_taken_from_service_before_it_is_divided() -> None:
    """Of 1.1 s: a quarter in the run queue, half without the lock, a quarter is left to the model."""
    samples = serving_thread(0.2, waiting=0.25)
    samples += [sample("gil", t, {"pid": "1"}, held_share=0.9, other_share=0.5) for t in (30.0, 40.0)]
    records = [request(i, 20.0 + 2 * i) for i in range(15)]

    rows = {r.row: r.seconds for r in kept(facts(concurrency=1), records, samples).mean}

    assert 0.275 == pytest.approx(rows["runq_delay"])
    assert 0.55 == pytest.approx(rows["gil_wait"])
    assert 1.1 == pytest.approx(math.fsum(rows.values()))


def test_losses_never_exceed_the_whole() -> None:
    """Readings of different instants may add up to more; the ones that are trusted more come first."""
    samples = serving_thread(0.1, waiting=0.7)
    samples += [sample("gil", t, {"pid": "1"}, held_share=0.9, other_share=0.9) for t in (30.0, 40.0)]
    records = [request(i, 20.0 + 2 * i) for i in range(15)]

    rows = {r.row: r.seconds for r in kept(facts(concurrency=1), records, samples).mean}

    assert 0.77 == pytest.approx(rows["runq_delay"])
    assert 0.33 == pytest.approx(rows["gil_wait"])
    assert 1.1 == pytest.approx(math.fsum(rows.values()))


def test_a_long_step_is_no_blocked_loop() -> None:
    """Pauses count as the loop's only as far as the front end was silent too."""
    at = tuple(20.0 + 0.02 * i for i in range(1500) if (i // 20) % 2 == 0)
    records = [
        request(i, 20.0, token_at_s=at, first_token_s=at[0], last_token_s=at[-1], end_s=at[-1])
        for i in range(4)
    ]
    silent = [sample("health", 20.0 + 0.8 * i, latency_s=0.35) for i in range(50)]
    prompt = [sample("health", 20.0 + 0.8 * i, latency_s=0.002) for i in range(50)]

    assert "loop_stall" in seconds(kept(facts(), records, silent).mean)
    assert "loop_stall" not in seconds(kept(facts(), records, prompt).mean)


def test_prefill_by_counters_while_prompts_are_read() -> None:
    """98 % busy, memory at 27 of 89 %: what is left of the busy time is arithmetic."""
    run = facts(target=local_target("cuda:0"), gpus=(H200,))
    records = [request(i, 20.0 + 4 * i, ttft_s=2.0) for i in range(8)]
    samples = [served(r) for r in records]
    samples += gauges("gpu", labels={"gpu": "0"}, graphics_active=0.98, dram_active=0.267, tensor_active=0.5)

    found = seconds(kept(run, records, samples).mean)

    assert 0.6 == pytest.approx(found["prefill.memory"])
    assert 1.36 == pytest.approx(found["prefill.compute"])
    assert 0.04 == pytest.approx(found["prefill.launch_gap"])


START = {"model_s": 20.0, "weights_s": 15.0, "engine_s": 30.0, "compile_s": 8.0, "graph_s": 10.0}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"unexplained": 12.0}),
        ({"start_s": 80.0}, {"unexplained": 42.0}),  # process, imports, the web server
        ({"warmup_s": 3.0, "profile_s": 12.0}, {"warmup": 3.0, "unexplained": 9.0}),
        ({"profile_s": 12.0}, {"warmup": 4.0, "unexplained": 8.0}),  # that line has the compilation in it
        ({"profile_s": 7.0}, {"unexplained": 12.0}),
    ],
)
def test_the_start_of_a_running_server(more: dict[str, float], expected: dict[str, float]) -> None:
    """20 s of loading, 15 of them weights; 30 s to a ready engine, 8 of compiling and 10 of graphs."""
    found = kept(facts(), [], [sample("log.start", 0.0, **START, **more)])

    parts = {"weights": 15.0, "model_setup": 5.0, "compile": 8.0, "graph_capture": 10.0}
    assert parts | expected == seconds(found.load)


def test_a_start_whose_engine_tells_one_number_for_loading() -> None:
    """SGLang: weights and their setup in one, and no whole but by its stamps."""
    found = kept(facts(), [], [sample("log.start", 0.0, model_s=20.0, graph_s=10.0, start_s=50.0)])

    assert {"weights": 20.0, "graph_capture": 10.0, "unexplained": 20.0} == seconds(found.load)


def test_a_start_that_is_told_again_counts_as_told_last() -> None:
    """A model that was loaded during the run."""
    samples = [sample("log.start", 0.0, runner_s=9.0), sample("log.start", 5.0, runner_s=2.0)]

    assert {"unexplained": 2.0} == seconds(kept(facts(), [], samples).load)


def test_a_start_without_its_whole_is_not_divided() -> None:
    """Parts of an unknown whole have no share."""
    found = kept(facts(), [], [sample("log.start", 0.0, weights_s=15.0, graph_s=10.0)])

    assert () == found.load


@pytest.mark.parametrize(("remote", "expected"), [(True, 0.35), (False, None)])
def test_what_a_remote_servers_histograms_leave_over_is_the_way(remote: bool, expected: float | None) -> None:
    """Half of the time before and after the first token was not the server's; on one host it is no way's."""
    requests = [request(i, sent_s=20.0 + i, ttft_s=0.2, decode_s=0.5) for i in range(30)]
    server = {"queue": 0.02, "prefill": 0.08, "ttft": 0.1, "decode": 0.25}
    growing = {f"{k}_sum_s": 30 * v for k, v in server.items()} | {f"{k}_count": 30.0 for k in server}
    samples = [
        sample("engine", 20.0, **dict.fromkeys(growing, 0.0), requests=0.0),
        sample("engine", 60.0, **growing, requests=30.0),
    ]
    target = TargetFacts(kind="endpoint", url="http://10.0.0.1:8000", remote=remote)

    rows = seconds(kept(facts(target=target), requests, samples).mean)

    assert expected == (pytest.approx(rows["network"]) if "network" in rows else None)
