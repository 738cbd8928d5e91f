# ruff: noqa: N802 - the names are NVML's
"""The GPU probe over a small stand-in for pynvml: the driver is the edge, all else is real."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from perfdoctor.probes import _nvml, gpu
from perfdoctor.probes._probe import Unavailable
from perfdoctor.probes._subject import Subject

GPM = {1: 8.2, 2: 1.3, 3: 0.2, 5: 0.1, 10: 1.1, 20: 3.0, 21: 51.0}


class NVMLError(Exception):
    """As pynvml's."""


class FakeNvml:
    """`gpus` devices; GPM values by metric id, or None for a GPU without; `running` pids by device."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_GPM_METRICS_GET_VERSION = 1

    def __init__(self, gpus: int = 1, gpm: dict[int, float] | None = GPM, running: Any = ()) -> None:
        self.gpus, self.gpm, self.running = gpus, gpm, dict(running)
        self.refused: set[str] = set()
        self.freed = self.shut = 0

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "refused"):
            raise NVMLError(f"{name}: Not Supported")
        return object.__getattribute__(self, name)

    def nvmlDeviceGetCount(self):
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=pid, usedGpuMemory=2**30) for pid in self.running.get(handle, ())]

    def nvmlDeviceGetProcessUtilization(self, handle, since):
        raise NVMLError("Not Found")

    def nvmlGpmSampleAlloc(self):
        if self.gpm is None:
            raise NVMLError("Not Supported")
        return object()

    def nvmlGpmSampleGet(self, handle, sample):
        return sample

    def nvmlGpmSampleFree(self, sample):
        self.freed += 1

    def c_nvmlGpmMetricsGet_t(self):
        return SimpleNamespace(
            metrics=[SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(20)]
        )

    def nvmlGpmMetricsGet(self, request):
        assert request.version == 1
        assert request.sample1 is not request.sample2
        for slot in request.metrics[: request.numMetrics]:
            slot.value = self.gpm[slot.metricId]
        return request

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=100, memory=51)

    def nvmlDeviceGetPowerUsage(self, handle):
        return 127_500

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(used=4_000_000_000, total=150_000_000_000)

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return 0x4

    def nvmlDeviceGetTemperature(self, handle, kind):
        return 31

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 700_000

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle):
        return 5

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle):
        return 16

    def nvmlDeviceGetName(self, handle):
        return b"NVIDIA H200"

    def nvmlSystemGetDriverVersion(self):
        return "580.159"

    def nvmlShutdown(self):
        self.shut += 1


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


def test_percent_become_shares_and_mebibytes_bytes():
    """From the second sample on, over the time in between."""
    now = Hand()
    reader = gpu.GpuReader(Subject(), FakeNvml(), now)
    reader.read()

    now.at_s += 0.2
    (reading,) = reader.read()

    assert {
        "graphics_active": 0.082,
        "sm_active": 0.013,
        "sm_occupancy": 0.002,
        "tensor_active": 0.001,
        "dram_active": 0.011,
        "pcie_tx_bytes_per_s": 3.0 * 2**20,
        "pcie_rx_bytes_per_s": 51.0 * 2**20,
        "util": 1.0,
        "mem_util": 0.51,
        "power_w": 127.5,
        "sm_clock_mhz": 1980,
        "mem_clock_mhz": 3201,
        "clock_event_reasons": 4,
        "mem_used_bytes": 4e9,
        "temperature_c": 31,
        "other_processes": None,
    } == pytest.approx(reading.values)
    assert ({"gpu": "0"}, None) == (reading.labels, reading.why)


def test_the_first_sample_has_nothing_to_compare_with():
    """The plain readings are there, the fine ones are None with the reason."""
    (reading,) = gpu.GpuReader(Subject(), FakeNvml(), Hand()).read()

    assert reading.values["sm_active"] is None
    assert 127.5 == reading.values["power_w"]
    assert "first GPM sample" in (reading.why or "")


@pytest.mark.parametrize(("gap_s", "read"), [(0.099, False), (0.101, True)])
def test_pairs_closer_than_100_ms_are_not_taken(gap_s, read):
    """They would read half the truth."""
    now = Hand()
    reader = gpu.GpuReader(Subject(), FakeNvml(), now)
    reader.read()

    now.at_s += gap_s
    (reading,) = reader.read()

    assert read is (reading.values["sm_active"] is not None)


def test_a_value_that_is_no_number_is_missing():
    """NaN never becomes 0, and the sample says which one."""
    now = Hand()
    reader = gpu.GpuReader(Subject(), FakeNvml(gpm=GPM | {10: float("nan")}), now)
    reader.read()

    now.at_s += 0.2
    (reading,) = reader.read()

    assert reading.values["dram_active"] is None
    assert 0.013 == pytest.approx(reading.values["sm_active"])
    assert "dram_active" in (reading.why or "")


def test_a_value_the_driver_marks_as_failed_is_missing():
    """Its status is not 0."""
    assert _nvml.gpm_value(0.01, 3, 50.0) is None
    assert 0.5 == _nvml.gpm_value(0.01, 0, 50.0)


def test_an_older_gpu_lacks_only_the_fine_metrics():
    """Support is found out by asking for a sample, whatever the driver's flag says."""
    now = Hand()
    reader = gpu.GpuReader(Subject(), FakeNvml(gpm=None), now)

    (reading,) = reader.read()

    assert reading.values["sm_active"] is None
    assert 1.0 == reading.values["util"]
    assert "Hopper" in reader.gaps[0].why


def test_a_refused_question_leaves_its_value_empty():
    """A vGPU hides its power; the clocks are still read."""
    nvml = FakeNvml()
    nvml.refused.add("nvmlDeviceGetPowerUsage")

    values = _nvml.read_plain(nvml, 0)

    assert values["power_w"] is None
    assert 1980 == values["sm_clock_mhz"]


def test_all_gpus_are_read_in_turn_until_the_servers_is_seen():
    """Then only its own: the process with id 7 computes on GPU 2."""
    now, subject, nvml = Hand(), Subject(), FakeNvml(gpus=3, running={2: (7,), 0: (99,)})
    reader = gpu.GpuReader(subject, nvml, now)
    unknown = {reader.read()[0].labels["gpu"] for _ in range(3)}

    subject._tree, subject._tree_of, subject._tree_at_s, subject.pid = (7,), 7, 1e12, 7
    known = {reader.read()[0].labels["gpu"] for _ in range(3)}

    assert {"0", "1", "2"} == unknown
    assert {"2"} == known


def test_pids_of_another_namespace_keep_all_gpus():
    """In a container the driver tells the host's ids: nothing is seen, so nothing is left out."""
    nvml = FakeNvml(gpus=2, running={0: (4000,)})

    assert [] == _nvml.with_processes(nvml, [0, 1], (7,))


def test_closing_gives_everything_back():
    """Two samples a GPU, and the library."""
    nvml = FakeNvml(gpus=2)
    reader = gpu.GpuReader(Subject(), nvml, Hand())

    reader.close()

    assert (4, 1) == (nvml.freed, nvml.shut)


def test_a_driver_without_gpus_is_unsupported():
    """None is plugged in, or none is shown to the container."""
    with pytest.raises(Unavailable) as caught:
        gpu.GpuReader(Subject(), FakeNvml(gpus=0))

    assert "unsupported" == caught.value.status


def test_facts_of_a_gpu():
    """For run.json; what is refused stays empty."""
    nvml = FakeNvml()
    full = _nvml.gpu_facts(nvml, 0)
    nvml.refused.add("nvmlDeviceGetEnforcedPowerLimit")

    assert ("NVIDIA H200", "580.159", True, 700.0, 1980, "gen5 x16") == (
        full.name,
        full.driver,
        full.gpm,
        full.power_limit_w,
        full.sm_clock_max_mhz,
        full.pcie,
    )
    assert _nvml.gpu_facts(nvml, 0).power_limit_w is None


def test_a_machine_without_driver_says_how_to_get_one():
    """The real library on a machine without one; elsewhere it opens."""
    try:
        nvml = _nvml.open_nvml()
    except Unavailable as error:
        assert "unsupported" == error.status
        assert "driver" in (error.enable or "")
    else:
        assert nvml.nvmlDeviceGetCount() >= 0


def test_processes_beside_the_servers_are_counted():
    """Two others on the first GPU; on the second the server is not, so nothing is known of it."""
    nvml = FakeNvml(gpus=2, running={0: (10, 11, 12), 1: (13,)})

    assert 2 == _nvml.foreign_processes(nvml, 0, (10,))
    assert None is _nvml.foreign_processes(nvml, 1, (10,))
    assert 0 == _nvml.foreign_processes(FakeNvml(running={0: (10,)}), 0, (10,))
