"""A verification and a table of many, as a terminal shows them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from perfdoctor.model import Outputs, Trial, Trials, TriedRun, TriedSide, Verification
from perfdoctor.reports import _verification

FOUND = Verification(
    verify="it",
    state="complete",
    fix="compile-with-static-cache",
    title="Use a static KV cache",
    claim="D1 says so.",
    catalogue="confirmed",
    promised={"D1-05": 1.4, "D3-11": 1.1},
    model="tiny",
    hardware="a CPU, 2 cores",
    versions="torch 2",
    load="1 at once",
    before=TriedSide(start_s=4.0, first_answer_s=0.1, next_answer_s=0.09),
    after=TriedSide(
        settings={"cache": "static", "compile": "reduce-overhead"},
        start_s=44.0,
        compile_s=40.0,
        first_answer_s=0.1,
        next_answer_s=0.05,
        bottleneck="decode.memory, 80 % of a request",
    ),
    runs=(TriedRun(side="after", pair=1, run="after/01", value=1.0, left_out="it is interrupted"),),
    outputs=Outputs(prompts=6, tokens=32),
    bound=(1.5, 2.0),
    bound_source="decode.launch_gap: 50 % of a request before",
    ratio=1.8,
    interval=(1.7, 1.9),
    noise=1.02,
    effect="helps",
    verdict="helps",
)


def shown(found: Verification | Trials) -> str:
    buffer = io.StringIO()
    console = Console(file=buffer, width=80, no_color=True, highlight=False)
    if isinstance(found, Verification):
        _verification.print_verification(console, found)
    else:
        _verification.print_trials(console, found)
    return buffer.getvalue()


def changed(**changes: object) -> Verification:
    import msgspec

    return msgspec.structs.replace(FOUND, **changes)


def test_what_a_person_must_see():
    """Claim, cost of the start, answers, bound, what was seen and its noise, the next bottleneck, verdict."""
    lines = shown(FOUND).splitlines()
    text = " ".join(" ".join(lines).split())

    assert 80 >= max(map(len, lines))
    for phrase in (
        "Claimed D1 says so.",
        "cache=static, compile=reduce-overhead; up after 44 s, 40 s of it compiling",
        "6 greedy answers of 32 tokens are the same",
        "at most 1.50x to 2.00x (decode.launch_gap: 50 % of a request before)",
        "1.80x as fast (95 %: 1.70 to 1.90)",
        "equal sides are 0.98 to 1.02 by chance",
        "not counted: after/01; the first because it is interrupted",
        "with it the bottleneck is decode.memory",
    ):
        assert phrase in text
    assert "Verdict   helps: 1.80x as fast" == lines[-1]


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"verdict": "hurts", "effect": "hurts", "ratio": 0.7}, "Verdict   hurts: 0.70x as fast"),
        ({"verdict": "changes_output"}, "Verdict   changes output: 1.80x as fast"),
        (
            {"verdict": "no_effect", "effect": "no_effect", "reason": "no significant change: it"},
            "Verdict   no effect: no significant change: it",
        ),
        ({"interval": (2.1, 2.4), "ratio": 2.2}, "more than the ledger allows"),
        ({"bound": None, "bound_source": "why"}, "Predicted no bound: why"),
        ({"ratio": None, "verdict": "not_judged", "reason": "few"}, "Verdict   not judged: few"),
        ({"state": "failed", "error": "it died"}, "State     failed: it died"),
    ],
)
def test_verdicts_in_words(changes: dict, phrase: str):
    """Each of them, and what is odd."""
    assert phrase in " ".join(shown(changed(**changes)).split("\n")).replace("\n", " ") or phrase in shown(
        changed(**changes)
    ).replace("\n          ", " ")


@pytest.mark.parametrize(
    ("outputs", "phrase"),
    [
        (
            Outputs(prompts=6, tokens=32, differ=2, first=7),
            "2 of 6 greedy answers of 32 tokens differ, from token 7",
        ),
        (Outputs(prompts=6, tokens=32, differ_together=1), "1 more when several are asked at once"),
        (Outputs(prompts=6, tokens=32, unsteady=2), "2 are not told of"),
        (Outputs(missing="not asked"), "not compared: not asked"),
    ],
)
def test_answers_in_words(outputs: Outputs, phrase: str):
    """How many, and from where on."""
    assert phrase in _verification.outputs_text(outputs)


def test_the_table_of_many_fits():
    """What is claimed beside what was measured; fixes that cannot run under their reasons."""
    line = Trial(
        fix=FOUND.fix, title="", catalogue="confirmed", promised=FOUND.promised, verdict="helps", result=FOUND
    )
    others = [
        Trial(fix=name, title="", catalogue="confirmed", verdict="cannot_run", reason=f"{name} is no setting")
        for name in ("one", "two")
    ]
    lines = shown(Trials(state="complete", model="tiny", trials=(line, *others))).splitlines()

    assert 80 >= max(map(len, lines))
    assert any(line.split()[:5] == [FOUND.fix, "1.1x,", "1.4x", "confirmed", "helps"] for line in lines)
    assert any("is no setting: one, two" in line for line in lines)
