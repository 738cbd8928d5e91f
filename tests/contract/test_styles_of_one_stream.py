"""One stream over a real socket, in the words of four tools: they disagree, each in its known way."""

from __future__ import annotations

from collections.abc import Iterator

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

TRIES = 4  # requests, of which the least disturbed one counts: this machine has other work too


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


def tables(endpoint: str) -> dict[str, dict[str, float | None]]:
    records: list[RequestRecord] = []

    async def conduct() -> None:
        async with Driver(Target(endpoint=endpoint), Load(concurrency=TRIES), Clock(), records.append) as d:
            await d.run_stage(Stage("steady", TRIES, requests=TRIES))

    loop.run(conduct())
    best = min(records, key=lambda r: (r.end_s or 0.0) - (r.sent_s or 0.0))
    return {
        style: {
            row.name: row.mean
            for row in registry.load_member("perfdoctor.loadgen.styles", style, "STYLE")[0].rows([best])
        }
        for style in ("vllm", "sglang", "guidellm", "aiperf")
    }


def near(expected_ms: float) -> object:
    return pytest.approx(expected_ms, abs=15)


def test_the_same_bytes_are_four_numbers(server: Truth) -> None:
    """SGLang bills the trailer to decoding, guidellm's TPOT holds the first token's wait."""
    found = tables(server.put("apart", spread_out(*(delta(content=text) for text in "abcd"))))

    assert [near(220)] * 3 == [found[style]["TTFT"] for style in ("vllm", "sglang", "guidellm")]
    assert (near(520), near(540)) == (found["vllm"]["E2EL"], found["sglang"]["E2E latency"])
    paces = {"vllm": "TPOT", "sglang": "TPOT", "guidellm": "TPOT", "aiperf": "Inter Token Latency"}
    vllm, sglang, guidellm, aiperf = (found[style][name] for style, name in paces.items())
    assert (pytest.approx(100, abs=4), pytest.approx(106.7, abs=4)) == (vllm, sglang)
    assert (pytest.approx(130, abs=4), pytest.approx(vllm)) == (guidellm, aiperf)
    assert sglang > vllm + 4


@pytest.mark.parametrize("member", ["reasoning", "reasoning_content"])
def test_reasoning_comes_first(server: Truth, member: str) -> None:
    """Two tokens of thought: a token to all, the first answer at 420 ms to those who ask for one."""
    thought = [delta(**{member: "hm"})] * 2
    found = tables(server.put(member, spread_out(*thought, *(delta(content=text) for text in "ab"))))

    assert (near(220), near(220)) == (found["sglang"]["TTFT"], found["guidellm"]["TTFT"])
    assert (near(420), near(420)) == (
        found["guidellm"]["TTFOT"],
        found["aiperf"]["Time to First Output Token"],
    )
