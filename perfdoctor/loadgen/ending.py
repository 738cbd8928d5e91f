"""How an answer ended, from what it told: pure."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from perfdoctor.loadgen.answer import Answer

EVIDENCE_BYTES = 4096  # kept of what is no answer
RETRY_LONGEST_S = 86400.0  # a longer Retry-After is nonsense


def judge(answer: Answer, tokens: bool = True) -> tuple[str, str]:
    """(outcome, why) of a stream that ended without a network failure.

    Finished with no token is an answer; neither token nor finish_reason is none, even after a bare [DONE].
    Without `tokens` it is a stream of any kind, which need not say that it is finished.
    """
    if answer.error is not None:
        return "in_band_error", answer.error
    if not tokens:
        return "ok", ""
    if not answer.token_ns and answer.finish_reason is None:
        return "empty", "the stream ended with neither a token nor a finish_reason"
    if not answer.complete:
        ended = "[DONE], but without a finish_reason" if answer.done else "neither finish_reason nor [DONE]"
        return "truncated", f"the stream ended with {ended}"
    return "ok", ""


def coding_in(headers: Mapping[str, str]) -> str | None:
    """What a body is compressed with, by its head; None: it can be read as it comes."""
    content, transfer = headers.get("content-encoding", ""), headers.get("transfer-encoding", "")
    if not content and transfer in ("", "chunked"):
        return None
    words = [word.strip() for word in f"{content},{transfer}".lower().split(",")]
    return ", ".join(word for word in words if word not in ("", "identity", "chunked")) or None


def evidence(raw: bytes) -> str:
    """The beginning as text. A word at the cut is left out: half a key would not be recognised as one."""
    text = raw[:EVIDENCE_BYTES].decode("utf-8", "replace")
    whole, _, _ = text.rpartition(" ")
    return whole if len(raw) >= EVIDENCE_BYTES and whole else text


def message_in(body: str) -> str:
    """The human part of an error body in the shapes servers use; else the body itself."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return body
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(key):
            value = value[key]
    return value if isinstance(value, str) else body


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, told as such or as a date, which counts from the server's own `Date`."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        until, said = _instant(value), _instant(headers.get("date", ""))
        if until is None or said is None:
            return None
        seconds = max(0.0, until - said)
    return seconds if 0 <= seconds <= RETRY_LONGEST_S else None


def _instant(text: str) -> float | None:
    """`Wed, 21 Oct 2026 07:28:00 GMT` as seconds since the epoch."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
