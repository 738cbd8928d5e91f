"""A look at the main thread while the front end is silent, from a real blocked program."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from perfdoctor.probes import stall
from perfdoctor.probes._pyspy import find_py_spy
from perfdoctor.probes._subject import Subject

DUMP = """\
Process 12: python app.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 12 (idle): "MainThread"
    nap (/srv/app/handlers.py:7)
    chat (/srv/app/handlers.py:21)
    run (/usr/lib/python3.11/asyncio/events.py:80)
    run_forever (/usr/lib/python3.11/asyncio/base_events.py:607)
Thread 13 (active): "worker"
    busy (/srv/app/other.py:3)
"""
BLOCKED = """
import http.server, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if Handler.blocked: block_the_loop()
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
        Handler.blocked = True
    blocked = False
    def log_message(self, *_): pass
def block_the_loop():
    time.sleep(1.5)
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def test_the_innermost_frames_of_the_main_thread():
    """Files without their folders; other threads are nobody's business."""
    assert (
        "nap (handlers.py:7)",
        "chat (handlers.py:21)",
        "run (events.py:80)",
    ) == stall.main_stack(DUMP)


def test_a_dump_without_a_main_thread_names_nobody():
    """A torn or foreign text is no stack."""
    assert () == stall.main_stack('Thread 13 (active): "worker"\n    busy (other.py:3)\n')
    assert () == stall.main_stack("")


@pytest.mark.server
def test_the_line_that_blocks_is_named():
    """A program that answers once and then sleeps in its handler."""
    with subprocess.Popen([sys.executable, "-c", BLOCKED], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        time.sleep(1.1)  # py-spy finds no interpreter in a process that is just starting
        reader = stall.StallReader(Subject(pid=child.pid, url=f"http://127.0.0.1:{port}"), find_py_spy())
        found = [reading for _ in range(2) for reading in reader.read()]
        reader.close()
        child.kill()

    assert any("block_the_loop" in reading.labels["stack"] for reading in found)
