"""The report for an issue or a pull request."""

from __future__ import annotations

import msgspec
import pytest
import report_cases as cases

from perfdoctor.reports import markdown
from perfdoctor.reports._bundle import Bundle


def test_verdict_evidence_fix_and_latency_are_there():
    """Enough for someone who has only the issue."""
    text = markdown.render(cases.found())

    assert "## Cause found: Launch and host overhead" in text
    assert "| step.device\\_share | 11 % | below | 60 % | diagnosis 3.5 |" in text
    assert "**Fix: Compile the decode step with a static cache** (`compile-static-cache`, at most" in text
    assert "- Effects: may change answers; restart; first call: about 40 s of compilation" in text
    assert "- Undo: Drop the argument." in text
    assert "- Measured: 14.6x (one run) on one H200: 1.5B, torch 2.11; ms per step" in text
    assert "| TTFT | 310 ms |" in text
    assert "each within a bucket: ttft p95 250-500 ms (n 80)" in text
    assert "| L4 | A cache fits | unknown | no log was named |" in text
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


def test_a_load_test_fits_a_pull_request():
    """At most 60 lines, whatever was found."""
    text = markdown.render(Bundle(None, cases.full_summary(), cases.FACTS))

    assert 60 >= len(text.splitlines())
    assert text.index("**SLO** missed") < text.index("- requests:")
    assert all(
        word in text for word in ("**SLO** missed", "goodput 1 requests/s", "as vllm counts", "poisson")
    )
