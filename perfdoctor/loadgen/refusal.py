"""When to give a target up. Pure: finished records in, an error or None out.

A run ends early when it can learn nothing more: nothing was ever answered and every request failed the same
way, or the server was there and no longer accepts connections. An overloaded server that refuses some
requests is a result, not a reason to stop.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from perfdoctor.errors import PerfdoctorError
from perfdoctor.loadgen.explain import explain, server_died
from perfdoctor.model import RequestRecord

SAME_FAILURES = 3  # at the start of a run, all alike
LOST_CONNECTS = 5  # in a row, after the server had answered
LOST_AT_END = 2  # the same when the stage is over
# Failures that more patience cannot cure; the others may be overload, so one must have met an idle server.
_HOPELESS = {"connect", "not_streamed", "bad_stream", *(f"http_{s}" for s in (400, 401, 403, 404, 405, 422))}


# Of this machine, not of the server: no verdict on it follows. The words that every transport keeps.
_RAN_OUT = (*map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL)), "EADDRNOTAVAIL")


def ran_out(error: str | None) -> bool:
    """Whether a request failed because this machine had no open file or no local port left for it."""
    return error is not None and any(words in error for words in _RAN_OUT)


@dataclass(slots=True)
class Verdicts:
    """Watches the outcomes of a run in order of their end."""

    url: str
    model: str
    has_key: bool
    any_ok: bool = False
    answered: bool = False  # with anything, if only an error status or half a stream
    alike: int = 0  # failures in a row of the same class
    last: RequestRecord | None = None  # the last of them; None after a success
    mixed: bool = False  # more than one class of failure was seen

    def note(self, record: RequestRecord, concurrency: int) -> PerfdoctorError | None:
        """Take in a finished request; an error when the run should end."""
        if record.censored or ran_out(record.error):
            return None
        self.answered |= record.status is not None
        if record.outcome == "ok":
            self.any_ok, self.alike, self.last = True, 0, None
            return None
        same = self.last is not None and self.last.outcome == record.outcome
        self.mixed |= self.last is not None and not same
        self.alike, self.last = self.alike + 1 if same else 1, record
        enough = SAME_FAILURES if record.outcome in _HOPELESS else max(SAME_FAILURES, concurrency + 1)
        return self._give_up(enough, LOST_CONNECTS)

    def at_stage_end(self) -> PerfdoctorError | None:
        """The same question when no further request of the stage will tell."""
        return self._give_up(1, LOST_AT_END)

    def _give_up(self, refusals: int, lost_connects: int) -> PerfdoctorError | None:
        if self.last is None:
            return None
        if self.answered and self.last.outcome == "connect":
            return server_died(self.url, self.last) if self.alike >= lost_connects else None
        if self.any_ok or self.mixed or self.alike < refusals:
            return None
        return explain(self.last, self.url, self.model, self.has_key)
