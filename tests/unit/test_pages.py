"""`explain` finds every page by its name, and answers a wrong name with the nearest ones."""

from __future__ import annotations

import pytest

from perfdoctor import errors, latency, limits, pages, registry
from perfdoctor.diagnosis import measure
from perfdoctor.diagnosis.catalogue import load_fixes

ALL_NAMES = tuple(dict.fromkeys(name for names in pages.all_names().values() for name in names))


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_name_has_a_page(name):
    """A page has a title of one line and a text; it is English."""
    page = pages.find_page(name)

    assert name == page.name
    assert page.title and "\n" not in page.title
    assert page.body_markdown.strip()
    assert not any("\u3000" <= c <= "\u9fff" for c in page.title + page.body_markdown)


def test_nothing_is_missing_from_the_names():
    """Every rule, fix, signal, error and latency of the package can be explained, and so can every class."""
    names = set(ALL_NAMES)

    assert set(registry.member_ids("perfdoctor.diagnosis.rules")) <= names
    assert {f.id for f in load_fixes()} <= names
    assert {m.name for m in measure.all_measures()} <= names
    assert set(errors.tree()) <= names
    assert set(latency.DEFINITIONS) <= names
    assert {c for f in load_fixes() for c in f.classes} <= names


def test_a_rule_shows_its_limits_with_their_sources():
    """The numbers that decide, and where each comes from."""
    page = pages.find_page("slow-storage-load")

    assert "rule" == page.kind
    assert "- load.storage_wait.share at least 30 %" in page.body_markdown
    assert "- keep-the-page-cache-warm: " in page.body_markdown
    assert "Advice that does not hold" in page.body_markdown


def test_a_refuted_fix_says_so_first():
    """Whoever opens the page must not take it for advice."""
    page = pages.find_page("turn-kv-cache-off")

    assert "Verdict: refuted: never recommended" == page.body_markdown.splitlines()[0]
    assert "Instead: turn-the-kv-cache-on, compile-with-static-cache" in page.body_markdown
    assert "D0 = IO wait and compute utilisation" in page.body_markdown


def test_a_fix_shows_the_claim_beside_the_measurement():
    """The factor that a document promises, the one that was seen, and the settings that were compared."""
    body = pages.find_page("compile-with-static-cache").body_markdown

    assert "(D1-05: 1.4x, D3-11: 1.1x)" in body
    assert "Measured: 14.6x (one run) on one H200: " in body
    assert "Settings: as it is against cache=static compile=reduce-overhead" in body
    assert "Undo: Drop the argument or the flag." in body


def test_a_rule_lists_the_fixes_that_treat_it():
    """Not those of its class that treat another rule: a cache that is off needs no more room."""
    body = pages.find_page("kv-cache-off").body_markdown

    assert "- turn-the-kv-cache-on: " in body
    assert "- enlarge-the-kv-cache: " not in body


def test_a_sound_fix_shows_its_commands_per_engine():
    """The templates, as they are before a run fills them in."""
    body = pages.find_page("drop-enforce-eager").body_markdown

    assert "## Commands for vllm" in body
    assert "    vllm serve {model_path} --port {port}" in body
    assert "## Verify, before and after\n    perfdoctor load-test" in body


def test_a_signal_shows_its_unit():
    """A number without a unit explains nothing."""
    page = pages.find_page("step.wall")

    assert ("signal", "Unit: s") == (page.kind, page.body_markdown.splitlines()[0])


def test_an_error_shows_its_exit_code():
    """For scripts that meet it."""
    assert pages.find_page("unreachable").body_markdown.endswith("Exit code: 3")


def test_a_class_lists_what_belongs_to_it():
    """Reports print class names; they lead on to the rule and its fixes."""
    body = pages.find_page("scheduling").body_markdown

    assert "Judged by: serial-server" in body
    assert "- enable-continuous-batching: " in body


def test_a_rule_wins_over_the_class_of_the_same_name():
    """client-limited is both."""
    assert "rule" == pages.find_page("client-limited").kind


@pytest.mark.parametrize(
    "spelling", ["serial-server", "Serial_Server", " serial-server ", "serial-server.md"]
)
def test_spelling_is_forgiven(spelling):
    """Case, underscores, and a pasted file name."""
    assert "serial-server" == pages.find_page(spelling).name


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("serial-sever", "serial-server"), ("turn-kv", "turn-kv-cache-off"), ("unreachabel", "unreachable")],
)
def test_a_wrong_name_is_answered_with_near_ones(wrong, near):
    """Typing errors, and words that are part of a name."""
    with pytest.raises(errors.UsageError) as caught:
        pages.find_page(wrong)

    assert near in caught.value.why


def test_a_number_with_its_statistic_is_explained():
    """As it stands in an SLO."""
    assert pages.find_page("ttft") == pages.find_page("ttft_p95")
    assert pages.find_page("e2e_from_schedule") == pages.find_page("e2e_from_schedule_mean")


def test_a_name_like_nothing_gets_no_guess():
    """And the way to the list."""
    with pytest.raises(errors.UsageError) as caught:
        pages.find_page("qqqqqq")

    assert "No name is similar." == caught.value.why
    assert "perfdoctor explain" in caught.value.do


@pytest.mark.parametrize("name", [*latency.DEFINITIONS, *latency.STAGES, *limits.DEFINITIONS])
def test_every_number_of_a_load_test_has_a_page(name):
    """Also each stage of a request, and each name that a limit may have."""
    assert pages.find_page(name).body_markdown
