"""Goodput, and a run against its SLO."""

from summary_cases import failed, request, summary

from perfdoctor.loadgen.summary import summarise
from perfdoctor.model import Load, RunFacts, Scenario

# one user, four requests of 1 s; the tokens of two come within 100 ms, those of one do not, one fails
RECORDS = [request(0, 0.1, 1), request(1, 1.1, 2), request(2, 2.9, 3), failed(3, 4)]


def test_goodput_counts_good_requests_a_second():
    """Two of four in 4 s; a failed one is not good, a slow one neither."""
    slo = summary(RECORDS, slo="ttft_p50<=101ms").slo

    assert (0.5, 0.5, True) == (slo.goodput_per_s, slo.good_share, slo.met)


def test_the_runs_own_slo_is_judged_and_another_replaces_it():
    """`report --slo` asks an old run a new question."""
    facts = RunFacts(run="r", scenario=Scenario(load=Load(concurrency=1, slo="ttft_p50<50ms")))

    assert summary(RECORDS).slo is None
    assert "ttft_p50<50ms" == summarise(facts, "complete", RECORDS).slo.text
    assert "e2e_p50<9s" == summarise(facts, "complete", RECORDS, slo="e2e_p50<9s").slo.text


def test_each_term_has_its_value():
    """One that is missed misses the whole."""
    slo = summary(RECORDS, slo="ttft_max<1s,error_rate<1%,goodput>0.4").slo

    assert [True, False, True] == [term.met for term in slo.terms]
    assert [0.25, 0.75] == [term.value for term in slo.terms[1:]]
    assert slo.met is False


def test_a_term_without_a_value_leaves_it_undecided_unless_another_is_missed():
    """p99 of three requests is none; nobody passes by measuring nothing."""
    assert summary(RECORDS, slo="ttft_p99<9s,e2e_p50<9s").slo.met is None
    assert summary(RECORDS, slo="ttft_p99<9s,e2e_p50<1ms").slo.met is False


def test_a_run_without_requests_has_no_goodput():
    """Null, and not met."""
    slo = summary([], slo="ttft_p95<1s").slo

    assert (None, None, None) == (slo.goodput_per_s, slo.good_share, slo.met)


def test_requests_still_open_are_no_part_of_the_share():
    """Nobody knows what would have become of them."""
    cut = request(3, 3.05, outcome="cancelled", censored=True)

    assert 2 / 3 == summary([*RECORDS[:3], cut], slo="ttft_p50<=101ms").slo.good_share


def test_what_no_answer_can_have_makes_none_of_them_bad():
    """Answers in one piece have no first token: goodput has no value, not 0, and nobody passes."""
    whole = [request(n, end_s=n + 1.0, output=4) for n in range(3)]
    slo = summary(whole, slo="ttft_p95<1s,goodput>0").slo

    assert (None, None, None) == (slo.goodput_per_s, slo.good_share, slo.met)
    assert "what the SLO asks" in slo.terms[1].missing


def test_where_nothing_succeeded_nothing_was_good():
    """Zero, and known."""
    slo = summary([failed(0, 1), failed(1, 2)], slo="ttft_p95<1s").slo

    assert (0.0, 0.0) == (slo.goodput_per_s, slo.good_share)


def test_a_single_token_has_no_pace_and_is_good():
    """Not even where all of them are single."""
    slo = summary([request(0, 1), request(1, 2)], slo="tpot_p95<1s").slo

    assert 1.0 == slo.good_share
