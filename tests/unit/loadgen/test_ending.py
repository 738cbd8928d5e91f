"""What is said of an answer that is none."""

from __future__ import annotations

import pytest

from perfdoctor.loadgen.ending import EVIDENCE_BYTES, evidence, retry_after


def test_half_a_key_at_the_cut_is_not_shown():
    """A server may echo the key anywhere; only a whole one is recognised and taken out."""
    secret = b"sk-very-secret-0123456789"
    padding = b" " * (EVIDENCE_BYTES - len(secret) // 2)

    assert "sk-" not in evidence(b"denied" + padding[6:] + secret)
    assert evidence(b"denied: " + secret).endswith(secret.decode())


def test_evidence_without_a_blank_is_kept():
    """Else a long line would leave nothing."""
    assert EVIDENCE_BYTES == len(evidence(b"x" * 10_000))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0.0), ("1.5", 1.5), ("86400", 86400.0), ("86401", None), ("nan", None), ("-1", None),
     ("inf", None), ("soon", None), ("", None)],
)  # fmt: skip
def test_retry_after_is_a_plausible_number_or_unknown(value, seconds):
    """Both sides of each limit."""
    assert seconds == retry_after({"retry-after": value})
    assert retry_after({}) is None


@pytest.mark.parametrize(
    ("until", "date", "seconds"),
    [
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", 60.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:29:00 GMT", 0.0),  # that was already
        ("Wed, 21 Oct 2026 07:28:00 GMT", None, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "yesterday", None),
        ("Fri, 23 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:00 GMT", None),  # beyond a day
        ("Wed, 99 Oct 2026 07:28:00 GMT", None, None),
    ],
)
def test_retry_after_as_a_date_counts_from_the_servers_clock(until, date, seconds):
    """Its Date header, which servers with a clock must send; this machine's may be minutes off."""
    headers = {"retry-after": until} | ({"date": date} if date else {})

    assert seconds == retry_after(headers)
