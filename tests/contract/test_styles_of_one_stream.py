"""One stream over a real socket, in the words of four tools: they disagree, each in its known way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from perfdoctor import registry
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, RequestRecord, Target
from tests.servers import truth
from tests.servers.truth import Truth
from tests.servers.truth_scripts import (
    CHUNKED_HEAD,
    DONE,
    FINISH,
    LAST_CHUNK,
    ROLE,
    Step,
    chunk,
    delta,
    usage,
)

CLIENT_LATE_MS = 19  # at most, in reading a chunk; the payloads are 100 ms apart
USERS = 4  # of whose requests the least disturbed one counts: this machine has other work too


@pytest.fixture(scope="module")
def server() -> Iterator[Truth]:
    with truth.serving() as running:
        yield running


def spread_out(*payloads: bytes) -> list[Step]:
    """Role at 20 ms, four payloads at 220, 320, 420 and 520, finish at 530, usage and [DONE] at 540."""
    steps: list[Step] = [CHUNKED_HEAD, 0.02, chunk(ROLE), 0.2]
    for payload in payloads:
        steps += [chunk(payload), 0.1]
    return [*steps[:-1], 0.01, chunk(FINISH), 0.01, chunk(usage(4) + DONE), LAST_CHUNK]


def fastest(endpoint: str) -> RequestRecord:
    records: list[RequestRecord] = []

    async def conduct() -> None:
        async with Driver(Target(endpoint=endpoint), Load(concurrency=USERS), Clock(), records.append) as d:
            await d.run_stage(Stage("steady", USERS, requests=USERS))

    loop.run(conduct())
    return min(records, key=lambda r: (r.end_s or 0.0) - (r.sent_s or 0.0))


def tables(endpoint: str) -> dict[str, dict[str, Any]]:
    best = fastest(endpoint)
    return {
        style: {
            row.name: row.mean
            for row in registry.load_member("perfdoctor.loadgen.styles", style, "STYLE")[0].rows([best])
        }
        for style in ("vllm", "sglang", "guidellm", "aiperf")
    }


def apart(seen: Any, *due: float) -> bool:
    """Instants in ms after each other by at least what the server waits between them: it may be late, never
    early, so an instant taken too early or too late leaves too little on one of its sides."""
    edges = [0.0, *seen]
    return all(b - a >= wait - CLIENT_LATE_MS for (a, b), wait in zip(pairwise(edges), due, strict=True))


def test_the_same_bytes_are_four_numbers(server: Truth) -> None:
    """SGLang bills the trailer to decoding, guidellm's TPOT holds the first token's wait."""
    found = tables(server.put("apart", spread_out(*(delta(content=text) for text in "abcd"))))
    vllm, sglang, guidellm, aiperf = (found[style] for style in ("vllm", "sglang", "guidellm", "aiperf"))

    assert apart((vllm["TTFT"], vllm["E2EL"], sglang["E2E latency"]), 220, 300, 20)
    assert vllm["TTFT"] == sglang["TTFT"] >= guidellm["TTFT"]
    assert vllm["TPOT"] == aiperf["Inter Token Latency"] == guidellm["ITL"]
    assert vllm["TPOT"] == pytest.approx((vllm["E2EL"] - vllm["TTFT"]) / 3)
    assert sglang["TPOT"] > vllm["TPOT"] + 0.5
    assert guidellm["TPOT"] == pytest.approx((guidellm["TTFT"] + 3 * vllm["TPOT"]) / 4)


@pytest.mark.parametrize("member", ["reasoning", "reasoning_content"])
def test_reasoning_comes_first(server: Truth, member: str) -> None:
    """Two tokens of thought: a token to all, the first answer 200 ms later to those who ask for one."""
    thought = [delta(**{member: "hm"})] * 2
    found = tables(server.put(member, spread_out(*thought, *(delta(content=text) for text in "ab"))))
    guidellm, aiperf = found["guidellm"], found["aiperf"]

    answered = aiperf["Time to First Output Token"]
    assert apart((aiperf["Time to First Token"], answered, aiperf["Request Latency"]), 220, 200, 100)
    assert found["sglang"]["TTFT"] == aiperf["Time to First Token"]
    assert guidellm["TTFOT"] - guidellm["TTFT"] == pytest.approx(answered - aiperf["Time to First Token"])
