"""The HTML page: self-contained, escaped, accessible, small."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest
import report_cases as cases

from perfdoctor.model import Phase
from perfdoctor.reports import _histogram, html
from perfdoctor.reports._bundle import Bundle

VOID = {"meta", "br", "rect", "line", "path", "link", "img"}


class Outline(HTMLParser):
    """Collects elements and fails on a wrong nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert [] == self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID or tag in ("rect", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert tag == self.open.pop()

    def named(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


PAGES = cases.ALL | {
    "load test only": lambda: Bundle(None, cases.summary(), cases.FACTS, cases.requests(), cases.samples())
}
every_page = pytest.mark.parametrize("case", PAGES.values(), ids=PAGES)


@every_page
def test_the_page_is_well_formed(case):
    """Every element is closed in order."""
    assert Outline(html.render(case())).elements


@every_page
def test_nothing_refers_to_the_network(case):
    """The file works in a bunker: no source, link, import or url() at all, and no script."""
    text = html.render(case())
    outline = Outline(text)

    assert [] == [a for _, a in outline.elements if {"src", "href", "srcset", "data", "action"} & a.keys()]
    assert [] == outline.named("script") + outline.named("link")
    assert [] == re.findall(r"@import|url\s*\(", text)
    assert "default-src 'none'" in text


@every_page
def test_the_page_is_accessible(case):
    """Language, title, one h1, captions, named drawings."""
    text = html.render(case())
    outline = Outline(text)

    assert "en" == outline.named("html")[0]["lang"]
    assert 1 == len(outline.named("h1"))
    assert re.search(r"<title>[^<]+ - perfdoctor", text)
    assert len(outline.named("table")) == len(outline.named("caption"))
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in outline.named("svg"))
    assert all("scope" in th for th in outline.named("th"))


@every_page
def test_headings_skip_no_level(case):
    """A screen reader walks the outline."""
    levels = [int(tag[1]) for tag, _ in Outline(html.render(case())).elements if re.fullmatch("h[1-6]", tag)]

    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_ids_are_unique_and_labels_point_at_them():
    """`aria-labelledby` names an element that is there."""
    outline = Outline(html.render(cases.found()))
    ids = [a["id"] for _, a in outline.elements if "id" in a]

    assert len(ids) == len(set(ids))
    assert {a["aria-labelledby"] for a in outline.named("section") if "aria-labelledby" in a} <= set(ids)


def test_everything_of_a_diagnosis_is_on_the_page():
    """Verdict, evidence, fixes, ledger, laws, rules, signals, missing, facts, stacks."""
    text = html.render(cases.found())

    for part in (
        "Cause found: Launch and host overhead", "step.launches", "1,187", "at least 500",
        "at most 1.6-5.9x faster", "Decode: launch gap", "busy-at-most-wall", "serial-server",
        "gil.held_share.p50", "sudo sysctl kernel.yama.ptrace_scope=0", "Xeon 8480", "linear",
        "perfdoctor explain compile-static-cache", "The weights are random", "no log was named",
        "may change answers; restart; first call: about 40 s of compilation", "14.6x (one run) on one H200",
        "375 ms (250-500 ms)",
    ):  # fmt: skip
        assert part in text
    assert "disable-kv-cache" not in text


def test_foreign_text_is_escaped_everywhere():
    """A hostile server names its model, its errors and its frames."""
    evil = "</title><script>alert(1)</script>\x1b[2J\"'"
    target = msgspec.structs.replace(cases.FACTS.target, model=evil, url=evil)
    facts = msgspec.structs.replace(cases.FACTS, target=target, run=evil, argv=(evil,), error=evil)
    failed = msgspec.structs.replace(cases.requests()[-1], outcome=evil, error=evil)
    finding = msgspec.structs.replace(cases.LAUNCH, summary=evil, excluded=(evil,))
    diagnosis = msgspec.structs.replace(cases.FOUND, findings=(finding,), next=evil)
    summary = msgspec.structs.replace(cases.summary(), errors={evil: evil})

    text = html.render(Bundle(diagnosis, summary, facts, (failed,), cases.samples(), f"main;{evil} 3\n"))

    assert [] == Outline(text).named("script")
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_lone_surrogates_can_be_written():
    """An undecodable file name in argv must not cost the report."""
    facts = msgspec.structs.replace(cases.FACTS, argv=("perfdoctor", "x\udc80"))

    assert html.render(Bundle(None, None, facts)).encode()


def test_a_large_run_stays_below_a_megabyte():
    """10,000 requests of 20 users and 60,000 samples."""
    records = cases.requests(10_000, users=20)
    end_s = max(r.end_s or 0.0 for r in records)
    facts = msgspec.structs.replace(cases.FACTS, phases=(Phase(name="steady", start_s=0, end_s=end_s),))
    samples = cases.samples(end_s, 60_000 / 7 / end_s)

    size = len(html.render(Bundle(cases.FOUND, cases.summary(), facts, records, samples)).encode())

    assert 59_000 < len(samples)
    assert size < 1_000_000


def test_an_empty_run_has_neither_charts_nor_tiles():
    """Nothing is drawn as zero."""
    text = html.render(cases.killed())

    assert "<svg" not in text
    assert 'class="tiles"' not in text
    assert "could not be split: nothing was measured" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrast_is_enough(scheme):
    """WCAG AA: 4.5 to 1 for every text colour on the ground it is used on."""
    css = html._environment().get_template("report.css").render()
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[0 if scheme == "light" else 1]))
    pairs = [("fg", "bg"), ("fg", "card"), ("fg", "soft"), ("dim", "bg"), ("dim", "card"), ("dim", "phase0")]
    pairs += [(name, f"{name}-soft") for name in ("hit", "unknown", "clear")] + [("accent", "card")]

    assert [] == [(a, b) for a, b in pairs if contrast(colours[a], colours[b]) < 4.5]


def test_white_labels_on_ledger_colours_have_contrast():
    """The bar's labels are white in both themes."""
    css = html._environment().get_template("report.css").render()
    colours = re.findall(r"\.c-\w+ \{ background: (#\w{6})", css)

    assert 12 == len(colours)
    assert [] == [c for c in colours if contrast("#ffffff", c) < 4.5]


def contrast(one: str, two: str) -> float:
    """WCAG 2 contrast ratio of two sRGB colours."""
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_line_that_is_not_drawn_is_not_explained():
    """The median of one at a time: without a baseline there is none."""
    bundle = cases.found()
    without = replace(bundle, requests=tuple(r for r in bundle.requests if r.phase != "baseline"))

    assert "Dashed line" in html.render(bundle)
    assert "Dashed line" not in html.render(without)


def test_distributions_use_the_steady_phases_good_requests():
    """Warm-up and failures are left out; the baseline is only a mark."""
    ttft, _, e2e = _histogram.distributions(cases.requests())

    assert 39 == len(e2e.values)
    assert ttft.alone_s is not None
    assert "histogram of 39 requests" in e2e.svg


def test_one_request_makes_a_histogram():
    """A single value, and a value of zero, have a domain."""
    for values in ((1.5,), (0.0,), (2.0, 2.0, 2.0)):
        assert "<rect" in _histogram.draw("End to end", values, None)


def test_no_request_makes_no_histogram():
    """Nothing is drawn of nothing."""
    assert () == _histogram.distributions(())


def test_a_load_test_shows_all_that_it_found():
    """SLO, trust, arrivals, stages, the server's view, its course, and another tool's table."""
    text = html.render(Bundle(None, cases.full_summary(), cases.FACTS, requests=cases.requests()))

    Outline(text)
    for shown in (
        "measurement valid", "SLO missed", "goodput 1 requests/s", "ttft_p95&lt;500ms", "2.6 scheduled",
        "pool wait 10 ms", "by its own count", "note 7", "As vllm would count it", "as that tool counts",
        "Output tokens, arrived: at most 120 /s", "Answers, ok: at most 3 /s",
        "Time to first token, median: at most 300 ms",
    ):  # fmt: skip
        assert shown in text
    assert "Answers, failed" not in text
    assert "Not recorded" not in text
