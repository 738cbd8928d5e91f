"""What every probe owes the rest: named metrics that explain themselves, and samples that keep to them."""

from __future__ import annotations

import os
import time

import pytest

from perfdoctor.clock import Clock
from perfdoctor.model import Sample
from perfdoctor.probes import _check
from perfdoctor.probes._sampler import Budget, Sampler, Subject, discover

PROMISED = {
    "gpu.process": "mem_used_bytes util",
    "gpu": "sm_active graphics_active sm_occupancy tensor_active dram_active pcie_rx_bytes_per_s "
    "pcie_tx_bytes_per_s util mem_util power_w sm_clock_mhz mem_clock_mhz clock_event_reasons "
    "mem_used_bytes temperature_c other_processes",
    "disk": "reads read_bytes read_time_s writes write_bytes write_time_s busy_time_s",
    "io": "process_read_bytes process_read_chars psi_some_s psi_full_s blkio_delay_s blocked_threads threads",
    "cpu": "host_busy_s host_steal_s psi_some_s oncpu_s runq_wait_s quota_periods quota_throttled "
    "quota_throttled_s host_cores quota_cores threads",
    "cpu.thread": "oncpu_s runq_wait_s",
    "dcgm": "sm_active graphics_active sm_occupancy tensor_active dram_active pcie_rx_bytes_per_s "
    "pcie_tx_bytes_per_s power_w sm_clock_mhz mem_used_bytes",
    "gil": "held_share other_share samples errors window_s",
    "health": "latency_s",
    "stall": "waited_s",
    "log": "running waiting kv_usage generation_tokens_per_s prompt_tokens_per_s prefix_hit_share cuda_graph "
    "preemptions prefill_sum_s prefill_count prompt_tokens decode_sum_s decode_count output_tokens",
    "log.start": "start_s model_s weights_s engine_s compile_s profile_s warmup_s graph_s runner_s "
    "weights_bytes graph_bytes kv_bytes kv_tokens kv_concurrency request_tokens most_running "
    "workers on_host_share eager",
    "numa": "nodes far",
    "engine.bucket": "le",
    "gil.thread": "held_share",
    "memory": "rss_bytes rss_file_bytes rss_anon_bytes host_available_bytes cgroup_used_bytes "
    "cgroup_limit_bytes major_faults refault_file_bytes swap_in_bytes psi_some_s psi_full_s",
    "engine": "running waiting kv_usage preemptions prompt_tokens output_tokens requests queue_sum_s "
    "queue_count prefill_sum_s prefill_count decode_sum_s decode_count ttft_sum_s ttft_count e2e_sum_s "
    "e2e_count itl_sum_s itl_count prefix_hits prefix_queries steps",
}
PROBES = {probe.name: probe for probe in discover()}


def test_the_metrics_are_those_the_judges_read():
    """Names are the contract between collecting and judging."""
    found: dict[str, set[str]] = {}
    for probe in PROBES.values():
        for metric in probe.metrics:
            found.setdefault(metric.probe, set()).add(metric.name)

    assert {name: set(metrics.split()) for name, metrics in PROMISED.items()} == found


@pytest.mark.parametrize("name", PROBES)
def test_a_metric_can_be_checked_by_anyone(name):
    """Meaning, a command for the same number, and a unit that its name does not contradict."""
    for metric in PROBES[name].metrics:
        assert metric.meaning, metric.name
        assert metric.cross_check, metric.name
        for ending, unit in (
            ("bytes_per_s", "bytes/s"),
            ("_bytes", "bytes"),
            ("_share", "share"),
            ("_mhz", "MHz"),
        ):
            if metric.name.endswith(ending):
                assert unit == metric.unit, metric.name
                break


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_is_named_like_its_file(name):
    """`discover` takes the id from the file, run.json from the probe."""
    assert PROBES[name].open.__module__ == f"perfdoctor.probes.{name}"


@pytest.mark.parametrize("missing", [(), ("gpu",), ("gpu", "dcgm", "engine", "log")])
def test_all_probes_together_may_use_two_percent(missing: tuple[str, ...]):
    """Each is thinned out above its share; what is missing here leaves the others theirs."""
    budget = Budget()
    running = [probe for name, probe in PROBES.items() if name not in missing]

    for probe in running:
        budget.claim(probe.name, probe.max_share)

    assert budget.scale * sum(probe.max_share for probe in running) <= 0.0201
    assert budget.scale >= 0.6, "a probe would see too little of a run"


def test_samples_keep_to_the_metrics():
    """A real second of all probes on this very process."""
    samples: list[Sample] = []
    sampler = Sampler(Subject(pid=os.getpid()), Clock(), samples.append, lambda stacks: None, {"gil": 0.0})
    known = {(m.probe, m.name) for m in sampler.metrics}

    sampler.start()
    time.sleep(1.0)  # the probes' own schedule is what is tried here
    states = sampler.stop()

    assert {(s.probe, name) for s in samples for name in s.values} <= known
    assert all(s.took_s >= 0 and s.late_s >= 0 for s in samples)
    assert {"cpu", "io", "memory"} <= {s.probe for s in states if s.status == "ok"}
    assert all(s.why for s in states if s.status != "ok")


def test_check_tells_of_every_probe():
    """Each works, or says why not."""
    states = _check.check(Subject())

    assert sorted(PROBES) == [s.probe for s in states]
    assert all(s.status == "ok" or s.why for s in states)
