"""What a person reads on the terminal."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import msgspec
import pytest
import report_cases as cases
from rich.console import Console
from rich.text import Text
from rich.theme import Theme

from perfdoctor.console import STYLES
from perfdoctor.model import HostFacts
from perfdoctor.reports import terminal
from perfdoctor.reports._bundle import Bundle
from perfdoctor.reports._columns import bar


def shown(show, width=80, **options):
    """What `show(console)` prints on a console of that width."""
    buffer = io.StringIO()
    show(Console(file=buffer, width=width, theme=Theme(STYLES), highlight=False, emoji=False, **options))
    return buffer.getvalue()


def diagnosis(bundle, width=80, **options):
    return shown(lambda console: terminal.print_diagnosis(console, bundle), width, **options)


def summary(value, definitions=False, width=80):
    return shown(lambda console: terminal.print_summary(console, value, definitions), width)


@pytest.mark.parametrize("case", cases.ALL.values(), ids=cases.ALL)
@pytest.mark.parametrize("width", [80, 60, 40])
def test_no_line_is_wider_than_the_terminal(case, width):
    """Only commands may be, since a break would end up in the clipboard."""
    bundle = case()
    commands = {bundle.diagnosis.next, *cases.LAUNCH_FIX.commands, *cases.BATCH_FIX.commands}

    lines = diagnosis(bundle, width).splitlines()

    assert [] == [li for li in lines if len(li) > width and not any(c in li for c in commands)]


@pytest.mark.parametrize("case", cases.ALL.values(), ids=cases.ALL)
def test_plain_characters_only(case):
    """No boxes, no emoji, no escape codes when the stream is no terminal."""
    text = terminal.render(case())

    assert set() == {c for c in text if not c.isprintable() and c != "\n"}
    assert set() == {c for c in text if ord(c) > 127} - {"µ"}


def test_sections_come_in_reading_order():
    """Trust first; the verdict, the fix and the next command last."""
    text = diagnosis(cases.found())
    labels = [line.split()[0] for line in text.splitlines() if line and line[0].isupper()]

    assert [
        "Target", "Trust", "Note", "Finding", "Excluded", "Fixes", "Finding", "Fixes", "Ledger", "Load",
        "Server", "Roof", "Law", "Missing", "Clear", "Unknown", "Laws", "Verdict", "Fix", "Next",
    ] == labels  # fmt: skip


def test_a_finding_shows_value_comparison_limit_and_source():
    """The number over the limit, and who says so."""
    text = diagnosis(cases.found())

    assert "launch-bound-decode  71 % of request time (1.08-1.21 s each)" in text
    assert "step.device_share   11 %  below     60 %" in text
    assert "(diagnosis 3.5)" in text


def test_the_last_lines_are_verdict_fix_and_next_command():
    """What to do is where the eye rests."""
    text = diagnosis(cases.found())

    tail = text[text.index("Verdict") :]
    assert "Cause found: Launch and host overhead." in tail
    assert "Fix 1     Compile the decode step with a static cache, at most 1.6-5.9x faster;" in tail
    assert "          may change answers; restart; first call: about 40 s of compilation\n" in tail
    assert "          " + cases.LAUNCH_FIX.commands[0] in tail
    assert text.endswith("Next      perfdoctor explain compile-static-cache\n")


def test_refuted_fixes_do_not_appear():
    """Advice that can corrupt output is shown by `explain` only."""
    assert "disable-kv-cache" not in diagnosis(cases.found())


def test_random_weights_are_said():
    """A reader must not judge the text of such a model."""
    assert "The weights are random" in diagnosis(cases.found())


def test_the_ledger_shows_mean_and_p95_with_a_bar():
    """Both columns, rows without time left out."""
    text = diagnosis(cases.found())

    assert "decode.launch_gap  ###########.....  71 %  1.14 s  p95 1.21 s" in text
    assert "client_wait" not in text


def test_a_row_that_only_p95_has_is_shown():
    """A rare stall belongs to the tail and must not vanish."""
    ledger = msgspec.structs.replace(cases.FOUND.ledger, mean=cases.MEAN[2:])
    bundle = Bundle(msgspec.structs.replace(cases.FOUND, ledger=ledger), None, cases.FACTS)

    assert "server_queue       ................     -       -  p95 620 ms" in diagnosis(bundle)


def test_small_rows_are_added_up_but_unexplained_is_always_a_row():
    """A long tail of nothing hides what matters; the unknown is never hidden."""
    small = [cases.LedgerRow(row=name, seconds=0.004, share=0.004) for name in ("connect", "network")]
    rows = (*small, cases.MEAN[3], cases.LedgerRow(row="unexplained", seconds=0.0, share=0.0))
    ledger = msgspec.structs.replace(cases.FOUND.ledger, mean=rows, p95=())

    text = diagnosis(Bundle(msgspec.structs.replace(cases.FOUND, ledger=ledger), None, cases.FACTS))

    assert "2 small rows       #...............  0.8 %    8 ms" in text
    assert "unexplained        ................    0 %    0 ms" in text
    assert "connect" not in text


def test_one_small_row_keeps_its_name():
    """Adding up one row would only hide it."""
    rows = (cases.LedgerRow(row="connect", seconds=0.004, share=0.004), cases.MEAN[3])
    ledger = msgspec.structs.replace(cases.FOUND.ledger, mean=rows, p95=())

    assert "connect" in diagnosis(
        Bundle(msgspec.structs.replace(cases.FOUND, ledger=ledger), None, cases.FACTS)
    )


def test_what_is_missing_is_named_with_the_command_that_enables_it():
    """The reason and the remedy."""
    text = diagnosis(cases.found())

    assert "Missing   gil  denied: the kernel forbids" in text
    assert "          sudo sysctl kernel.yama.ptrace_scope=0" in text


def test_probes_that_miss_for_the_same_reason_share_a_line():
    """A remote server takes every host probe away at once; that is one thing to read."""
    why = {"status": "unsupported", "why": "the server runs on another host", "enable": "go there"}
    states = tuple(cases.ProbeState(probe=name, **why) for name in ("cpu", "disk", "gil"))
    found = msgspec.structs.replace(cases.FOUND, unmeasured=states)

    text = diagnosis(Bundle(found, None, cases.FACTS))

    assert "Missing   cpu, disk, gil  unsupported: the server runs on another host" in text
    assert 1 == text.count("go there")


def test_rules_are_clear_or_unknown_in_words():
    """Unknown carries its reason; clear is one line."""
    text = diagnosis(cases.found())

    assert "Clear     bandwidth-bound-decode, slow-storage-load" in text
    assert "Unknown   gil-contention  gil.held_share missing: py-spy was denied" in text


def test_a_law_holds_or_says_why_it_was_not_tested():
    """One that was tested in a part is tested; a broken one stands above, and not here."""
    text = diagnosis(cases.found())

    assert "Laws      kept: L1\n          L4 not tested: no log was named\n" in text


def test_an_untrusted_measurement_leads_with_why():
    """No verdict on the server when the client was the bottleneck."""
    text = diagnosis(cases.untrusted())

    assert "Trust     invalid  " in text
    assert "the load generator used 97 % of a core" in text
    assert "Verdict   Measurement not trusted. The client was the bottleneck." in text


def test_a_run_killed_at_once_still_has_a_report():
    """Little to say, said plainly."""
    text = diagnosis(cases.killed())

    assert "The run was interrupted" in text
    assert "Ledger    not known: nothing was measured" in text


def test_colour_repeats_words_only():
    """Without its escape codes a coloured report reads the same."""
    coloured = diagnosis(cases.found(), force_terminal=True, color_system="standard", legacy_windows=False)

    assert "\x1b[" in coloured
    assert diagnosis(cases.found()) == Text.from_ansi(coloured).plain


def test_a_style_ends_with_its_words():
    """Only the verdict is red, not the sentence after it."""
    coloured = diagnosis(cases.found(), force_terminal=True, color_system="standard", legacy_windows=False)

    assert "\x1b[31mCause found: Launch and host overhead\x1b[0m. 71 %" in coloured
    assert "\x1b[33mgil\x1b[0m  denied" in coloured


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_and_dumb_terminals_get_no_colour(variable):
    """Foreground colours are SGR 30 to 37; bold and dim are no colours."""
    text = diagnosis(cases.found(), force_terminal=True, _environ=variable)

    assert [] == re.findall(r"\x1b\[(?:\d+;)*3[0-7]m", text)


def test_foreign_strings_are_shown_not_obeyed():
    """A model's name is neither rich markup nor an escape sequence nor an emoji code."""
    target = msgspec.structs.replace(cases.FACTS.target, model="[red]m[/red] :smile: \x1b[2Jx [/")
    bundle = Bundle(cases.FOUND, None, msgspec.structs.replace(cases.FACTS, target=target))

    assert "[red]m[/red] :smile: \\x1b[2Jx [/" in diagnosis(bundle, force_terminal=True)


def test_a_bar_shows_something_for_anything():
    """Zero is empty, a thousandth is one mark, more than all is full."""
    assert ["....", "#...", "####", "####"] == [bar(s, 4) for s in (0, 0.001, 1, 1.7)]


def test_the_load_table_has_percentiles_and_n():
    """p99 is a dash with a footnote while n is below 100."""
    text = summary(cases.summary(99))

    assert "TTFT         310 ms   403 ms   434 ms        -   326 ms     99" in text
    assert "p99 is - where n < 100" in text


def test_from_100_values_on_p99_is_shown():
    """The other side of the limit."""
    text = summary(cases.summary(100))

    assert "TTFT         310 ms   403 ms   434 ms   496 ms   326 ms    100" in text
    assert "n < 100" not in text


def test_the_schedules_view_is_shown_only_where_it_differs():
    """A client that sent on time needs no second row."""
    late = msgspec.structs.replace(cases.summary(), e2e_from_schedule=cases.spread(9.0, 40))

    assert "e2e, from due" not in summary(cases.summary())
    assert "e2e, from due" in summary(late)


@pytest.mark.parametrize(("factor", "expected"), [(1.019, False), (1.021, True)])
def test_a_row_repeats_another_within_two_percent(factor, expected):
    """Below that no two runs agree; a row of another number of requests never repeats one."""
    base = cases.summary()
    other = msgspec.structs.replace(base, e2e_from_schedule=cases.spread(1.61 * factor, 40))
    fewer = msgspec.structs.replace(base, e2e_from_schedule=cases.spread(1.61, 39))

    assert expected == ("e2e, from due" in summary(other))
    assert "e2e, from due" in summary(fewer)


def test_failures_are_counted_by_class_with_a_first_message():
    """What failed, how often, and what it said."""
    text = summary(cases.summary(40, failed=3))

    assert "Requests  40 of 43 ok, 3 failed: truncated 3" in text
    assert "truncated: the stream ended without finish_reason" in text


def test_definitions_are_one_flag_away():
    """Every row of the table is defined."""
    assert "from sent to the last token" not in summary(cases.summary())
    assert "from sent to the last token" in summary(cases.summary(), definitions=True)


def test_a_load_test_without_answers_says_so():
    """No table of dashes."""
    empty = msgspec.structs.replace(
        cases.summary(0, failed=5),
        **{name: cases.Spread() for name in ("ttft", "ttfa", "tpot", "gap", "e2e", "e2e_from_schedule")},
    )

    assert "no request was answered" in summary(empty)


def test_check_lists_probes_with_reason_and_remedy():
    """Which work here, and how to enable the others."""
    text = shown(lambda console: terminal.print_check(console, cases.FACTS.probes, cases.FACTS.host))

    assert "gpu       ok" in text
    assert "gil       denied  the kernel forbids" in text
    assert "          sudo sysctl kernel.yama.ptrace_scope=0" in text
    assert "2 of 3 probes work here" in text


def test_check_of_an_unknown_host_does_not_fail():
    """Nothing known, nothing claimed."""
    text = shown(lambda console: terminal.print_check(console, (), HostFacts()))

    assert "0 of 0 probes work here" in text


def test_a_page_keeps_its_lines():
    """Code blocks of a fix's page keep their indentation."""
    page = SimpleNamespace(title="Batch requests", body_markdown="# Why\n\n    vllm serve x\n")

    text = shown(lambda console: terminal.print_page(console, page))

    assert "Batch requests\n\n# Why\n\n    vllm serve x\n" == text


def test_a_page_wraps_prose_but_not_code():
    """Sentences fit the terminal; a command can still be copied."""
    body = f"{'word ' * 30}\n```sh\n{'x' * 100}\n```\n"

    lines = shown(
        lambda console: terminal.print_page(console, SimpleNamespace(title="T", body_markdown=body))
    ).splitlines()

    assert "x" * 100 in lines
    assert all(len(line) <= 80 for line in lines if "x" not in line)


def test_a_page_is_filled_to_the_terminal():
    """Lines broken for another width are joined; list items hang; headings, code and tables stay."""
    body = (
        "One sentence that was\nbroken early.\nRisk: none.\n"
        "## Limits\n- first item that is long enough for a second line\n"
        "- second\n\n    code   here\n\n| a | b |\n"
    )

    text = shown(
        lambda console: terminal.print_page(console, SimpleNamespace(title="T", body_markdown=body)), width=40
    )

    assert (
        "T\n\nOne sentence that was broken early.\nRisk: none.\n## Limits\n"
        "- first item that is long enough for a\n  second line\n- second\n\n    code   here\n\n| a | b |\n"
    ) == text


def test_names_end_with_the_command_that_shows_one():
    """A list is only half of an answer."""
    names = {"Rules": ("gil", "serial-server"), "Errors": ("usage",)}

    text = shown(lambda console: terminal.print_names(console, names))

    assert "Rules     gil, serial-server\n\nErrors    usage\n\nNext      perfdoctor explain NAME\n" == text
