"""The report for an issue or a pull request."""

from __future__ import annotations

import msgspec
import pytest
import report_cases as cases

from perfdoctor.latency import STAGES
from perfdoctor.model import Arrivals, ServerView, SloResult, SloTerm, StyleRow
from perfdoctor.reports import markdown
from perfdoctor.reports._bundle import Bundle


def test_verdict_evidence_fix_and_latency_are_there():
    """Enough for someone who has only the issue."""
    text = markdown.render(cases.found())

    assert "## Cause found: Launch and host overhead" in text
    assert "| step.device\\_share | 11 % | below | 60 % | diagnosis 3.5 |" in text
    assert "**Fix: Compile the decode step with a static cache** (`compile-static-cache`, at most" in text
    assert "| TTFT | 310 ms |" in text
    assert "disable-kv-cache" not in text


@pytest.mark.parametrize("case", cases.ALL.values(), ids=cases.ALL)
def test_tables_have_equal_columns(case):
    """A stray pipe would break the table."""
    text = markdown.render(case()).replace("\\|", "")
    for block in text.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]

        assert len({row.count("|") for row in rows}) <= 1


def test_foreign_text_cannot_open_a_tag_break_a_table_or_mention_a_person():
    """Pasted into an issue it would be rendered."""
    assert "\\<img\\> a\\|b @\u200bteam \\[x\\](y)" == markdown.escape("<img> a|b @team [x](y)")


def test_code_spans_hold_backticks():
    """The fence is longer than what it holds."""
    assert "`plain`" == markdown.code("plain")
    assert "`` a`b ``" == markdown.code("a`b")


def test_a_command_with_a_fence_stays_inside_its_block():
    """Nothing escapes from a code block."""
    diagnosis = msgspec.structs.replace(cases.FOUND, next="echo ```\nls")

    assert "````sh\necho ```\nls\n````" in markdown.render(Bundle(diagnosis, None, cases.FACTS))


def test_a_load_test_alone_is_a_report_too():
    """No diagnosis, no verdict."""
    text = markdown.render(Bundle(None, cases.summary(), cases.FACTS))

    assert "### Load" in text
    assert "## Cause" not in text


def full_summary():
    """Everything a load test may have to say, and messages as long as they get."""
    term = SloTerm(text="ttft_p95<500ms", metric="ttft_p95", comparison="<", limit=0.5, value=0.6, met=False)
    row = StyleRow(name="TTFT", unit="ms", definition="as that tool counts", n=40, mean=1.0, p50=1.0)
    return msgspec.structs.replace(
        cases.summary(failed=3),
        itl=cases.spread(0.01, 400),
        ttft_from_schedule=cases.spread(0.5, 40),
        e2e_with_failures=cases.spread(2.0, 43),
        error_latency=cases.spread(0.1, 3),
        stages={name: cases.spread(0.01, 40) for name in STAGES},
        arrivals=Arrivals(process="poisson", status="as_asked", n=43, sent_per_s=2.5, gap_cv=1.0),
        server=ServerView(ttft_mean_s=0.3, queue_mean_s=0.1, output_tokens=1920),
        slo=SloResult(text="ttft_p95<500ms", met=False, terms=(term,) * 4, goodput_per_s=1.0, good_share=0.5),
        style="vllm",
        styled=(row,) * 7,
        notes=tuple(f"note {n}" for n in range(8)),
        errors={f"http_{n}": "message " * 30 for n in range(500, 505)},
    )


def test_a_load_test_fits_a_pull_request():
    """At most 60 lines, whatever was found."""
    text = markdown.render(Bundle(None, full_summary(), cases.FACTS))

    assert 60 >= len(text.splitlines())
    assert all(
        word in text for word in ("**SLO** missed", "goodput 1 requests/s", "as vllm counts", "poisson")
    )
