"""A server's own counters beside the client's numbers, over real HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from perfdoctor import commands, store
from perfdoctor.model import Load, Scenario, Target
from perfdoctor.stages import Orders

pytestmark = pytest.mark.server

TTFT_S = 0.05
BEFORE, SLOW_S = 1000, 9.0  # requests that others had before, and their time to first token


class Served(BaseHTTPRequestHandler):
    """Streams of four tokens, and the page on which they are counted under vLLM's names."""

    protocol_version = "HTTP/1.1"
    answered = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._whole(b'{"object": "list", "data": [{"id": "m"}]}', "application/json")
        elif self.path.endswith("/metrics"):
            n = BEFORE + Served.answered
            counters = (
                ("num_requests_running", 0),
                ("time_to_first_token_seconds_sum", BEFORE * SLOW_S + Served.answered * TTFT_S),
                ("time_to_first_token_seconds_count", n),
                ("generation_tokens_total", 4 * n),
            )
            edges = (("0.025", 0), ("0.1", Served.answered), ("10.0", n), ("+Inf", n))
            name = "vllm:time_to_first_token_seconds_bucket"
            lines = [f'vllm:{name}{{model_name="m"}} {value}\n' for name, value in counters]
            lines += [f'{name}{{le="{edge}",model_name="m"}} {count}\n' for edge, count in edges]
            self._whole("".join(lines).encode(), "text/plain")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        time.sleep(TTFT_S)
        for _ in range(4):
            self._event({"choices": [{"index": 0, "delta": {"content": "a"}}]})
            time.sleep(0.01)
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        self._event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
        with Served.lock:
            Served.answered += 1
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, event: object) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _whole(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_servers_view_is_that_of_the_load_alone(url, tmp_path):
    """What others asked before was slow, and is no part of it."""
    load = Load(concurrency=2, duration_s=2.0, warmup_requests=1)
    scenario = Scenario(target=Target(endpoint=url), load=load)

    summary = commands.load_test(
        Orders(scenario, "load-test", out=tmp_path / "run", probes=False), quiet=True
    )

    assert summary.server is not None, store.open_run(tmp_path / "run").facts.probes
    assert summary.server.missing is None
    assert pytest.approx(TTFT_S) == summary.server.ttft_mean_s
    assert summary.ttft.mean >= TTFT_S
    assert {"ttft_p50_s": (0.025, 0.1), "ttft_p95_s": (0.025, 0.1)} == summary.server.percentiles
    assert 0 < summary.server.output_tokens < summary.tokens.output + BEFORE
