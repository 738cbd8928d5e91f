"""Small programs that cause a bottleneck for real. See scenarios/README.md for the interface."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Injection:
    """What a workload asks of the run that happens while it is in force."""

    prefix: tuple[str, ...] = ()  # put before the local model server's command line
    endpoint: str | None = None  # the server to diagnose, where the workload started one
    model: str | None = None  # the model to serve, where the workload made one


class Unavailable(Exception):
    """This machine cannot cause that fault; the text says what is missing. The scenario is then skipped."""
