"""One request as a flat row: its instants, the durations computed from them, and what it was.

Names end in their unit. Instants are seconds since the run's monotonic zero, durations seconds, by the
definitions of latency.py; an empty cell is what did not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter

from perfdoctor import latency
from perfdoctor.model import RequestRecord

Cell = str | int | float | bool | None

INSTANTS = (
    "due_s", "sent_s", "dialled_s", "tcp_s", "connected_s", "written_s", "headers_s", "first_event_s",
    "first_token_s", "first_answer_s", "last_token_s", "end_s",
)  # fmt: skip
ABOUT = (
    "prompt_tokens", "output_tokens", "asked_tokens", "cached_tokens", "token_source", "finish_reason",
    "status", "outcome", "retry_after_s", "body_bytes", "reads", "reused", "redialled", "censored",
    "head_chunks", "turn", "worker", "prompt_hash", "error",
)  # fmt: skip
DURATIONS = ("ttft", "ttfa", "tpot", "e2e", "ttft_from_schedule", "ttfa_from_schedule", "e2e_from_schedule")
COLUMNS = (
    "id",
    "phase",
    *INSTANTS,
    *(f"{name}_s" for name in DURATIONS),
    *(f"stage_{name}_s" for name in latency.STAGES),  # `headers_s` is an instant
    *ABOUT,
)
BATCH = 1000  # rows that are held as text at once

Row = tuple[Cell, ...]
_MEASURES = [latency.OF_REQUEST[name] for name in DURATIONS]
_FIRST = attrgetter("id", "phase", *INSTANTS)
_LAST = attrgetter(*ABOUT)


def rows(records: Sequence[RequestRecord]) -> Iterator[Row]:
    """By COLUMNS, in the order of the records; the prompt's own tail is left out as in every other number."""
    for record in latency.without_prompt_tail(records):
        durations = [measure(record) for measure in _MEASURES]
        yield (*_FIRST(record), *durations, *latency.stages(record).values(), *_LAST(record))


def batches(records: Sequence[RequestRecord]) -> Iterator[list[Row]]:
    """The same, BATCH at a time."""
    found = rows(records)
    while batch := list(islice(found, BATCH)):
        yield batch
