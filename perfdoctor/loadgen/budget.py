"""How many requests a stage may still send, and of which phase the next one is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from perfdoctor.loadgen.pacer import Alarm
from perfdoctor.loadgen.stage import Share, Stage
from perfdoctor.model import PhaseName


class Budget:
    """Of one stage and one driver process. All instants are perf_counter_ns.

    `on_steady` is called once, with the instant at which the warm-up hands over; without a lead that is the
    start. `whole`: the number of requests is one of conversations, whose later turns come on top.
    """

    def __init__(
        self,
        stage: Stage,
        share: Share,
        start_ns: int,
        stopping: asyncio.Event,
        on_steady: Callable[[int], None],
        whole: bool = False,
    ) -> None:
        first = len(stage.first_tokens) if share.worker == 0 else 0
        self._left = None if stage.requests is None else share.of(stage.requests) + first
        self._phase, self._stopping, self._on_steady = stage.phase, stopping, on_steady
        self._lead_left = share.of(stage.lead_requests)
        self._lead_ns = start_ns + int(stage.lead_s * 1e9)
        self._whole = whole
        self._issuing = True
        self._steady = False
        if not self._lead_left and not stage.lead_s:
            self._hand_over(start_ns)

    @property
    def spent(self) -> bool:
        """Nothing more may be sent."""
        return not self._issuing or self._stopping.is_set() or (self._left == 0 and not self._whole)

    def close(self) -> None:
        self._issuing = False

    def take(self, now_ns: int, later_turn: bool = False) -> PhaseName | None:
        """The phase of a request that is sent now; None: send none."""
        return None if self.spent else self.take_unsent(now_ns, later_turn)

    def take_unsent(self, due_ns: int, later_turn: bool = False) -> PhaseName | None:
        """The same for one that was due, but that the end came before."""
        counts = not (later_turn and self._whole)
        if counts and self._left == 0:
            return None
        if not self._steady:
            if self._lead_left > 0 or due_ns < self._lead_ns:
                self._lead_left -= counts
                return "warmup"
            self._hand_over(due_ns)
        if self._left is not None:
            self._left -= counts
        return self._phase

    def watch_lead(self, loop: asyncio.AbstractEventLoop) -> Alarm | None:
        """Let a lead that is bounded by time hand over at its very end, though nothing is due then."""
        return None if self._steady else Alarm(loop, self._lead_ns, self._at_lead_end)

    def _at_lead_end(self) -> None:
        if self._lead_left <= 0 and not self._steady:
            self._hand_over(self._lead_ns)

    def _hand_over(self, at_ns: int) -> None:
        self._steady = True
        self._on_steady(at_ns)
