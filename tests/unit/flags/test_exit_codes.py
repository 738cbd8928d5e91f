"""How a load test ends, where several things may be said of it."""

from __future__ import annotations

from typing import Any

import pytest

from perfdoctor import commands
from perfdoctor.model import (
    LoadSummary,
    Rates,
    RequestCounts,
    SloResult,
    SloTerm,
    Spread,
    TokenCounts,
    Trust,
)
from tests.inside import perfdoctor

MISSED = SloResult(
    text="ttft_p95<1ms",
    met=False,
    terms=(
        SloTerm(text="ttft_p95<1ms", metric="ttft_p95", comparison="<", limit=0.001, value=0.02, met=False),
    ),
)
UNDECIDED = SloResult(
    text="ttft_p99<1s",
    terms=(SloTerm(text="ttft_p99<1s", metric="ttft_p99", comparison="<", limit=1.0),),
)
MET = SloResult(
    text="ttft_p95<1s",
    met=True,
    terms=(SloTerm(text="ttft_p95<1s", metric="ttft_p95", comparison="<", limit=1.0, value=0.02, met=True),),
)


def summary(trust: str = "valid", **changes: Any) -> LoadSummary:
    spread = Spread()
    return LoadSummary(
        run="a-run",
        requests=RequestCounts(total=10, ok=8, failed={"timeout": 2}),
        trust=Trust(status=trust),  # type: ignore[arg-type]
        rates=Rates(requests_per_s=5.0),
        ttft=spread, ttfa=spread, tpot=spread, gap=spread, e2e=spread, e2e_from_schedule=spread,
        error_latency=spread,
        tokens=TokenCounts(),
        **changes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "fail_on", "code"),
    [
        (summary(), None, 0),
        (summary(slo=MET), "error_rate>50%", 0),
        (summary(slo=MISSED), None, 1),
        (summary(slo=UNDECIDED), None, 1),
        (summary(slo=MET), "error_rate>10%", 1),
        (summary(), "ttft_p95>1s", 1),
        (summary(stopped="12 % of the last 100 requests failed"), None, 1),
        (summary("degraded", slo=MET), None, 0),
        (summary("invalid"), None, 4),
        (summary("invalid", slo=MISSED, stopped="12 % of 100 failed"), "error_rate>10%", 4),
        (summary("invalid", slo=MISSED, state="interrupted"), None, 130),
    ],
)
def test_the_gravest_word_is_the_exit_code(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    found: LoadSummary,
    fail_on: str | None,
    code: int,
):
    """Interrupted before untrusted, untrusted before missed; what has no value is missed. 1 says why."""
    monkeypatch.setattr(commands, "load_test", lambda *_: found)
    words = ["--fail-on", fail_on] if fail_on else []

    ended = perfdoctor(capsys, "load-test", "--endpoint", "http://127.0.0.1:1", *words)

    assert code == ended.code
    assert ("Exit 1: " in ended.err) == (code == 1)
