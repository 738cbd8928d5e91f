"""What a reader must know to read the numbers right. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence

from perfdoctor import latency, stats, units
from perfdoctor.loadgen.summary._counts import total
from perfdoctor.model import Load, RequestCounts, RequestRecord, RunFacts, TokenCounts

# Usage counts the end mark and hidden tags too, a few per answer: only well above one are tokens merged.
SEVERAL_PER_CHUNK = 1.2
TOGETHER_S = 1e-5  # chunks of one read share its stamp
TOGETHER_SHARE = 0.2  # of all gaps; a guess: an unbatched stream shows none
CACHED_SHARE = 0.1  # of the prompt tokens; a chat template's fixed start is less of any real prompt
DISTINCT_SHARE = 0.9  # of the prompts; below it a prefix cache answers what was asked before
DELIVERED_SHARE = 0.8  # of the tokens asked for; a guess: below it the run is shorter than it looks
DRIFT_N, DRIFT = 20, 1.5  # requests in each half, and how many times the first half's median; guesses
BURST = 4  # users from which equal lengths make them come together
BURST_GAP = 0.25  # of the mean gap: what requests of a burst are at most apart; a guess
BURST_SHARE = 0.6  # of the gaps that are so short: evenly spread requests have none, Poisson ones 22 %


def ending(facts: RunFacts, state: str) -> tuple[str, ...]:
    """Why a run is shorter than asked for, and what else its driver had to say; nothing for most runs."""
    stopped = (*((facts.stopped,) if facts.stopped else ()), *facts.notes)
    if state == "failed":
        return (f"the run failed: {facts.error or 'its log.txt says why'}", *stopped)
    if state == "interrupted":
        return ("the run was interrupted: the numbers cover what was recorded before", *stopped)
    return ("the run is still going on",) if state == "running" else stopped


def impossible(left_out: int) -> tuple[str, ...]:
    if not left_out:
        return ()
    return (f"{left_out} requests are left out: their instants are out of order or after the end of the run",)


def notes(
    load: Load,
    records: Sequence[RequestRecord],
    answered: Sequence[RequestRecord],
    counts: RequestCounts,
    tokens: TokenCounts,
) -> list[str]:
    return [
        *_of_tokens(records, answered, tokens),
        *_of_prompts(answered, counts, tokens),
        *_of_time(load, records, answered, counts),
    ]


def _of_tokens(
    records: Sequence[RequestRecord], answered: Sequence[RequestRecord], tokens: TokenCounts
) -> Iterator[str]:
    tails = sum(r.head_chunks for r in records)
    if tails:
        yield f"{tails} chunks with the prompt's own tail were left out: they came before any token"
    if tokens.source in ("chunks", "mixed"):
        which = "any" if tokens.source == "chunks" else "every"
        yield f"the server did not tell token counts with {which} answer: chunks were counted instead"
    if tokens.per_chunk and tokens.per_chunk > SEVERAL_PER_CHUNK:
        yield (
            f"tokens arrive {tokens.per_chunk:.1f} per chunk on average: gaps are not inter-token latencies, "
            "TPOT is"
        )
    gaps = [gap for r in answered if r.token_at_s for gap in latency.gaps(r)]
    together = sum(gap < TOGETHER_S for gap in gaps) / len(gaps) if gaps else 0.0
    if together >= TOGETHER_SHARE:
        yield (
            f"{units.share(together)} of the chunks arrived together with the one before: the server, a "
            "proxy or a busy client batches the stream: trust TPOT, not gaps"
        )
    if tokens.asked and tokens.delivered is not None and tokens.delivered < DELIVERED_SHARE * tokens.asked:
        yield (
            f"answers are {units.share(tokens.delivered / tokens.asked)} as long as asked for: "
            "compare by token, not by request"
        )


def _of_prompts(
    answered: Sequence[RequestRecord], counts: RequestCounts, tokens: TokenCounts
) -> Iterator[str]:
    cached, prompts = tokens.cached, total([r.prompt_tokens for r in answered])
    if cached and prompts and cached / prompts >= CACHED_SHARE:
        yield f"{units.share(cached / prompts)} of the prompt tokens came from a prefix cache"
    distinct = counts.distinct_prompts_share
    if distinct is not None and distinct < DISTINCT_SHARE:
        yield f"only {units.share(distinct)} of the prompts are distinct: a cache may answer the others"


def _of_time(
    load: Load,
    records: Sequence[RequestRecord],
    answered: Sequence[RequestRecord],
    counts: RequestCounts,
) -> Iterator[str]:
    if counts.not_sent:
        yield f"{counts.not_sent} requests were due but not sent before the load ended"
    open_at_end = counts.censored - counts.not_sent
    if open_at_end:
        yield f"{open_at_end} requests were still open at the end: their tokens count, their times do not"
    if counts.late:
        yield f"{counts.late} requests were sent late: read the rows counted from the schedule"
    drift = _drift(answered)
    if drift:
        yield (
            f"TTFT of the second half is {drift:.2g} times that of the first: the load is not in a steady "
            f"state{'' if drift > 1 else ', the warm-up may have been too short'}"
        )
    if load.arrival == "closed" and load.concurrency >= BURST and _equal_lengths(records):
        yield "users of a closed loop with answers of equal length send together: TTFT holds their queue"


def _drift(answered: Sequence[RequestRecord]) -> float | None:
    """How many times longer the first token took in the second half of the load, where it is far from once.

    The medians' 95 % intervals must lie apart: of 40 times that only scatter, the medians alone differ that
    far in one run of six.
    """
    found = sorted((r.sent_s, ttft) for r in answered if r.sent_s is not None and (ttft := latency.ttft(r)))
    middle = len(found) // 2
    if middle < DRIFT_N:
        return None
    first, second = [t for _, t in found[:middle]], [t for _, t in found[middle:]]
    before, after = stats.percentile_interval(first, 0.5), stats.percentile_interval(second, 0.5)
    if before is None or after is None or (before[1] >= after[0] and after[1] >= before[0]):
        return None
    ratio = statistics.median(second) / statistics.median(first)
    return None if 1 / DRIFT < ratio < DRIFT else ratio


def _equal_lengths(records: Sequence[RequestRecord]) -> bool:
    """All answers ran to the same limit, and most requests left close behind another one."""
    lengths = {r.output_tokens for r in records if r.outcome == "ok"}
    if len(lengths) != 1 or any(r.finish_reason != "length" for r in records if r.outcome == "ok"):
        return False
    sent = sorted(r.sent_s for r in records if r.sent_s is not None)
    if len(sent) < 2 * BURST:
        return False
    short = BURST_GAP * (sent[-1] - sent[0]) / (len(sent) - 1)
    near = sum(b - a < short for a, b in itertools.pairwise(sent))
    return near > BURST_SHARE * (len(sent) - 1)
