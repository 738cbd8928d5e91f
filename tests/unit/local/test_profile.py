"""The `step` sample from a trace, and the window's place in a generation."""

from __future__ import annotations

import pytest

from perfdoctor.local.profile import Event, StepProfiler, step_values, tokens_needed, union_s

TRACE = [
    Event("aten::linear", device=False, start_s=0.0, end_s=0.4, self_s=0.1),
    Event("aten::addmm", device=False, start_s=0.1, end_s=0.4, self_s=0.2),
    Event("aten::view", device=False, start_s=0.5, end_s=0.6, self_s=0.1),
    Event("cudaLaunchKernel", device=False, start_s=0.2, end_s=0.3, self_s=0.1),
    Event("cudaLaunchKernelExC", device=False, start_s=0.3, end_s=0.4, self_s=0.1),
    Event("cudaGraphLaunch", device=False, start_s=0.3, end_s=0.4, self_s=0.1),
    Event("cudaStreamSynchronize", device=False, start_s=0.6, end_s=0.7, self_s=0.1),
    Event("gemm", device=True, start_s=0.5, end_s=0.9),
    Event("elementwise", device=True, start_s=0.8, end_s=1.0),
    Event("Memcpy DtoH (Device -> Pageable)", device=True, start_s=2.0, end_s=3.0),
]


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        ([], 0.0),
        ([(0, 1), (2, 3)], 2.0),
        ([(0, 2), (1, 3)], 3.0),
        ([(0, 5), (1, 2)], 5.0),
        ([(1, 2), (0, 1)], 2.0),
    ],
    ids=["none", "apart", "overlapping", "one inside", "touching, unsorted"],
)
def test_the_union_counts_each_instant_once(intervals: list[tuple[float, float]], length: float):
    """Kernels of two streams overlap."""
    assert length == union_s(intervals)


def test_a_cuda_trace_gives_means_a_step():
    """Two steps: half of every count; a copy is no kernel."""
    values = step_values(TRACE, steps=2, wall_s=3.0, profiled_wall_s=4.0, cuda=True)

    assert {
        "wall_s": 3.0,
        "profiled_wall_s": 4.0,
        "steps": 2,
        "ops": 1.5,
        "launches": 1.0,
        "syncs": 0.5,
        "graph_launches": 0.5,
        "device_kernels": 1.0,
        "device_s": pytest.approx(0.25),
        "kernel_mean_s": pytest.approx(0.3),
        "kernel_s": None,
    } == values


def test_a_cpu_trace_has_the_time_inside_arithmetic_and_no_device():
    """What does not exist on a CPU is None, never 0."""
    values = step_values(TRACE[:3], steps=1, wall_s=1.0, profiled_wall_s=1.0, cuda=False)

    assert pytest.approx(0.3) == values["kernel_s"]
    assert 3 == values["ops"]
    device = ("launches", "syncs", "graph_launches", "device_kernels", "device_s", "kernel_mean_s")
    assert [None] * 6 == [values[name] for name in device]


def test_a_real_profile_finds_the_operators_of_each_step():
    """Run as a generation runs it, on real torch: one matrix product a token, timed by a clock of ours."""
    import torch

    ticks = iter(range(1000))
    profiler = StepProfiler(steps=3, cuda=False, now=lambda: float(next(ticks)))
    matrix = torch.ones(64, 64)

    for _ in range(tokens_needed(3)):
        torch.mm(matrix, matrix)
        profiler.on_token()

    values = profiler.values()
    assert values is not None
    assert values["ops"] and values["ops"] >= 1  # a product dispatches helpers of its own
    assert 1 / 16 == values["wall_s"]  # the clock was read once at each end of 16 steps
    assert values["kernel_s"]


def test_a_generation_cut_short_gives_no_sample():
    """One token less than needed; the open window is closed all the same."""
    profiler = StepProfiler(steps=2, cuda=False, now=lambda: 0.0)

    for _ in range(tokens_needed(2) - 1):
        profiler.on_token()
    profiler.close()

    assert profiler.values() is None
