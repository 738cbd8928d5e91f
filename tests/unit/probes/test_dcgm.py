"""A DCGM exporter's page, as the exporter writes it."""

from __future__ import annotations

import http.server
import threading

import pytest

from perfdoctor.probes import dcgm
from perfdoctor.probes._probe import Unavailable
from perfdoctor.probes._subject import Subject

PAGE = """\
# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-a",modelName="NVIDIA A100-SXM4-80GB"} 0.42
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-b",modelName="NVIDIA A100-SXM4-80GB"} 0.01
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-a"} 0.61
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-a"} NaN
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 1024
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 100
"""


def test_fields_are_ours_by_gpu():
    """MiB become bytes; utilisation is no field of ours; NaN is left out."""
    found = dcgm.read_page(PAGE)

    assert {"sm_active": 0.42, "dram_active": 0.61, "mem_used_bytes": 2**30} == found["0"]
    assert {"sm_active": 0.01} == found["1"]


def test_shares_of_a_sliced_gpu_are_unknown():
    """MIG: the share of a slice is none of the GPU, and no idle one either."""
    page = 'DCGM_FI_PROF_SM_ACTIVE{gpu="0",GPU_I_ID="1"} 0.0\nDCGM_FI_DEV_FB_USED{gpu="0",GPU_I_ID="1"} 1\n'

    found = dcgm.read_page(page)["0"]

    assert (None, 2**20) == (found["sm_active"], found["mem_used_bytes"])


def test_a_share_above_one_is_no_share():
    """152 % was seen on MIG."""
    assert {"sm_active": None} == dcgm.read_page('DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 1.52\n')["0"]


@pytest.fixture
def exporter(monkeypatch):
    """A page on a port that the environment names."""

    class Handler(http.server.BaseHTTPRequestHandler):
        page = PAGE

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(type(self).page.encode())

        def log_message(self, format, *args):
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        monkeypatch.setenv("DCGM_EXPORTER_LISTEN", f":{served.server_port}")
        yield Handler
        served.shutdown()


def open_reader():
    return dcgm.open_dcgm(Subject(), threading.Event())


def test_an_exporter_is_found_and_read(exporter):
    """Through a real connection."""
    reader = open_reader()
    readings = reader.read()
    reader.close()

    assert [{"gpu": "0"}, {"gpu": "1"}] == [dict(r.labels) for r in readings]
    assert () == reader.gaps


def test_a_page_without_profiling_fields_says_so(exporter):
    """Power alone is no activity, and none is not zero."""
    exporter.page = 'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 70\n'
    reader = open_reader()
    (reading,) = reader.read()
    reader.close()

    assert {"power_w": 70.0} == reading.values
    assert "no profiling fields" in reader.gaps[0].why


def test_something_else_on_that_port_is_no_exporter(exporter):
    """Node exporters and others answer on such ports too."""
    exporter.page = "node_load1 0.5\n"

    with pytest.raises(Unavailable) as caught:
        open_reader()

    assert "absent" == caught.value.status


def test_no_exporter(monkeypatch):
    """The usual case."""
    monkeypatch.setenv("DCGM_EXPORTER_LISTEN", ":9")

    with pytest.raises(Unavailable):
        open_reader()
