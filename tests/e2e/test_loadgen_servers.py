"""The driver against real servers, whose own counts and quirks it must get right."""

from __future__ import annotations

import pytest

from perfdoctor import latency
from perfdoctor.clock import Clock
from perfdoctor.errors import Refused, UnknownModel
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, Prompts, RequestRecord, Target
from tests.servers._server import Server

pytestmark = pytest.mark.server


def drive(server: Server, users: int, requests: int, api: str = "chat", **more):
    """The records, and what made the driver give up."""
    records: list[RequestRecord] = []
    target = Target(endpoint=server.url, served_name=more.pop("model", server.model), api=api)

    async def conduct():
        load = Load(concurrency=users, temperature=1.0, **more)
        async with Driver(target, load, Clock(), records.append) as driver:
            await driver.run_stage(Stage("steady", users, requests=requests))
            return driver.aborted

    return records, loop.run(conduct())


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_llamacpp_loses_no_request_though_it_closes_every_connection(llamacpp, api):
    """It announces keep-alive and closes after each stream; it tells its own times in the last chunk."""
    records, aborted = drive(llamacpp, 4, 40, api)

    assert aborted is None
    assert ["ok"] * 40 == [r.outcome for r in records]
    assert {"usage"} == {r.token_source for r in records}
    # the end mark and the marks of reasoning are tokens that never show
    assert all(0 <= r.output_tokens - len(r.token_at_s) <= 6 for r in records)
    assert all(0 < r.server_prefill_s + r.server_decode_s <= r.end_s - r.sent_s + 0.001 for r in records)


def test_prompts_do_not_hit_the_prefix_cache(llamacpp):
    """Nor when the same load is driven twice: only the template's start is remembered."""
    drive(llamacpp, 2, 10)
    records, _ = drive(llamacpp, 2, 10)

    assert sum(r.cached_tokens for r in records) < 0.2 * sum(r.prompt_tokens for r in records)


def test_a_prompt_beyond_the_context_is_refused_with_the_servers_words(llamacpp):
    """They name both sizes."""
    _, aborted = drive(llamacpp, 1, 10, prompts=Prompts(input_tokens=9000))

    assert type(aborted) is Refused
    assert "context size" in aborted.what


def test_transformers_first_token_comes_after_the_queue(transformers_plain):
    """It echoes the prompt's tail at once, and then serves one request after the other."""
    records, _ = drive(transformers_plain, 4, 12)
    cleaned = latency.without_prompt_tail(records)

    assert ["ok"] * 12 == [r.outcome for r in records]
    assert all(r.head_chunks == 1 for r in cleaned)
    assert max(latency.ttft(r) for r in cleaned) > 3 * max(latency.ttft(r) for r in records)


def test_transformers_pinned_to_another_model(transformers_plain):
    """Its 400 says so; the advice is to list the names."""
    records, aborted = drive(transformers_plain, 1, 10, model="nope")

    assert type(aborted) is UnknownModel
    assert 3 == len(records)
