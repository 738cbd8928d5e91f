"""One request as a flat row: its instants, the durations computed from them, and what it was.

Instants are seconds since the run's monotonic zero, durations seconds; an empty cell is what did not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
COLUMNS = ("id", "phase", *INSTANTS, *DURATIONS, *latency.STAGES, *ABOUT)


def rows(records: Sequence[RequestRecord]) -> Iterator[dict[str, Cell]]:
    """By COLUMNS, in the order of the record; the prompt's own tail is left out as in every other number."""
    for record in latency.without_prompt_tail(records):
        row: dict[str, Cell] = {"id": record.id, "phase": record.phase}
        row |= {name: getattr(record, name) for name in INSTANTS}
        row |= {name: latency.OF_REQUEST[name](record) for name in DURATIONS}
        row |= latency.stages(record)
        yield row | {name: getattr(record, name) for name in ABOUT}
