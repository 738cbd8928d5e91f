"""GPU counters from a DCGM exporter on this host: for GPUs whose driver has no GPM (before Hopper).

Read where someone runs it already (port 9400, or `DCGM_EXPORTER_LISTEN` as in its own configuration). Its
numbers are up to its interval old, 30 s by default. Profiling fields are missing unless it was told to export
them: they are then absent, and no idle GPU.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perfdoctor.probes._probe import Gap, Probe, Reading, Unavailable, gauges
from perfdoctor.probes._subject import Subject

if TYPE_CHECKING:
    import httpx

PORT = 9400
TIMEOUT_S = 1.0
MIB = 2**20
# our name -> (field, factor to our unit); fields of NVIDIA's dcgm-exporter, default-counters.csv
FIELDS: Mapping[str, tuple[str, float]] = {
    "graphics_active": ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1.0),
    "sm_active": ("DCGM_FI_PROF_SM_ACTIVE", 1.0),
    "sm_occupancy": ("DCGM_FI_PROF_SM_OCCUPANCY", 1.0),
    "tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1.0),
    "dram_active": ("DCGM_FI_PROF_DRAM_ACTIVE", 1.0),
    "pcie_rx_bytes_per_s": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1.0),
    "pcie_tx_bytes_per_s": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1.0),
    "power_w": ("DCGM_FI_DEV_POWER_USAGE", 1.0),
    "sm_clock_mhz": ("DCGM_FI_DEV_SM_CLOCK", 1.0),
    "mem_used_bytes": ("DCGM_FI_DEV_FB_USED", MIB),
}
UNITS = {
    "pcie_rx_bytes_per_s": "bytes/s", "pcie_tx_bytes_per_s": "bytes/s", "power_w": "W", "sm_clock_mhz": "MHz",
    "mem_used_bytes": "bytes",
}  # fmt: skip
SHARES = {"graphics_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active"}
MIG_SLACK = 1.0  # a share above one is a reading of a MIG slice against the wrong whole (NVIDIA/DCGM#152)

METRICS = gauges(
    "dcgm",
    f"curl -s http://127.0.0.1:{PORT}/metrics | grep DCGM_FI",
    {name: (UNITS.get(name, "share"), f"{field} of the exporter") for name, (field, _) in FIELDS.items()},
)


def read_page(text: str) -> dict[str, dict[str, float | None]]:
    """Our values by GPU index. Several MIG slices of one GPU are not added up: their shares are left out."""
    from prometheus_client.parser import text_string_to_metric_families

    ours = {field: (name, factor) for name, (field, factor) in FIELDS.items()}
    found: dict[str, dict[str, float | None]] = {}
    sliced: set[str] = set()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name not in ours or not math.isfinite(sample.value):
                continue
            gpu = sample.labels.get("gpu", "0")
            if sample.labels.get("GPU_I_ID"):
                sliced.add(gpu)
            name, factor = ours[sample.name]
            found.setdefault(gpu, {})[name] = _plausible(name, sample.value * factor)
    for gpu in sliced:
        found[gpu].update(dict.fromkeys(SHARES, None))
    return found


def _plausible(name: str, value: float) -> float | None:
    return None if name in SHARES and not 0 <= value <= MIG_SLACK else value


class DcgmReader:
    def __init__(self, client: httpx.Client, url: str) -> None:
        self._client, self._url = client, url
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        answer = self._client.get(self._url)
        answer.raise_for_status()
        found = read_page(answer.text)
        if not any(SHARES & values.keys() for values in found.values()):
            self.gaps = (
                Gap(
                    "dram_active",
                    "the exporter gives no profiling fields",
                    "add DCGM_FI_PROF_* to its counters file; it needs SYS_ADMIN for them",
                ),
            )
        return [Reading(values, {"gpu": gpu}) for gpu, values in found.items()]

    def close(self) -> None:
        self._client.close()


def open_dcgm(subject: Subject, stop: threading.Event) -> DcgmReader:
    import httpx
    import prometheus_client.parser  # noqa: F401 - imports belong to opening, not to the first reading

    listen = os.environ.get("DCGM_EXPORTER_LISTEN", f":{PORT}")
    url = f"http://127.0.0.1:{listen.rpartition(':')[2] or PORT}/metrics"
    client = httpx.Client(timeout=TIMEOUT_S, trust_env=False)
    try:
        answer = client.get(url)
    except httpx.HTTPError as error:
        client.close()
        raise Unavailable("absent", "no DCGM exporter answers here") from error
    if answer.status_code != 200 or "DCGM_FI" not in answer.text:
        client.close()
        raise Unavailable("absent", f"{url} is no DCGM exporter")
    return DcgmReader(client, url)


PROBE = Probe(name="dcgm", rate_hz=1.0, max_share=0.002, metrics=METRICS, open=open_dcgm, max_hz=1.0)
