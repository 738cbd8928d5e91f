"""Signals from small records whose arithmetic can be done in the head."""

from __future__ import annotations

import pytest

from perfdoctor.diagnosis import gpus
from perfdoctor.diagnosis.measure import all_measures, measure_all
from perfdoctor.diagnosis.observations import NoValue, Observations, Series, Window
from perfdoctor.model import (
    ClientFacts,
    GpuFacts,
    Load,
    Phase,
    ProbeState,
    RequestRecord,
    RunFacts,
    Sample,
    Scenario,
    Signal,
    TargetFacts,
)
from tests.factories import (
    H200,
    baseline_requests,
    counters,
    facts,
    gauges,
    load_samples,
    local_target,
    parallel_requests,
    request,
    sample,
    serial_requests,
    served,
    serving_thread,
)


def signal(
    name: str,
    run: RunFacts | None = None,
    requests: list[RequestRecord] | None = None,
    samples: list[Sample] | None = None,
) -> Signal:
    found = measure_all(Observations(run or facts(), "complete", requests or [], samples or []))
    return found[name]


def test_every_signal_is_documented_and_named_once() -> None:
    """A page, a unit and a name of its own for each."""
    measures = all_measures()

    assert len(measures) == len({m.name for m in measures})
    assert [] == [m.name for m in measures if not m.page or not m.unit]


def test_nothing_measured_is_missing_with_a_reason() -> None:
    """Without a single observation no signal but the plain facts has a value, and each says why."""
    found = measure_all(Observations(RunFacts(), "interrupted", [], []))

    assert {"drive.requests", "gpu.used"} == {name for name, s in found.items() if s.value is not None}
    assert all(s.missing for s in found.values() if s.value is None)


# ------------------------------------------------------------------------------ windows


def test_counters_are_interpolated_at_the_edges() -> None:
    """Readings at 0, 10 and 20 s of a counter that gains 1 a second, seen from 5 to 15 s: 10."""
    found = Series((0.0, 10.0, 20.0), (0.0, 10.0, 20.0)).gain(5.0, 15.0)

    assert found is not None
    assert (10.0, 10.0) == (found.amount, found.span_s)


@pytest.mark.parametrize(
    "readings", [((5.0,), (1.0,)), ((0.0, 10.0), (9.0, 1.0)), ((20.0, 30.0), (0.0, 5.0))]
)
def test_counters_without_a_gain(readings: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    """Read once, set back by a restart, or read outside of the window only: no number."""
    assert Series(*readings).gain(0.0, 10.0) is None


def test_missing_probe_gives_its_own_reason() -> None:
    """The reason of a denied probe reaches the signal, also for what it reports under a second name."""
    run = facts(probes=[ProbeState(probe="gil", status="denied", why="ptrace_scope is 1")])

    assert "probe gil is denied: ptrace_scope is 1" == signal("gil.held.share", run).missing
    assert "no sample of `engine` in this run" == signal("engine.kv_usage.max", run).missing
    assert "only a local model reports `step`" == signal("step.wall", run).missing


def test_null_reading_gives_the_reading_s_reason() -> None:
    """A probe that works but cannot see one thing says so."""
    blind = Sample(at_s=30.0, probe="memory", values={"rss_bytes": None}, why="no such process")
    window = Window(Observations(facts(), "complete", [], [blind]), "steady", 20.0, 60.0)

    with pytest.raises(NoValue, match="no such process"):
        window.gauge("memory", "rss_bytes")


# ------------------------------------------------------------------------------ requests


def test_throughput_and_its_scaling() -> None:
    """40 answers of 11 tokens in 10 rounds of 1.1 s: 40 tokens/s, four times the baseline's 10."""
    requests = [*parallel_requests(40), *baseline_requests()]

    assert 40.0 == pytest.approx(signal("throughput.steady", requests=requests).value)
    assert 10.0 == pytest.approx(signal("throughput.baseline", requests=requests).value)
    assert 4.0 == pytest.approx(signal("throughput.scaling", requests=requests).value)
    assert 1.0 == pytest.approx(signal("latency.stretch", requests=requests).value)


def test_scaling_needs_two_loads() -> None:
    """One user, or no baseline: missing, not 1."""
    assert "one user" in (
        signal("throughput.scaling", facts(concurrency=1), baseline_requests()).missing or ""
    )
    assert "no baseline phase" in (
        signal("throughput.scaling", facts(baseline=None), parallel_requests(4)).missing or ""
    )


def test_in_flight_and_busy() -> None:
    """Two requests of 1.1 s, 10 s apart, in 40 s: open 5.5 % of the time, one at a time."""
    requests = [request(0, 20.0), request(1, 30.0)]

    assert 2.2 / 40 == pytest.approx(signal("drive.busy.share", requests=requests).value)
    assert 2.2 / 40 == pytest.approx(signal("drive.in_flight.mean", requests=requests).value)


def test_in_flight_counts_overlap_and_busy_does_not() -> None:
    """Four users all the time, but for the drain at the end."""
    requests = serial_requests(36)

    assert 3.7 < (signal("drive.in_flight.mean", requests=requests).value or 0) < 4.0
    assert 0.99 == pytest.approx(signal("drive.busy.share", requests=requests).value)


def test_latency_counts_its_requests() -> None:
    """n is what the number rests on; a one-token answer has no pace."""
    requests = [request(0, 20.0), request(1, 22.0, output_tokens=1)]

    assert (0.1, 1) == (
        signal("tpot.steady.mean", requests=requests).value,
        signal("tpot.steady.mean", requests=requests).n,
    )
    assert 2 == signal("e2e.steady.p50", requests=requests).n


# ------------------------------------------------------------------------------ server


@pytest.mark.parametrize(
    ("samples", "told", "source"),
    [
        (True, {}, "the server's own stamps"),
        (False, {"server_prefill_s": 0.1}, "timings the server streams"),
        (False, {}, "TTFT under load minus TTFT of one request at a time"),
    ],
)
def test_queue_has_a_source(samples: bool, told: dict[str, float], source: str) -> None:
    """Whatever tells it, the queue is 0.9 of 2 s."""
    records = [request(i, 20.0 + i, ttft_s=1.0, **told) for i in range(4)]
    stamps = [served(r, queue_s=0.9) for r in records] if samples else []

    found = signal("server.queue.share", facts(), [*records, *baseline_requests()], stamps)

    assert (0.45, 4, source) == (pytest.approx(found.value), found.n, found.source)


def test_queue_without_a_source() -> None:
    """Several users, no baseline, a silent server: missing."""
    found = signal("server.queue.share", facts(baseline=None), [request(sent_s=21.0)])

    assert "no baseline phase" in (found.missing or "")


def test_batch_of_a_serial_and_of_a_parallel_server() -> None:
    """Time in service over time in which anything was in service."""
    one = serial_requests(12)
    four = parallel_requests(12)
    stamped = [served(r, queue_s=(r.first_token_s or 0) - (r.sent_s or 0) - 0.1) for r in one]

    assert 1.0 == pytest.approx(signal("server.batch.mean", requests=one, samples=stamped).value)
    assert 4.0 == pytest.approx(
        signal("server.batch.mean", requests=four, samples=[served(r) for r in four]).value
    )


def test_batch_by_other_sources() -> None:
    """The running gauge while it runs, streamed timings, the declared limit of one, and nothing."""
    told = [request(i, 21.0, server_prefill_s=0.1, server_decode_s=1.0) for i in range(3)]
    running = [sample("engine", 30.0 + i, running=float(v)) for i, v in enumerate((0, 2, 4))]

    assert 3.0 == signal("server.batch.mean", samples=running).value
    assert 3.0 == pytest.approx(signal("server.batch.mean", requests=told).value)
    assert 1.0 == signal("server.batch.mean", facts(target=TargetFacts(max_batch=1))).value
    assert signal("server.batch.mean").value is None


def test_saturation_names_the_resource() -> None:
    """The fullest of what was read."""
    run = facts(target=local_target("cuda:0"), gpus=(H200,))
    requests = parallel_requests(40)
    samples = gauges("gpu", labels={"gpu": "0"}, graphics_active=1.0, dram_active=0.445, tensor_active=0.9)

    found = signal("server.saturation.share", run, requests, samples)

    assert (0.9, "GPU tensor units") == (found.value, found.source)


@pytest.mark.parametrize(("held", "expected"), [(0.09, 0.96), (0.10, None)])
def test_a_busy_native_thread_is_a_full_resource(held: float, expected: float | None) -> None:
    """On a CPU, a thread that hardly holds the lock of Python computes; one that holds it does not count."""
    samples = serving_thread(0.96) + gauges("gil", labels={"pid": "1"}, held_share=held, window_s=3.0)

    found = signal("server.saturation.share", facts(target=local_target()), parallel_requests(40), samples)

    assert expected == (None if found.value is None else pytest.approx(found.value))
    assert expected is None or "native compute threads" == found.source


# ------------------------------------------------------------------------------ cpu and gil


def test_serving_thread() -> None:
    """On a CPU 0.6 of the time and waiting 0.25: of what was left to it, 0.8."""
    samples = serving_thread(0.6, waiting=0.25)

    assert 0.6 == pytest.approx(signal("cpu.serving.oncpu.share", samples=samples).value)
    assert 0.25 == pytest.approx(signal("cpu.serving.runq_wait.share", samples=samples).value)
    assert 0.8 == pytest.approx(signal("cpu.serving.busy.share", samples=samples).value)


def test_serving_in_turns() -> None:
    """Two threads of a pool that take turns of 10 s are one busy server."""
    first = [
        sample("cpu.thread", t, {"pid": "1", "tid": "1"}, oncpu_s=min(t - 20.0, 10.0), runq_wait_s=0.0)
        for t in range(20, 41)
    ]
    second = [
        sample("cpu.thread", t, {"pid": "1", "tid": "2"}, oncpu_s=max(0.0, t - 30.0), runq_wait_s=0.0)
        for t in range(20, 41)
    ]

    found = signal("cpu.serving.oncpu.share", facts(steady=(20.0, 40.0)), samples=first + second)

    assert 1.0 == pytest.approx(found.value)


def test_threads_seen_for_too_short() -> None:
    """Seen for less than half of the phase: missing."""
    found = signal("cpu.serving.oncpu.share", samples=serving_thread(0.9, start_s=20.0, end_s=39.0))

    assert "less than half" in (found.missing or "")


def test_host_idle_and_quota() -> None:
    """One of four cores busy; one period of two throttled."""
    samples = [
        sample("cpu", t, host_busy_s=t, host_cores=4.0, quota_periods=t * 10, quota_throttled=t * 5)
        for t in (20.0, 60.0)
    ]

    assert 0.75 == pytest.approx(signal("cpu.host.idle.share", samples=samples).value)
    assert 0.5 == pytest.approx(signal("cpu.quota.throttled.share", samples=samples).value)


@pytest.mark.parametrize(("workers", "others", "client"), [(1, 0.35, 0.15), (3, 0.05, 0.45)])
def test_each_driver_process_counts(workers: int, others: float, client: float) -> None:
    """Two cores: the host uses 1.5, the server 0.5, and each driver process 0.3."""
    run = facts(client=ClientFacts(cpu_share=0.3, workers=workers))
    samples = [sample("cpu", t, host_busy_s=1.5 * t, oncpu_s=0.5 * t, host_cores=2.0) for t in (20.0, 60.0)]

    assert others == pytest.approx(signal("cpu.others.share", run, samples=samples).value)
    assert client == pytest.approx(signal("client.cores.share", run, samples=samples).value)


def test_gil_holders() -> None:
    """Two windows; the second thread was seen in one of them only, so its mean is half of that."""
    samples = [sample("gil", t, {"pid": "1"}, held_share=0.8) for t in (30.0, 40.0)]
    samples += [sample("gil.thread", t, {"pid": "1", "thread": "a"}, held_share=0.6) for t in (30.0, 40.0)]
    samples += [sample("gil.thread", 40.0, {"pid": "1", "thread": "b"}, held_share=0.4)]

    assert (0.8, 2) == (
        signal("gil.held.share", samples=samples).value,
        signal("gil.held.share", samples=samples).n,
    )
    assert 0.2 == pytest.approx(signal("gil.second.share", samples=samples).value)


def test_gil_held_before_the_first_request_is_idle() -> None:
    """Windows that ended before anything was asked; a local model is being loaded then, which is no rest."""
    samples = [sample("gil", t, {"pid": "1"}, held_share=v) for t, v in ((1.5, 0.9), (30.0, 0.2))]
    asked = [request(1, sent_s=2.0)]

    assert 0.9 == signal("gil.idle.share", facts(target=TargetFacts()), asked, samples).value
    assert signal("gil.idle.share", facts(target=TargetFacts()), asked, samples[1:]).value is None
    assert "loaded" in (signal("gil.idle.share", facts(target=local_target()), asked, samples).missing or "")


def test_single_gil_holder_has_no_second() -> None:
    """One thread that holds it always is no contention."""
    samples = [sample("gil", 30.0, {"pid": "1"}, held_share=1.0)]

    assert 0.0 == signal("gil.second.share", samples=samples).value


# ------------------------------------------------------------------------------ gpu


def test_decode_windows_leave_out_the_rest() -> None:
    """The GPU is busy while tokens flow and idle between requests: decode reads 1, the phase less."""
    run = facts(target=local_target("cuda:0"), gpus=(H200,))
    requests = [request(i, 20.0 + 4 * i, ttft_s=0.0) for i in range(10)]
    samples = [
        sample("gpu", 20.0 + t / 10, {"gpu": "0"}, graphics_active=1.0 if t % 40 <= 10 else 0.0)
        for t in range(400)
    ]

    assert 1.0 == signal("gpu.graphics_active.decode.p50", run, requests, samples).value
    assert 0.0 == signal("gpu.graphics_active.steady.p50", run, requests, samples).value


def test_a_cpu_model_does_not_read_the_host_s_gpu() -> None:
    """An idle GPU beside a model on the CPU is no evidence."""
    samples = gauges("gpu", labels={"gpu": "0"}, graphics_active=0.0)

    found = signal(
        "gpu.graphics_active.decode.p50", facts(target=local_target("cpu"), gpus=(H200,)), [], samples
    )

    assert (None, "the model runs on the CPU") == (found.value, found.missing)


@pytest.mark.parametrize(("used", "expected"), [(2e9, 1.0), (1e8, 0.0)])
def test_a_silent_server_s_gpu_must_hold_its_weights(used: float, expected: float) -> None:
    """Where nobody names the device, memory in use tells."""
    run = facts(target=TargetFacts(weights_bytes=1_000_000_000), gpus=(H200,))

    assert (
        expected == signal("gpu.used", run, [], gauges("gpu", labels={"gpu": "0"}, mem_used_bytes=used)).value
    )


def test_the_gpu_of_the_model_is_read() -> None:
    """Named by the model, else the one with most memory in use."""
    samples = gauges("gpu", labels={"gpu": "0"}, graphics_active=0.1, mem_used_bytes=9e9)
    samples += gauges("gpu", labels={"gpu": "1"}, graphics_active=0.9, mem_used_bytes=5e9)
    named = facts(target=local_target("cuda:1"), gpus=(H200,))
    silent = facts(gpus=(H200,))

    assert 0.9 == signal("gpu.graphics_active.steady.p50", named, [], samples).value
    assert 0.1 == signal("gpu.graphics_active.steady.p50", silent, [], samples).value


def test_two_readings_are_no_median() -> None:
    """A percentile of two is none."""
    samples = gauges("gpu", 30.0, 30.2, labels={"gpu": "0"}, graphics_active=0.1)

    found = signal("gpu.graphics_active.steady.p50", facts(target=local_target("cuda:0")), [], samples)

    assert "only 2 readings, 3 are needed" == found.missing


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        ("NVIDIA H200", 4800),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100-PCIE-40GB", 1555),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("NVIDIA GeForce RTX 4090", 1008),
        ("NVIDIA A10", 600),
        ("NVIDIA L4", 300),
        ("Tesla T4", 320),
    ],
)
def test_datasheets(name: str, gb_per_s: int) -> None:
    """The name NVML gives finds the right part; the 40 and 80 GB ones differ."""
    assert gb_per_s == gpus.datasheet(name).bandwidth_bytes_per_s / 1e9


@pytest.mark.parametrize(
    "name", ["NVIDIA L40S", "NVIDIA A10G", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100X"]
)
def test_unlisted_gpus_are_refused(name: str) -> None:
    """A similar name is another part: no number rather than a wrong one."""
    with pytest.raises(NoValue, match="is not in perfdoctor/data"):
        gpus.datasheet(name)


# ------------------------------------------------------------------------------ step, roof, load


def test_step_shares() -> None:
    """Kernels of 3 ms in a step of 25 ms."""
    step = [sample("step", 70.0, wall_s=0.025, device_s=0.003, kernel_s=None, launches=1187.0)]
    run = facts(target=local_target("cuda:0"))

    assert 0.12 == pytest.approx(signal("step.device.share", run, [], step).value)
    assert 0.88 == pytest.approx(signal("step.launch_gap.share", run, [], step).value)
    assert "the profiled step holds no kernel_s" == signal("step.kernel.share", run, [], step).missing


def test_roof_on_a_cpu() -> None:
    """1 GB every 0.1 s is 10 GB/s, half of a copy at 20; a CPU has no datasheet value."""
    run = facts(target=local_target(), calibration={"copy_bytes_per_s": 20e9})

    assert 10e9 == pytest.approx(signal("roof.implied.rate", run, [request(sent_s=21.0)]).value)
    assert 0.5 == pytest.approx(signal("roof.memory.share", run, [request(sent_s=21.0)]).value)
    assert signal("roof.physical.share", run, [request(sent_s=21.0)]).value is None


def test_roof_on_a_gpu() -> None:
    """Datasheet times 0.89 until the GPU's own copy was calibrated."""
    run = facts(target=local_target("cuda:0"), gpus=(H200,))
    calibrated = facts(
        target=local_target("cuda:0"), gpus=(H200,), calibration={"gpu_copy_bytes_per_s": 4.3e12}
    )

    assert 4.8e12 * 0.89 == pytest.approx(signal("roof.achievable.rate", run).value)
    assert 4.3e12 == signal("roof.achievable.rate", calibrated).value
    assert "NVIDIA H200 datasheet, SXM" == signal("roof.physical.rate", run).source


def test_unknown_gpu_has_no_roof() -> None:
    """A card that is not listed is refused by name."""
    run = facts(target=local_target("cuda:0"), gpus=(GpuFacts(index=0, name="Odd Card"),))

    assert "Odd Card" in (signal("roof.memory.share", run, [request(sent_s=21.0)]).missing or "")


def test_kv_cache_counts_into_a_step() -> None:
    """100 kB a token x 53.5 tokens of context x 1 request on top of the weights."""
    run = facts(target=local_target(kv_bytes_per_token=100_000))

    assert 1_000_000_000 + 5_350_000 == pytest.approx(signal("step.bytes", run, [request(sent_s=21.0)]).value)


@pytest.mark.parametrize(("tokens_per_s", "known"), [(12.0, True), (12.5, False)])
def test_speculative_decoding_has_no_roof(tokens_per_s: float, known: bool) -> None:
    """More than 1.2 tokens a step and request: tokens are no steps."""
    run = facts(target=local_target(), calibration={"copy_bytes_per_s": 20e9})
    engine = counters("engine", steps=10.0, output_tokens=tokens_per_s)

    assert known == (signal("roof.implied.rate", run, [request(sent_s=21.0)], engine).value is not None)


def test_storage_wait_by_delay_accounting() -> None:
    """Block delay of the phases after the imports, which no fix of the model's files helps."""
    samples = load_samples(import_=2.0, weights=8.0)
    samples += [sample("io", t, blkio_delay_s=d) for t, d in ((0.0, 0.0), (2.0, 2.0), (10.0, 6.0))]

    found = signal("load.storage_wait.share", facts(target=local_target()), [], samples)

    assert (0.4, "block-IO delay accounting") == (pytest.approx(found.value), found.source)


def test_storage_wait_by_blocked_threads() -> None:
    """Every other reading of the weights phase blocked: half of 8 of 10 s."""
    samples = load_samples(import_=2.0, weights=8.0)
    samples += [sample("io", 2.5 + i, blkio_delay_s=None, blocked_threads=float(i % 2)) for i in range(8)]

    found = signal("load.storage_wait.share", facts(target=local_target()), [], samples)

    assert (0.4, 8) == (pytest.approx(found.value), found.n)


def test_achieved_read_rate() -> None:
    """800 MB of storage reads in 8 s of reading weights."""
    samples = load_samples(import_=2.0, weights=8.0)
    samples += [sample("io", t, process_read_bytes=b) for t, b in ((0.0, 0.0), (2.0, 0.0), (10.0, 8e8))]

    assert 1e8 == pytest.approx(signal("load.read.rate", facts(target=local_target()), [], samples).value)


def test_client_lag_is_relative_to_a_request() -> None:
    """1 ms of lag over a request of 1.1 s."""
    assert 0.001 / 1.1 == pytest.approx(
        signal("client.loop_lag.share", requests=[request(sent_s=21.0)]).value
    )


@pytest.mark.parametrize(("kernel_s", "expected"), [(0.5, 0.5), (1.25, 1.0), (1.26, None)])
def test_a_disturbed_profile_is_no_share(kernel_s: float, expected: float | None) -> None:
    """Operators that outlast a whole step by a quarter waited for a CPU; less is the profiler's own time."""
    step = [sample("step", 70.0, wall_s=1.0, profiled_wall_s=2.0, kernel_s=kernel_s)]

    share = signal("step.kernel.share", facts(target=local_target()), [], step)

    assert expected == share.value
    assert expected is not None or "other work used the CPU" in (share.missing or "")


def test_an_open_loop_has_as_many_users_as_requests_open() -> None:
    """Three requests open for half of the steady phase each, beside one another: 1.5, which is two."""
    open_loop = facts(
        scenario=Scenario(load=Load(arrival="poisson", rate=1.0)),
        phases=(Phase(name="steady", start_s=20.0, end_s=60.0),),
    )
    requests = [request(id=i, sent_s=20.0, end_s=40.0) for i in range(3)]

    assert 2 == signal("drive.concurrency", open_loop, requests).value


@pytest.mark.parametrize(
    ("told", "samples", "expected"),
    [
        (True, [sample("log.start", 0.0, eager=0.0)], 1.0),  # the command line is believed first
        (None, [sample("log.start", 0.0, eager=1.0)], 1.0),
        (None, [sample("log.start", 0.0, weights_s=2.0), *gauges("log", cuda_graph=1.0)], 0.0),
        (None, gauges("log", cuda_graph=0.0), 1.0),
        (None, [sample("log.start", 0.0, weights_s=2.0)], None),
        (None, [], None),
    ],
)
def test_eager_by_command_line_log_or_decode_steps(
    told: bool | None, samples: list[Sample], expected: float | None
) -> None:
    """Where none of them tells it is missing, not off."""
    found = signal("engine.eager", facts(target=TargetFacts(eager=told)), samples=samples)

    assert expected == found.value
    assert (found.missing is None) == (expected is not None)
