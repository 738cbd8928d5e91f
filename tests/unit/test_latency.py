"""The definitions of the latencies."""

from __future__ import annotations

import msgspec
import pytest

from perfdoctor import latency
from perfdoctor.model import RequestRecord


def answer(
    *token_at_s: float,
    tokens: int | None = None,
    finish: str = "length",
    first: str = "\n",
    reasoned: bool = False,
) -> RequestRecord:
    """A request sent at 1 s, due at 0 s, whose payload chunks came at these instants; `reasoned`: all but the
    last were reasoning."""
    return RequestRecord(
        id=1,
        phase="steady",
        due_s=0.0,
        sent_s=1.0,
        first_token_s=token_at_s[0] if token_at_s else None,
        first_answer_s=token_at_s[-1 if reasoned else 0] if token_at_s else None,
        last_token_s=token_at_s[-1] if token_at_s else None,
        token_at_s=token_at_s,
        first_text=first,
        output_tokens=len(token_at_s) if tokens is None else tokens,
        token_source="usage",
        finish_reason=finish,
    )


def test_times_count_from_sent_and_the_schedule_from_due():
    """The same answer has a service latency and a latency from its due time."""
    record = answer(3.0, 4.0, 5.0, reasoned=True)

    assert 2.0 == latency.ttft(record)
    assert 4.0 == latency.ttfa(record)
    assert 4.0 == latency.e2e(record)
    assert 5.0 == latency.e2e_from_schedule(record)
    assert 1.0 == latency.tpot(record)
    assert (1.0, 1.0) == latency.gaps(record)


def test_tpot_divides_by_tokens_and_not_by_chunks():
    """Two chunks that carry five tokens have four steps between the first and the last."""
    record = answer(2.0, 4.0, tokens=5)

    assert 0.5 == latency.tpot(record)


def test_one_token_has_no_pace():
    """A single token gives a first-token time and no TPOT, rather than 0."""
    record = answer(2.0)

    assert 1.0 == latency.ttft(record)
    assert latency.tpot(record) is None


def test_no_token_gives_no_latency():
    """An answer without payload has none of the token latencies."""
    record = answer()

    assert latency.ttft(record) is None
    assert latency.e2e(record) is None
    assert () == latency.gaps(record)


def test_prompt_tail_is_left_out_when_chunks_outnumber_tokens():
    """Four chunks for three tokens at the limit: the first was an echo of the prompt."""
    records = [answer(1.01, 9.0, 9.1, 9.2, tokens=3) for _ in range(4)]

    (first, *_) = latency.without_prompt_tail(records)

    assert 8.0 == latency.ttft(first)
    assert 1 == first.head_chunks
    assert (9.0, 9.1, 9.2) == first.token_at_s


def test_prompt_tail_is_not_suspected_when_every_chunk_is_a_token():
    """As many chunks as tokens at the limit: nothing to leave out, however long the first gap."""
    records = [answer(1.01, 9.0, 9.1, 9.2) for _ in range(4)]

    assert tuple(records) == latency.without_prompt_tail(records)


def test_prompt_tail_of_stopped_answers_needs_the_gap_too():
    """A stopped answer spends a token on its end mark, so equal counts are suspect only with an odd gap."""
    odd = [answer(1.01, 9.0, 9.1, 9.2, 9.3, finish="stop") for _ in range(4)]
    even = [answer(8.9, 9.0, 9.1, 9.2, 9.3, finish="stop") for _ in range(4)]

    assert 1 == latency.without_prompt_tail(odd)[0].head_chunks
    assert 0 == latency.without_prompt_tail(even)[0].head_chunks


def test_prompt_tail_correction_happens_once():
    """Correcting a corrected record changes nothing."""
    once = latency.without_prompt_tail([answer(1.01, 9.0, 9.1, tokens=2)] * 3)

    assert once == latency.without_prompt_tail(once)


def test_failed_and_cut_off_requests_are_not_ok():
    """Only finished answers enter the statistics."""
    good = answer(2.0, 3.0)
    bad = RequestRecord(id=2, phase="steady", due_s=0.0, outcome="truncated")
    open_ = RequestRecord(id=3, phase="steady", due_s=0.0, censored=True)

    assert (good,) == latency.ok_records([good, bad, open_])


def test_prompt_tail_is_found_in_answers_that_lost_marks_when_a_plain_one_shows_it():
    """Answers that leave their reasoning lose its marks, so they have fewer chunks than tokens; one short
    answer without marks decides for all that begin alike."""
    crossing = [answer(1.01, 9.0, 9.1, tokens=6, reasoned=True) for _ in range(9)]
    short = answer(1.01, 9.0, tokens=1)

    corrected = latency.without_prompt_tail([short, *crossing])

    assert [8.0] * 10 == [latency.ttft(r) for r in corrected]


def test_a_mark_is_a_token_without_a_chunk():
    """No capped answer is of one kind: as many chunks as tokens, one of them a mark, is one too many."""
    echoed = [answer(1.01, 9.0, tokens=2, reasoned=True)] * 3
    plain = [answer(8.9, 9.0, tokens=3, reasoned=True)] * 3

    assert [8.0] * 3 == [latency.ttft(r) for r in latency.without_prompt_tail(echoed)]
    assert tuple(plain) == latency.without_prompt_tail(plain)


def test_a_first_token_that_most_answers_share_is_kept():
    """A model may begin every answer with the same token: as many chunks as tokens in those without marks."""
    crossing = [answer(1.01, 9.0, 9.1, 9.2, tokens=4, reasoned=True) for _ in range(9)]
    short = answer(1.01, 9.0, tokens=2)

    assert (short, *crossing) == latency.without_prompt_tail([short, *crossing])


def test_a_rare_first_chunk_is_no_prompt_tail():
    """A prompt's tail begins every answer; a token that came in two chunks once does not."""
    others = [answer(2.0, 2.1, 2.2, first=text) for text in ("a", "b", "c")]
    split = answer(2.0, 2.1, 2.2, tokens=2)

    assert (split, *others) == latency.without_prompt_tail([split, *others])


def test_an_answer_called_completed_at_its_limit_was_cut_there():
    """The Responses API of some servers knows no other word; the counts of the chunks move along."""
    cut = [
        msgspec.structs.replace(
            answer(1.01, 9.0, 9.1, tokens=2, finish="completed"), asked_tokens=2, token_counts=(0, 1, 1)
        )
    ] * 3
    free = [msgspec.structs.replace(record, asked_tokens=9) for record in cut]

    assert (8.0, (1, 1)) == (latency.ttft(found := latency.without_prompt_tail(cut)[0]), found.token_counts)
    assert tuple(free) == latency.without_prompt_tail(free)


def test_a_pause_is_divided_among_the_tokens_it_brought():
    """The first chunk's tokens have no pause before them; one without tokens has no part."""
    record = msgspec.structs.replace(answer(2.0, 4.0, 5.0, 6.0), token_counts=(3, 2, 0, 1))

    assert [1.0, 1.0, 1.0] == latency.inter_token(record)


def test_three_tokens_have_exactly_two_gaps():
    """Cut at its limit, a chunk for each token."""
    record = answer(2.0, 3.0, 5.0)

    assert (1.0, 2.0) == latency.gaps(record)
    assert [1.0, 2.0] == latency.inter_token(record)


def test_tokens_of_a_chunk_are_known_only_by_count():
    """Told; or an answer cut at its limit with equal totals by the server's usage, and nothing else."""
    cut = answer(2.0, 3.0, 4.0)

    assert (1, 1, 1) == latency.token_counts(cut)
    assert () == latency.token_counts(answer(2.0, 3.0, 4.0, finish="stop"))
    assert () == latency.token_counts(answer(2.0, 3.0, 4.0, tokens=4))
    assert () == latency.token_counts(msgspec.structs.replace(cut, token_source="chunks"))
    assert () == latency.token_counts(msgspec.structs.replace(cut, token_source="tokenizer"))


def test_the_first_chunks_tokens_are_no_pace():
    """Four tokens at once, four 40 ms later: 10 ms for each of the later ones."""
    record = msgspec.structs.replace(answer(1.0, 1.04, tokens=8), token_counts=(4, 4))

    assert 0.01 == pytest.approx(latency.tpot(record))
    assert 100 == pytest.approx(latency.user_tokens_per_s(record))


def test_an_answer_in_one_piece_ends_when_it_is_over():
    """No token's instant is known; a failed one was never there."""
    whole = RequestRecord(id=1, phase="steady", due_s=0.0, sent_s=1.0, end_s=3.0)

    assert (2.0, 3.0) == (latency.e2e(whole), latency.e2e_from_schedule(whole))
    assert latency.e2e(msgspec.structs.replace(whole, outcome="truncated")) is None


def test_what_did_not_happen_has_no_stage():
    """On a kept connection the wait is until the bytes are written."""
    kept = RequestRecord(id=1, phase="steady", due_s=0.0, sent_s=1.0, written_s=1.5, headers_s=2.0, end_s=3.0)
    found = latency.stages(kept)

    assert (0.5, 0.5) == (found["pool_wait"], found["headers"])
    assert [None] * 4 == [found[name] for name in ("connect", "tls", "first_byte", "transfer")]


def test_every_quantity_and_stage_has_a_definition():
    """A number without one reconciles nothing."""
    assert set(latency.OF_REQUEST) <= set(latency.DEFINITIONS)
    assert set(latency.STAGES) == set(latency.stages(answer(2.0)))
