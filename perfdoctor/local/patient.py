"""A local server that several runs are made of: one clock for all, and each run hears it in turn.

It can serve its one model with other switches from run to run (variants.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from perfdoctor.clock import Clock
from perfdoctor.errors import ModelError, ServerDied
from perfdoctor.local.launch import LocalServer, Log, launch
from perfdoctor.local.request import SETTINGS_PATH
from perfdoctor.model import Sample

SETTLE_S = 600.0  # compiling a step takes up to a minute
LAUNCH = ("device", "dtype", "threads")  # settings of the process; the others are switches of the model


def launched(
    model: str,
    settings: Mapping[str, str],
    clock: Clock,
    emit: Callable[[Sample], None],
    log: Log,
    **more: object,
) -> LocalServer:
    """A child with these settings, as `Target.options` holds them."""
    threads = settings.get("threads")
    return launch(
        model,
        clock,
        emit,
        log,
        device=settings.get("device"),
        dtype=settings.get("dtype"),
        threads=int(threads) if threads is not None else None,
        switches={name: value for name, value in settings.items() if name not in LAUNCH},
        **more,  # type: ignore[arg-type]
    )


@dataclass(slots=True)
class Patient:
    """`start` it, then give it to runs (Orders.patient), then `stop` it. `loading`: what it told before."""

    model: str
    settings: Mapping[str, str]
    clock: Clock = field(default_factory=Clock)
    loading: list[Sample] = field(default_factory=list)
    server: LocalServer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _hears: Callable[[Sample], None] | None = None

    def start(self, log: Log) -> None:
        self.server = launched(self.model, self.settings, self.clock, self._tell, log)

    def stop(self) -> None:
        if self.server:
            self.server.stop()

    def use(self, switches: Mapping[str, str]) -> float:
        """Serve with these switches; seconds of their rehearsal. ModelError leaves it as it was."""
        import httpx

        assert self.server
        try:
            answer = httpx.post(
                self.server.url + SETTINGS_PATH, json=dict(switches), timeout=SETTLE_S, trust_env=False
            )
        except httpx.TransportError as error:
            raise ServerDied(
                "the local model server gave no answer when its settings were changed",
                "It crashed or was killed, often by the out-of-memory killer.",
                "read its last words in its log, and `dmesg | grep -i oom`",
            ) from error
        told = answer.json()
        if answer.status_code != 200:
            raise ModelError(told["what"], told["why"], told["do"])
        return float(told["compile_s"])

    @contextlib.contextmanager
    def heard_by(self, emit: Callable[[Sample], None]) -> Iterator[None]:
        """What it tells between two runs is nobody's, and lost."""
        self._hear(emit)
        try:
            yield
        finally:
            self._hear(lambda _: None)

    def _hear(self, emit: Callable[[Sample], None]) -> None:
        with self._lock:
            self._hears = emit

    def _tell(self, sample: Sample) -> None:
        with self._lock:
            (self._hears or self.loading.append)(sample)
