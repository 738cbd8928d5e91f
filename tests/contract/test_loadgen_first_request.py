"""The two-token requests that begin the warm-up."""

from __future__ import annotations

import asyncio

from perfdoctor.clock import Clock
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, RequestRecord, Target
from tests.servers import truth


def sent_tokens(stage: Stage) -> list[int | None]:
    """What each request of a stage asked for, in order."""
    records: list[RequestRecord] = []

    async def drive(url: str) -> None:
        async with Driver(Target(endpoint=url), Load(), Clock(), records.append) as driver:
            await driver.run_stage(stage)

    with truth.serving("--tokens", "3") as server:
        asyncio.run(drive(server.url))
    return [r.asked_tokens for r in records]


def test_short_requests_come_before_those_of_the_stage():
    """They show an echo of the prompt's tail, and are none of the requests that were asked for."""
    assert [2, 3, 48, 48] == sent_tokens(Stage("warmup", 1, requests=2, first_tokens=(2, 3)))


def test_without_them_every_request_is_alike():
    """Only the warm-up has one."""
    assert [7, 7] == sent_tokens(Stage("baseline", 1, requests=2, output_tokens=7))
