"""What each state of a GPU reads like: the recorded runs keep the pattern that rules rest on."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor import store
from perfdoctor.model import Sample

FOLDER = Path(__file__).parents[1] / "golden"
MIB = 2**20

# run -> metric of the gpu probe -> (least, most) of its mean over the steady phase; see golden/README.md
SIGNATURES = {
    "eager-alone": {"sm_active": (0.01, 0.04), "dram_active": (0.01, 0.03), "pcie_rx": (40, 120)},
    "gil-free-thread": {"sm_active": (0.01, 0.04), "dram_active": (0.01, 0.03), "pcie_rx": (40, 120)},
    "gil-rival": {"sm_active": (0, 0.01), "dram_active": (0, 0.01), "pcie_rx": (0, 40)},
    "graph-decode": {"graphics_active": (0.6, 0.9), "sm_active": (0.15, 0.3), "dram_active": (0.1, 0.2)},
    "compiled-decode": {"graphics_active": (0.45, 0.65), "sm_active": (0.15, 0.3), "dram_active": (0.1, 0.2)},
    "prefill-34k": {"sm_active": (0.5, 0.9), "tensor_active": (0.3, 0.6), "power_w": (400, 700)},
    "no-kv-cache": {"sm_active": (0.5, 0.9), "tensor_active": (0.2, 0.6), "power_w": (400, 700)},
    "offload": {"sm_active": (0, 0.005), "util": (0.05, 0.3), "pcie_rx": (4000, 8000)},
    "host-copies": {"sm_active": (0, 0.02), "util": (0.05, 0.3), "pcie_rx": (3000, 8000)},
    "spin-neighbour": {"util": (0.99, 1), "graphics_active": (0.99, 1), "sm_active": (0.01, 0.04)},
    "spin-neighbour-idle": {"util": (0.99, 1), "graphics_active": (0.99, 1), "sm_active": (0.0076, 0.02)},
    "copy-neighbour": {"util": (0.99, 1), "dram_active": (0.5, 0.9), "tensor_active": (0, 0.02)},
    "gemm-neighbour": {"tensor_active": (0.5, 0.95), "power_w": (650, 700), "sm_clock_mhz": (1300, 1900)},
}


def in_steady(run: store.Run, probe: str) -> list[Sample]:
    steady = next(phase for phase in run.facts.phases if phase.name == "steady")
    return [s for s in run.read_samples() if s.probe == probe and steady.start_s <= s.at_s <= steady.end_s]


def mean(samples: list[Sample], metric: str) -> float:
    values = [value for s in samples if (value := s.values.get(metric)) is not None]
    return sum(values) / len(values)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_state_keeps_its_signature(name: str):
    """Means over the steady phase; PCIe in MiB/s."""
    samples = in_steady(store.open_run(FOLDER / f"h200-{name}"), "gpu")

    for metric, (least, most) in SIGNATURES[name].items():
        found = mean(samples, "pcie_rx_bytes_per_s") / MIB if metric == "pcie_rx" else mean(samples, metric)
        assert least <= found <= most, metric


def test_a_neighbour_shows_in_who_runs_kernels_and_only_there():
    """With the same device-wide reading of 100 %, the driver's count by process tells whose work it is."""
    alone, beside = (store.open_run(FOLDER / f"h200-{name}") for name in ("graph-decode", "copy-neighbour"))

    def others(run: store.Run) -> float:
        return mean([s for s in in_steady(run, "gpu.process") if s.labels["who"] == "others"], "util")

    assert 0 == others(alone)
    assert 0.3 <= others(beside)
