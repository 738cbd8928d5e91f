"""How fast the server answers a question that costs nothing: whether its front end is free.

One small GET at a time on a kept connection. A front end with one event loop that is blocked answers late
while it lasts; a server with its engine in another process answers at once however long a step takes. The
clock starts when the question is due, so a long silence counts in full and not as one slow answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfdoctor.probes._probe import Gap, NotYet, Probe, Reading, Unavailable, gauges
from perfdoctor.probes._subject import Subject

if TYPE_CHECKING:
    import httpx

RATE_HZ = 4.0
TIMEOUT_S = 2.0
PATHS = ("/health", "/v1/models")  # the first that answers with anything but 404
METRICS = gauges(
    "health",
    "curl -w '%{time_total}' -o /dev/null -s URL/health",
    {"latency_s": ("s", "from asking to the whole answer of a GET; no answer within 2 s counts as 2 s")},
)


class HealthReader:
    def __init__(self, subject: Subject, timeout_s: float = TIMEOUT_S) -> None:
        self._subject, self._timeout_s = subject, timeout_s
        self._client: httpx.Client | None = None
        self._url = ""
        self.gaps: Sequence[Gap] = ()

    def read(self) -> Sequence[Reading]:
        import httpx

        if self._subject.url is None:
            raise NotYet("absent", "the server's address is not known yet")
        if not self._url:
            self._choose(self._subject.url.rstrip("/").removesuffix("/v1").rstrip("/"))
        start_s = time.perf_counter()
        try:
            self._get(self._url)
        except httpx.TimeoutException:
            return (Reading({"latency_s": self._timeout_s}, why=f"no answer within {self._timeout_s:g} s"),)
        except httpx.HTTPError as error:
            return (Reading({"latency_s": None}, why=str(error) or type(error).__name__),)
        return (Reading({"latency_s": time.perf_counter() - start_s}),)

    def _choose(self, root: str) -> None:
        """The first request also opens the connection, so it is none of the readings."""
        import httpx

        try:
            found = next((path for path in PATHS if self._get(root + path) not in (404, 405)), None)
        except httpx.HTTPError as error:
            raise NotYet("absent", f"no answer yet: {error}") from error
        if found is None:
            raise Unavailable("absent", f"the server knows neither {' nor '.join(PATHS)}")
        self._url = root + found

    def _get(self, url: str) -> int:
        if self._client is None:
            import httpx

            made = self._subject.transport
            transport = made(url) if made else httpx.HTTPTransport(verify=not url.startswith("http:"))
            self._client = httpx.Client(timeout=self._timeout_s, transport=transport, trust_env=False)
        return self._client.get(url).status_code

    def close(self) -> None:
        if self._client:
            self._client.close()
            self._client = None


def open_health(subject: Subject, stop: threading.Event) -> HealthReader:
    import httpx  # noqa: F401 - imports belong to opening, not to the first reading

    return HealthReader(subject)


PROBE = Probe(
    name="health", rate_hz=RATE_HZ, max_share=0.003, metrics=METRICS, open=open_health, host=False, max_hz=4.0
)
