"""The front end's promptness, from a real server on loopback."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator

import pytest

from perfdoctor.probes import health
from perfdoctor.probes._probe import NotYet, Unavailable
from perfdoctor.probes._subject import Subject


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pause_s = 0.0
    known = "/health"

    def do_GET(self) -> None:
        time.sleep(type(self).pause_s)
        found = self.path == type(self).known
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def server() -> Iterator[tuple[str, type[Handler]]]:
    handler = type("OneHandler", (Handler,), {})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}", handler
        served.shutdown()


def reader(url: str | None) -> health.HealthReader:
    return health.HealthReader(Subject(url=url))


def test_a_free_front_end_answers_at_once(server):
    """The reading is the time of one answer on a connection that stands."""
    found = reader(server[0] + "/v1")
    found.read()

    (reading,) = found.read()

    assert 0 < reading.values["latency_s"] < 0.25


def test_a_pause_is_part_of_the_reading(server):
    """A handler that sleeps is what the probe is for."""
    found = reader(server[0])
    found.read()
    server[1].pause_s = 0.3

    (reading,) = found.read()

    assert reading.values["latency_s"] >= 0.3


def test_silence_counts_as_the_longest_wait(server):
    """No answer within the limit is a reading of that limit, with its reason; the next one is taken anew."""
    found = health.HealthReader(Subject(url=server[0]), timeout_s=0.2)
    found.read()
    server[1].pause_s = 0.5

    (silent,) = found.read()
    server[1].pause_s = 0.0
    (prompt,) = found.read()

    assert (0.2, "no answer within 0.2 s") == (silent.values["latency_s"], silent.why)
    assert prompt.values["latency_s"] < 0.2


def test_the_second_path_is_asked_when_the_first_is_unknown(server):
    """Not every server has /health."""
    server[1].known = "/v1/models"

    (reading,) = reader(server[0]).read()

    assert reading.values["latency_s"] > 0


def test_a_server_without_either_path_ends_the_probe(server):
    """Said once, as absent."""
    server[1].known = "/nothing"

    with pytest.raises(Unavailable) as caught:
        reader(server[0]).read()

    assert "absent" == caught.value.status


def test_no_address_yet_and_no_answer_yet_are_no_errors():
    """The probe asks again."""
    with pytest.raises(NotYet):
        reader(None).read()
    with pytest.raises(NotYet):
        reader("http://127.0.0.1:9").read()
