"""What all probes together cost: CPU as a share of one core, beside a busy server-like child. Target: 2 %.

    python benchmarks/probe_cost.py [seconds]

The sum of the probes' own accounts is held against the operating system's figure for this process and its
children, which also has the waiting and the stamping in it. Opening the probes (imports) is shown apart.
"""

from __future__ import annotations

import http.server
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks._ratio import verdict

TARGET = 0.02
IDLE_THREADS = 30  # a torch server has dozens


def metrics_page() -> bytes:
    """About 50 kB as vLLM writes it: a few wanted samples among histogram buckets."""
    names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "generation_tokens_total")
    lines = [f'vllm:{name}{{engine="0",model_name="m"}} 1.0' for name in names]
    lines += [
        f'vllm:{h}_seconds_bucket{{engine="0",le="{i}.0",model_name="m"}} {i}.0'
        for h in ("time_to_first_token", "inter_token_latency", "e2e_request_latency", "request_queue_time")
        for i in range(160)
    ]
    return "\n".join([*lines, ""]).encode()


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        page = metrics_page()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


def be_busy(pipe: Connection) -> None:
    """The child: one thread decodes, as it were, dozens sleep, one serves /metrics."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for _ in range(IDLE_THREADS):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    pipe.send(server.server_address[1])
    while not pipe.poll():
        sum(range(2000))


def own_cpu_s() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in usages)


def measure(duration_s: float, pid: int, url: str) -> float:
    """Prints the table; returns the share of one core, the larger of the two accounts."""
    from perfdoctor.clock import Clock
    from perfdoctor.probes._sampler import Sampler, Subject

    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "model.safetensors")
        weights.write_bytes(bytes(1 << 20))
        subject = Subject(pid=pid, url=url, model_path=folder, engine="vllm")
        samples: list[object] = []
        sampler = Sampler(subject, Clock(), samples.append, samples.append, {})
        before_s = own_cpu_s()
        sampler.start()
        time.sleep(2.0)  # imports and first readings
        opened_s = own_cpu_s() - before_s
        steady_from_s, begin_s = own_cpu_s(), time.monotonic()
        time.sleep(duration_s)
        steady_s, wall_s = own_cpu_s() - steady_from_s, time.monotonic() - begin_s
        states = sampler.stop()
    print(f"{'probe':10}{'status':14}{'samples':>8}{'CPU of one core':>17}{'late at most':>15}")
    for state in states:
        share = state.cost_s / (wall_s + 2.0)
        late_ms = state.late_max_s * 1e3
        print(f"{state.probe:10}{state.status:14}{state.samples:8}{share:17.2%}{late_ms:12.1f} ms")
    total = sum(state.cost_s for state in states) / (wall_s + 2.0)
    print(f"{'sum':10}{'':14}{sum(s.samples for s in states):8}{total:17.2%}")
    print(f"operating system's figure, first 2 s left out: {steady_s / wall_s:.2%}")
    print(f"first 2 s, once a run (imports, first readings): {opened_s:.2f} s of CPU")
    return max(total, steady_s / wall_s)


def main() -> None:
    duration_s = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=be_busy, args=(theirs,), daemon=True)
    child.start()
    port = ours.recv()
    try:
        share = measure(duration_s, child.pid or 0, f"http://127.0.0.1:{port}")
    finally:
        ours.send("stop")
        child.join(5)
    print(f"share of one core {share:.2%}; target {TARGET:.0%}: {verdict(share <= TARGET)}")


if __name__ == "__main__":
    main()
