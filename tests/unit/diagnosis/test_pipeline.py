"""Whole runs, judged: the states of the reference, odd data, and what the verdict rests on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdoctor.diagnosis.pipeline import diagnose
from perfdoctor.model import (
    ClientFacts,
    Diagnosis,
    Finding,
    Phase,
    ProbeState,
    RequestRecord,
    RunFacts,
    Sample,
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

CALIBRATED = {"copy_bytes_per_s": 20e9}
QWEN = 3_087_000_000  # bytes a decode step of the 1.5B model reads in bf16


def one_user(n: int = 40, step_s: float = 0.1, start_s: float = 20.0) -> list[RequestRecord]:
    """One request after the other, 10 steps each."""
    whole = 0.1 + 10 * step_s
    return [request(i, start_s + i * whole, decode_s=10 * step_s) for i in range(n)]


def hits(found: Diagnosis) -> list[str]:
    return [f.rule for f in found.findings]


def finding(found: Diagnosis, rule: str) -> Finding:
    return next(f for f in found.findings if f.rule == rule)


def state(found: Diagnosis, rule: str) -> tuple[str, str]:
    return next((r.status, r.reason) for r in found.rules if r.rule == rule)


def on_h200(step_s: float = 0.025, **counted: float) -> Diagnosis:
    """One user before the 1.5B model on an H200 whose counters read like this, in shares."""
    run = facts(
        concurrency=1,
        target=local_target("cuda:0", step_bytes=QWEN, weights_bytes=3_554_000_000),
        gpus=(H200,),
    )
    counted = {"mem_used_bytes": 5e9, "tensor_active": 0.001, **counted}
    requests = one_user(int(40 / (0.1 + 10 * step_s)), step_s)
    return diagnose(
        run, "complete", requests, gauges("gpu", labels={"gpu": "0"}, **counted) + serving_thread(0.99)
    )


# ------------------------------------------------------------------------------ H200 signatures


def test_h200_eager_is_launch_bound() -> None:
    """Batch 1 eager: GPU busy 8 %, SM 1.3 %, DRAM 1.1 %, launch traffic 51 MiB/s, serving thread on a CPU."""
    found = on_h200(
        0.058, graphics_active=0.082, sm_active=0.013, dram_active=0.011, pcie_rx_bytes_per_s=53e6
    )

    launch = finding(found, "launch-bound-decode")
    assert ["launch-bound-decode"] == hits(found)
    assert "launch-overhead" == found.verdict.cls
    assert 0.918 * 0.58 / 0.68 == pytest.approx(launch.share)
    assert any("memory-bandwidth: gpu.dram_active.decode.p50 is 1 %" in text for text in launch.excluded)
    assert "launch" == found.roof.binding or found.roof.binding is None
    assert 0.01 == pytest.approx(found.roof.physical_share, abs=0.005)


def test_h200_decode_like_a_copy_is_memory_bound() -> None:
    """DRAM 85 % with idle tensor units: memory bandwidth, and the pace agrees."""
    found = on_h200(
        0.00075,
        graphics_active=0.997,
        sm_active=0.47,
        dram_active=0.85,
        pcie_rx_bytes_per_s=15e6,
        tensor_active=0.027,
    )

    assert ["bandwidth-bound-decode"] == hits(found)
    assert "memory-bandwidth" == found.verdict.cls
    assert "memory" == found.roof.binding


def test_h200_linears_in_a_graph_are_neither() -> None:
    """GR 99.7, DRAM 39.8: small kernels, which no rule of this version claims."""
    found = on_h200(
        0.00163,
        graphics_active=0.997,
        sm_active=0.47,
        dram_active=0.398,
        pcie_rx_bytes_per_s=15e6,
        tensor_active=0.027,
    )

    assert "clear" == state(found, "launch-bound-decode")[0]
    assert "clear" == state(found, "bandwidth-bound-decode")[0]


def test_h200_spinning_thread_is_neither() -> None:
    """utilization.gpu 100 % of a one-thread kernel: not compute, not bandwidth, and no launch traffic."""
    found = on_h200(
        0.05, graphics_active=0.999, sm_active=0.0076, dram_active=0.0, pcie_rx_bytes_per_s=0.3e6, util=1.0
    )

    assert "memory-bandwidth" not in [f.cls for f in found.findings]
    assert "launch-overhead" not in [f.cls for f in found.findings]


def test_foreign_kernel_does_not_hide_launch_overhead() -> None:
    """A spinning kernel of another process fills the graphics engine; the profiled step still tells."""
    run = facts(concurrency=1, target=local_target("cuda:0", step_bytes=QWEN), gpus=(H200,))
    spinning = gauges("gpu", labels={"gpu": "0"}, graphics_active=0.999, sm_active=0.013, dram_active=0.011,
                      tensor_active=0.0, pcie_rx_bytes_per_s=53e6, mem_used_bytes=5e9)  # fmt: skip
    step = sample("step", 70.0, wall_s=0.025, profiled_wall_s=0.047, device_s=0.003, launches=1187.0)

    found = diagnose(run, "complete", one_user(step_s=0.025, n=100), [*spinning, step, *serving_thread(0.99)])

    launch = finding(found, "launch-bound-decode")
    assert "1,187 kernel launches a token" in launch.summary
    assert "medium" != launch.confidence  # GIL was not looked at, so a neighbour is open


def test_offloaded_weights_are_not_launch_overhead() -> None:
    """7 GB/s over PCIe with idle multiprocessors is a transfer."""
    found = on_h200(0.1, graphics_active=0.006, sm_active=0.001, dram_active=0.003, pcie_rx_bytes_per_s=7.1e9)

    assert [] == [f.rule for f in found.findings if f.cls == "launch-overhead"]
    assert "pcie-offload" in state(found, "launch-bound-decode")[1]


def test_medium_needs_every_neighbour_excluded() -> None:
    """With the interpreter and the run queue seen to be fine, the pattern earns medium, never high."""
    run = facts(concurrency=1, target=local_target("cuda:0", step_bytes=QWEN), gpus=(H200,))
    samples = gauges("gpu", labels={"gpu": "0"}, graphics_active=0.08, sm_active=0.013, dram_active=0.011,
                     tensor_active=0.0, pcie_rx_bytes_per_s=53e6, mem_used_bytes=5e9)  # fmt: skip
    samples += serving_thread(0.99, waiting=0.01)
    samples += [sample("gil", 30.0, {"pid": "1"}, held_share=0.7)]
    samples += [sample("gil.thread", 30.0, {"pid": "1", "thread": "serve"}, held_share=0.7)]

    found = diagnose(run, "complete", one_user(step_s=0.025, n=100), samples)

    assert "medium" == finding(found, "launch-bound-decode").confidence


# ------------------------------------------------------------------------------ the host's own classes


def test_serial_server() -> None:
    """Four users before one worker: found by the experiment, so with high confidence, and ranked first."""
    requests = serial_requests(36)
    stamps = [served(r, queue_s=(r.first_token_s or 0) - (r.sent_s or 0) - 0.1) for r in requests]
    run = facts(target=local_target())

    found = diagnose(run, "complete", [*requests, *baseline_requests()], stamps)

    serial = finding(found, "serial-server")
    assert "scheduling" == found.verdict.cls
    assert "high" == serial.confidence
    assert 0.74 == pytest.approx(serial.share, abs=0.01)
    assert 0.74 * 40 == pytest.approx(serial.run_seconds, abs=0.5)
    assert serial.summary.startswith("Serial server: 74 % of a request is spent in the server's queue")
    assert found.next.startswith("perfdoctor explain ")


def test_serial_server_seen_from_afar() -> None:
    """On another host latency alone shows it: baseline against load, no probe at all."""
    run = facts(
        target=TargetFacts(kind="endpoint", url="http://far:8000", remote=True),
        probes=[ProbeState(probe="cpu", status="unsupported", why="the server is on another host")],
    )

    found = diagnose(run, "complete", [*serial_requests(36), *baseline_requests()], [])

    assert ["serial-server"] == hits(found)
    assert "medium" == finding(found, "serial-server").confidence
    assert "another host" in state(found, "launch-bound-decode")[1]
    assert ["cpu"] == [p.probe for p in found.unmeasured]


def test_memory_bound_serial_server_is_both() -> None:
    """Two causes at once: batching would share the weights' reads that bound each step."""
    run = facts(target=local_target(), calibration={"copy_bytes_per_s": 12.5e9})
    requests = serial_requests(36)
    step = sample("step", 70.0, wall_s=0.1, profiled_wall_s=0.1, kernel_s=0.095)

    found = diagnose(run, "complete", [*requests, *baseline_requests()], [step, *serving_thread(0.99)])

    assert ["serial-server", "bandwidth-bound-decode"] == hits(found)
    assert "Serial server" in finding(found, "serial-server").summary
    assert "Also: memory bandwidth sets the pace" in found.verdict.summary


def test_a_cause_is_told_beside_what_no_rule_judges() -> None:
    """A serial server whose lock somebody else holds: raising its limit would not be the whole story."""
    samples = [sample("gil", 1.0, {"pid": "1"}, held_share=0.4)]

    found = diagnose(facts(), "complete", [*serial_requests(36), *baseline_requests()], samples)

    assert "found" == found.verdict.status
    assert "Seen, but not judged: Python's lock is held 40 % of the time" in found.verdict.summary


def test_two_causes_are_both_found() -> None:
    """A serial server that is also starved of CPU."""
    run = facts(target=local_target())

    found = diagnose(
        run, "complete", [*serial_requests(36), *baseline_requests()], serving_thread(0.5, waiting=0.4)
    )

    assert ["serial-server", "cpu-contention"] == [f.rule for f in found.findings]


def test_a_symptom_stands_below_its_cause() -> None:
    """A server whose CPU quota is used up cannot launch fast enough either: the quota comes first."""
    run = facts(target=local_target("cuda:0"), gpus=(H200,))
    samples = gauges("gpu", labels={"gpu": "0"}, graphics_active=0.1, sm_active=0.01, dram_active=0.01,
                     tensor_active=0.0, pcie_rx_bytes_per_s=50e6, mem_used_bytes=5e9)  # fmt: skip
    samples += serving_thread(0.6, waiting=0.35)
    samples += counters("cpu", quota_periods=10.0, quota_throttled=9.0, host_busy_s=0.7)

    found = diagnose(run, "complete", [*parallel_requests(140), *baseline_requests()], samples)

    assert ["cpu-quota-exhausted", "launch-bound-decode"] == [f.rule for f in found.findings]
    assert "cpu-quota-exhausted" == found.findings[1].explained_by
    assert "cpu-contention" == found.verdict.cls
    assert "Also" not in found.verdict.summary


def test_overloaded_server_is_no_serial_one() -> None:
    """Several in service on a saturated device: capacity is the fix, and no limit is to be raised."""
    run = facts(concurrency=4, target=local_target("cuda:0", max_batch=None), gpus=(H200,))
    requests = serial_requests(36)
    samples = gauges("engine", running=2.0, waiting=2.0, kv_usage=0.5)
    samples += gauges("gpu", labels={"gpu": "0"}, graphics_active=1.0, dram_active=0.2, tensor_active=0.92,
                      mem_used_bytes=5e9)  # fmt: skip

    found = diagnose(run, "complete", [*requests, *baseline_requests()], samples)

    assert "overload" == found.verdict.cls
    assert "serial-server" not in {f.rule for f in found.findings}
    assert "shed-load-early" in {o.id for o in finding(found, "overload").fixes}


def test_a_batching_server_without_gain_is_never_called_serial() -> None:
    """Two in service, nothing known of the device, and throughput as with one: no limit to raise."""
    run = facts(concurrency=4, target=local_target(max_batch=None))
    samples = gauges("engine", running=2.0, waiting=2.0)

    found = diagnose(run, "complete", [*serial_requests(36), *baseline_requests()], samples)

    serial = finding(found, "serial-server")
    assert serial.summary.startswith("Overloaded")
    assert ("low", ()) == (serial.confidence, serial.fixes)


def test_host_bound_on_a_cpu() -> None:
    """A tiny model: a third of the step is arithmetic, the thread never rests."""
    run = facts(
        concurrency=1,
        target=local_target(step_bytes=1_000_000, weights_bytes=1_000_000),
        calibration=CALIBRATED,
    )
    step = sample("step", 70.0, wall_s=0.003, profiled_wall_s=0.006, kernel_s=0.001, ops=400.0)

    found = diagnose(run, "complete", one_user(step_s=0.003, n=290), [step, *serving_thread(0.95, 0.02)])

    assert ["launch-bound-decode"] == hits(found)
    assert "Host-bound: arithmetic is only 33 %" in found.verdict.summary


def slow_load(resident: float = 0.0, blocked: float = 1.0, **changes: Any) -> Diagnosis:
    """2 s of import and 10 s of weights; half a second between readings."""
    samples = load_samples(import_=2.0, weights=10.0, first_forward=0.5)
    samples += gauges("io", 0.0, 13.0, every_s=0.5, blkio_delay_s=None, blocked_threads=blocked)
    samples += counters("cpu", 0.0, 13.0, oncpu_s=0.1)
    run = facts(target=local_target(file_resident_share=resident), **changes)
    return diagnose(run, "complete", [*parallel_requests(140), *baseline_requests()], samples)


def test_slow_storage() -> None:
    """Ten of 12.5 s blocked on reads: a finding of the load, beside whatever requests show."""
    found = slow_load()

    load = finding(found, "slow-storage-load")
    assert ("load", "disk-io") == (load.of, load.cls)
    assert 0.84 == pytest.approx(load.share, abs=0.01)
    assert 10.5 == pytest.approx(load.run_seconds, abs=0.1)
    assert "medium" == load.confidence


def test_warm_cache_excludes_slow_storage() -> None:
    """A file that was resident was not waited for."""
    assert "clear" == state(slow_load(resident=0.95), "slow-storage-load")[0]


def test_load_finding_survives_thin_requests() -> None:
    """A slow load is found in a run that was cut before it had enough requests."""
    found = slow_load(steady=(20.0, 21.0))

    assert ("found", "disk-io") == (found.verdict.status, found.verdict.cls)
    assert "unknown" == state(found, "serial-server")[0]


# ------------------------------------------------------------------------------ honest answers


def test_healthy() -> None:
    """Four users get four times the tokens, nobody waits; what could not be judged is listed."""
    found = diagnose(facts(), "complete", [*parallel_requests(140), *baseline_requests()], [])

    assert ("healthy", "healthy") == (found.verdict.status, found.verdict.cls)
    assert "4 users get 4 times the tokens of one" in found.verdict.summary
    assert "Not judged: bandwidth-bound-decode" in found.verdict.summary
    assert "perfdoctor diagnose --endpoint http://127.0.0.1:8000 -c 8" == found.next


def test_one_user_without_a_finding_is_too_little_load() -> None:
    """At c=1 neither queue nor scaling can show."""
    found = diagnose(facts(concurrency=1), "complete", one_user(), [])

    assert ("insufficient_load", "insufficient-load") == (found.verdict.status, found.verdict.cls)
    assert found.next.endswith("-c 2")


def test_idle_rule_gives_way() -> None:
    """At c=1 with a cause found, load was enough."""
    found = on_h200(
        0.058, graphics_active=0.082, sm_active=0.013, dram_active=0.011, pcie_rx_bytes_per_s=53e6
    )

    assert ("clear", "another rule explains the time") == state(found, "idle-server")


def test_starved_client_forbids_a_verdict() -> None:
    """A busy client looks like a slow server: only the client is judged."""
    run = facts(client=ClientFacts(cpu_share=0.95))

    found = diagnose(run, "complete", [*serial_requests(36), *baseline_requests()], [])

    assert ("untrusted", "client-limited") == (found.verdict.status, found.verdict.cls)
    assert ["client-limited"] == hits(found)
    assert "cannot be trusted" in state(found, "serial-server")[1]
    assert found.next.endswith("-c 2")


def test_failing_server_is_not_a_slow_client() -> None:
    """Most requests failed: untrusted, but nobody blames the client."""
    requests = [request(i, 20.0 + i, outcome="http_500" if i % 3 else "ok") for i in range(40)]

    found = diagnose(facts(), "complete", requests, [])

    assert ("untrusted", None) == (found.verdict.status, found.verdict.cls)
    assert "perfdoctor report a-run" == found.next


@pytest.mark.parametrize(
    ("n", "end_s", "status"), [(9, 60.0, "unknown"), (10, 60.0, "hit"), (10, 22.9, "unknown")]
)
def test_too_few_requests(n: int, end_s: float, status: str) -> None:
    """Under 10 requests or 3 s nothing about requests is judged."""
    run = facts(steady=(20.0, end_s))

    found = diagnose(run, "complete", [*serial_requests(n), *baseline_requests()], [])

    assert status == state(found, "serial-server")[0]
    assert ("insufficient_evidence" if status == "unknown" else "found") == found.verdict.status


@pytest.mark.parametrize(
    ("n", "end_s", "expected"), [(29, 60.0, "low"), (30, 60.0, "high"), (30, 29.9, "low")]
)
def test_confidence_needs_a_full_run(n: int, end_s: float, expected: str) -> None:
    """Under 30 requests or 10 s no more than the pattern is claimed."""
    run = facts(steady=(20.0, end_s), target=local_target())

    found = diagnose(run, "complete", [*serial_requests(n), *baseline_requests()], [])

    assert expected == finding(found, "serial-server").confidence


def test_unexplained_time_caps_confidence() -> None:
    """More than a quarter of the time unexplained: low, whatever was excluded."""
    requests = serial_requests(36)
    engine = counters("engine", queue_sum_s=2.0, queue_count=1.0, prefill_sum_s=0.05, prefill_count=1.0)
    run = facts(target=local_target())

    found = diagnose(run, "complete", [*requests, *baseline_requests()], engine)

    assert 0.25 < (found.ledger.unexplained_share or 0)
    assert "low" == finding(found, "serial-server").confidence


def test_broken_law_stops_its_classes() -> None:
    """The server holds far more requests than we sent: somebody else uses it, so queueing is not judged."""
    requests = [*serial_requests(36), *baseline_requests()]

    found = diagnose(facts(), "complete", requests, gauges("engine", running=1.0, waiting=20.0))

    assert ["L1"] == [v.law for v in found.violated_laws]
    assert "law L1 is broken" in state(found, "serial-server")[1]
    assert "insufficient_evidence" == found.verdict.status


# ------------------------------------------------------------------------------ odd data


def test_empty_run() -> None:
    """Nothing at all is judged, nothing fails, and the next command is a real one."""
    found = diagnose(RunFacts(), "interrupted", [], [])

    assert "insufficient_evidence" == found.verdict.status
    assert {"unknown"} == {r.status for r in found.rules}
    assert "interrupted" == found.state


def test_killed_run_is_judged_from_its_requests() -> None:
    """A run killed in its steady phase has no phases on record; its requests still have."""
    run = facts(steady=None, baseline=None)

    found = diagnose(run, "interrupted", [*serial_requests(36), *baseline_requests()], [])

    assert "scheduling" == found.verdict.cls


def test_diagnosis_is_pure_and_serialisable() -> None:
    """The same run gives the same bytes, and they read back."""
    requests = [*serial_requests(36), *baseline_requests()]
    first, second = (msgspec.json.encode(diagnose(facts(), "complete", requests, [])) for _ in range(2))

    assert first == second
    assert "NaN" not in first.decode()
    assert "serial-server" == json.loads(first)["findings"][0]["rule"]
    assert msgspec.json.decode(first, type=Diagnosis)


number = st.none() | st.floats(-1e3, 1e12) | st.sampled_from([0.0, float("nan"), float("inf")])
PROBES = {
    "gpu": (
        "graphics_active",
        "sm_active",
        "dram_active",
        "tensor_active",
        "pcie_rx_bytes_per_s",
        "mem_used_bytes",
    ),
    "cpu": ("host_busy_s", "host_cores", "oncpu_s", "quota_periods", "quota_throttled"),
    "cpu.thread": ("oncpu_s", "runq_wait_s"),
    "io": ("blkio_delay_s", "blocked_threads", "process_read_bytes", "psi_some_s"),
    "gil": ("held_share",),
    "gil.thread": ("held_share",),
    "engine": ("running", "waiting", "kv_usage", "queue_sum_s", "queue_count", "steps", "output_tokens"),
    "load": ("started_s", "seconds"),
    "serve": ("arrived_s", "started_s", "first_token_s", "last_token_s", "done_s"),
    "step": ("wall_s", "profiled_wall_s", "device_s", "kernel_s", "launches"),
    "memory": ("rss_bytes",),
}


@st.composite
def any_sample(draw: st.DrawFn) -> Sample:
    probe = draw(st.sampled_from(sorted(PROBES)))
    labels = (
        {"phase": draw(st.sampled_from(["weights", "import", "total", "odd"]))} if probe == "load" else {}
    )
    labels |= {"request": "1"} if probe == "serve" else {}
    values = {name: draw(number) for name in PROBES[probe]}
    return sample(probe, draw(st.floats(0.0, 70.0)), labels, **values)


@st.composite
def any_record(draw: st.DrawFn) -> RequestRecord:
    stamp = st.none() | st.floats(0.0, 70.0)
    changes = {n: draw(stamp) for n in ("sent_s", "connected_s", "first_token_s", "last_token_s", "end_s")}
    return msgspec.structs.replace(
        request(draw(st.integers(0, 3))),
        phase=draw(st.sampled_from(["steady", "baseline", "warmup"])),
        outcome=draw(st.sampled_from(["ok", "timeout"])),
        output_tokens=draw(st.none() | st.integers(0, 30)),
        **changes,
    )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(any_record(), max_size=14),
    st.lists(any_sample(), max_size=25),
    st.sampled_from([None, "cpu", "cuda:0", "cuda:7"]),
    st.sampled_from([None, 0, QWEN]),
    st.booleans(),
)
def test_never_raises(
    requests: list[RequestRecord], samples: list[Sample], device: str | None, size: int | None, phases: bool
) -> None:
    """Whatever a broken probe or a killed run left behind, there is a diagnosis, and it is valid JSON."""
    target = local_target(device=device, step_bytes=size, weights_bytes=size, file_bytes=size)
    run = facts(target=target, gpus=(H200,), calibration={"copy_bytes_per_s": 0.0})
    if not phases:
        run = msgspec.structs.replace(run, phases=(Phase(name="steady", start_s=5.0, end_s=5.0),))

    found = diagnose(run, "interrupted", requests, samples)

    assert json.loads(msgspec.json.encode(found))["verdict"]["status"]
