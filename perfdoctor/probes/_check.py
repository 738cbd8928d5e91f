"""A short run of all probes with no load, to say which of them work here."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from perfdoctor.clock import Clock
from perfdoctor.model import ProbeState
from perfdoctor.probes._sampler import Sampler, Subject

PATIENT_S = 2.0  # for what comes soon: a process that is too young to be looked at
LIMIT_S = 6.0  # the longest reading is a py-spy window of 3 s
LOOK_S = 0.1


def check(subject: Subject) -> tuple[ProbeState, ...]:
    """The states after one reading each. Without a server, perfdoctor itself is watched in its place."""
    watched = subject if subject.pid or subject.remote else replace(subject, pid=os.getpid())
    sampler = Sampler(watched, Clock(), _forget, _forget, {})
    sampler.start()
    start_s = time.monotonic()
    while (spent_s := time.monotonic() - start_s) < LIMIT_S and not sampler.settled(spent_s < PATIENT_S):
        time.sleep(LOOK_S)
    return sampler.stop()


def _forget(_: object) -> None:
    """Nothing is recorded."""
