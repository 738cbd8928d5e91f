"""What one decode step does: its operators, launches and kernels, from a short torch.profiler window.

The profiler slows what it watches, so the step's true length is measured first, in the same generation:

    token 1 .. SETTLE | UNPROFILED steps, timed | 1 step of rehearsal | N steps profiled | the rest

The rehearsal pays for the profiler's own start (on cuda up to a second) outside the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SETTLE = 4  # first tokens: prefill, allocator growth
UNPROFILED = 16  # steps, at least

ARITHMETIC = frozenset(
    f"aten::{name}"
    for name in (
        "mm", "addmm", "bmm", "baddbmm", "addbmm", "matmul", "linear", "addmv", "mv", "dot", "mkldnn_linear",
        "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math",
        "scaled_dot_product_attention",
    )
) | {"mkldnn::_linear_pointwise"}  # fmt: skip

LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchCooperativeKernel")  # also their Ex forms
SYNCS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize")
GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch")
COPIES = ("Memcpy", "Memset")  # device activities that are no kernels


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a trace. `self_s` is host time without children, 0 for a device event."""

    name: str
    device: bool
    start_s: float
    end_s: float
    self_s: float = 0.0


def tokens_needed(steps: int) -> int:
    """How long a generation must be for a profile of `steps` decode steps."""
    return SETTLE + max(UNPROFILED, steps) + 1 + steps


def union_s(intervals: Iterable[tuple[float, float]]) -> float:
    """Length of the union of (start, end) intervals: overlapping kernels count once."""
    total, reach = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return total


def step_values(
    events: Sequence[Event], steps: int, wall_s: float, profiled_wall_s: float, cuda: bool
) -> dict[str, float | None]:
    """The `step` sample: means over the profiled steps. Nested operators count, as each is dispatched."""
    kernels = [e for e in events if e.device and not e.name.startswith(COPIES)]
    host = [e for e in events if not e.device]

    def per_step(names: tuple[str, ...]) -> float:
        return sum(e.name.startswith(names) for e in host) / steps

    busy_s = sum(e.end_s - e.start_s for e in kernels)
    return {
        "wall_s": wall_s,
        "profiled_wall_s": profiled_wall_s,
        "steps": steps,
        "ops": per_step(("aten::",)),
        "launches": per_step(LAUNCHES) if cuda else None,
        "syncs": per_step(SYNCS) if cuda else None,
        "graph_launches": per_step(GRAPH_LAUNCHES) if cuda else None,
        "device_kernels": len(kernels) / steps if cuda else None,
        "device_s": union_s((e.start_s, e.end_s) for e in kernels) / steps if cuda else None,
        "kernel_mean_s": busy_s / len(kernels) if kernels else None,
        "kernel_s": None if cuda else sum(e.self_s for e in host if e.name in ARITHMETIC) / steps,
    }


class StepProfiler:
    """Watches one generation from inside its thread; `values` is None until enough tokens have come."""

    def __init__(self, steps: int, cuda: bool, now: Callable[[], float]) -> None:
        self._steps, self._cuda, self._now = steps, cuda, now
        self._timed = max(UNPROFILED, steps)
        self._tokens = 0
        self._profiler: Any = None
        self._mark_s = self._wall_s = self._profiled_wall_s = 0.0
        self._finished: Any = None

    def on_token(self) -> None:
        """Call it as each token arrives."""
        self._tokens += 1
        position = self._tokens - SETTLE
        if position == 0:
            self._mark_s = self._now()
        elif position == self._timed:
            self._wall_s = (self._now() - self._mark_s) / self._timed
            self._start()
        elif position == self._timed + 1:
            self.close()
            self._start()
        elif position == self._timed + 1 + self._steps:
            self._profiled_wall_s = (self._now() - self._mark_s) / self._steps
            self._finished = self._finish()

    def close(self) -> None:
        """Ends a window that is still open, whatever ended the generation."""
        if self._profiler is not None:
            self._finish()

    def values(self) -> dict[str, float | None] | None:
        """The `step` sample. Reading a trace takes seconds on cuda, so not before the generation is over."""
        if self._finished is None:
            return None
        events = read_events(self._finished)
        return step_values(events, self._steps, self._wall_s, self._profiled_wall_s, self._cuda)

    def _start(self) -> None:
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self._cuda else [])
        self._profiler = profile(activities=kinds)
        self._profiler.__enter__()
        self._mark_s = self._now()

    def _finish(self) -> Any:
        profiler, self._profiler = self._profiler, None
        profiler.__exit__(None, None, None)
        return profiler


def read_events(profiler: Any) -> list[Event]:
    """A finished torch.profiler's events, times in seconds (torch gives microseconds)."""
    from torch.autograd import DeviceType

    events = []
    for event in profiler.events():
        if getattr(event, "is_user_annotation", False):
            continue  # a label that spans kernels would count their gaps as busy
        device = event.device_type != DeviceType.CPU
        start_s, end_s = event.time_range.start / 1e6, event.time_range.end / 1e6
        own_s = 0.0 if device else event.self_cpu_time_total / 1e6
        events.append(Event(event.name, device, start_s, end_s, own_s))
    return events
