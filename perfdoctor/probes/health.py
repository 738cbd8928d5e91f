"""How fast the server answers a question that costs nothing: whether its front end is free.

One small GET at a time on a kept connection. A front end with one event loop that is blocked answers late
while it lasts; a server with its engine in another process answers at once however long a step takes. The
clock starts when the question is due, so a long silence counts in full and not as one slow answer.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, gauges
from perfdoctor.probes._subject import Subject

RATE_HZ = 4.0
TIMEOUT_S = 2.0
PATHS = ("/health", "/v1/models")  # the first that answers with anything but 404
METRICS = gauges(
    "health",
    "curl -w '%{time_total}' -o /dev/null -s URL/health",
    {"latency_s": ("s", "from asking to the whole answer of a GET; no answer within 2 s counts as 2 s")},
)


class HealthReader:
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._connection: http.client.HTTPConnection | None = None
        self._path = ""
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        if self._subject.url is None:
            raise NotYet("absent", "the server's address is not known yet")
        if not self._path:
            self._choose()
        start_s = time.perf_counter()
        try:
            self._get(self._path)
        except TimeoutError:
            self.close()
            return (Reading({"latency_s": TIMEOUT_S}, why=f"no answer within {TIMEOUT_S:.0f} s"),)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return (Reading({"latency_s": None}, why=str(error) or type(error).__name__),)
        return (Reading({"latency_s": time.perf_counter() - start_s}),)

    def _choose(self) -> None:
        """The first request also opens the connection, so it is none of the readings."""
        try:
            self._path = next((path for path in PATHS if self._get(path) not in (404, 405)), "")
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise NotYet("absent", f"no answer yet: {error}") from error
        if not self._path:
            raise Unavailable("absent", f"the server knows neither {' nor '.join(PATHS)}")

    def _get(self, path: str) -> int:
        """The status of the whole answer."""
        connection = self._connect()
        connection.request("GET", self._root + path, headers={"Accept": "*/*"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            parts = urlsplit(self._subject.url or "")
            self._root = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
            secure, host = parts.scheme == "https", parts.hostname or ""
            self._connection = (
                http.client.HTTPSConnection(
                    host, parts.port, timeout=TIMEOUT_S, context=ssl.create_default_context()
                )
                if secure
                else http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
            )
        return self._connection

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None


def open_health(subject: Subject, stop: threading.Event) -> HealthReader:
    return HealthReader(subject)


PROBE = Probe(
    name="health", rate_hz=RATE_HZ, max_share=0.003, metrics=METRICS, open=open_health, host=False, max_hz=4.0
)
