"""The patient: one plain eager `model.generate()` at a time, first come, first served.

This is how the documents' app.py serves. A single worker thread is both the lock and the queue. Knows
nothing of HTTP: a request goes in, pieces come out through a callback on the worker's thread.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from perfdoctor.local.generation import Generation
from perfdoctor.local.load import LoadedModel, explain
from perfdoctor.local.request import Broken, Deliver, Done, Request
from perfdoctor.local.telemetry import Channel
from perfdoctor.local.variants import Variants

REHEARSED_TOKENS = 8  # a compiled step settles within the first few


class Engine:
    """Owns the model and its worker thread."""

    def __init__(self, variants: Variants, settings: Mapping[str, str], channel: Channel) -> None:
        self._variants, self._channel = variants, channel
        self._loaded, _ = variants.use(settings)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="generate")

    @property
    def loaded(self) -> LoadedModel:
        return self._loaded

    def use(self, settings: Mapping[str, str]) -> Future[float]:
        """Serve with these switches from the next request on; seconds of a rehearsal, 0 without one."""
        return self._worker.submit(self._use, settings)

    def _use(self, settings: Mapping[str, str]) -> float:
        self._loaded, fresh = self._variants.use(settings)
        if not (fresh and self._loaded.plan.rehearse):
            return 0.0
        started_s = self._channel.clock.now()
        self._rehearse()
        return self._channel.clock.now() - started_s

    def submit(self, request: Request, deliver: Deliver) -> Callable[[], None]:
        """Queues a request; returns the function that cancels it, whether it waits or runs."""
        stop = threading.Event()
        arrived_s = self._channel.clock.now()
        self._worker.submit(self._serve, request, deliver, stop, arrived_s)
        return stop.set

    def rehearse(self) -> None:
        """A first short generation, on the thread to which what is compiled or captured is bound."""
        self._worker.submit(self._rehearse).result()

    def _rehearse(self) -> None:
        request = Request(id="rehearsal", prompt="one two three", max_tokens=REHEARSED_TOKENS)
        now = self._channel.clock.now
        Generation(self._loaded, request, lambda _: None, threading.Event(), now).run()

    def _serve(self, request: Request, deliver: Deliver, stop: threading.Event, arrived_s: float) -> None:
        """Generates, tells the telemetry first and the client last, so that its answer means all is told."""
        if stop.is_set():
            return
        now = self._channel.clock.now
        generation = Generation(self._loaded, request, deliver, stop, now)
        started_s = now()
        outcome: Done | Broken
        try:
            outcome = generation.run()
        except Exception as error:  # answered whatever it is, or the client would wait for ever
            traceback.print_exc()
            outcome = Broken(explain(error).what)
        values = {"arrived_s": arrived_s, "started_s": started_s, **generation.instants(), "done_s": now()}
        self._channel.sample("serve", values, {"request": request.id})
        if step := generation.step_values():
            self._channel.sample("step", step)
        deliver(outcome)
