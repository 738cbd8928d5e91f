"""Each API against real servers: what they count must be what the records say."""

from __future__ import annotations

import json

import pytest

from perfdoctor import latency
from perfdoctor.clock import Clock
from perfdoctor.loadgen import loop
from perfdoctor.loadgen.driver import Driver, Stage
from perfdoctor.model import Load, Prompts, RequestRecord, Target
from tests.servers._server import Server

pytestmark = pytest.mark.server


def drive(
    server: Server, users: int, requests: int, prompts: Prompts | None = None, **target
) -> list[RequestRecord]:
    records: list[RequestRecord] = []
    load = Load(concurrency=users, temperature=1.0, prompts=prompts or Prompts())
    where = Target(endpoint=server.url, served_name=server.model, **target)

    async def conduct():
        async with Driver(where, load, Clock(), records.append) as driver:
            await driver.run_stage(Stage("steady", users, requests=requests))

    loop.run(conduct())
    assert ["ok"] * requests == [r.outcome for r in records], records[0].error
    return records


@pytest.mark.parametrize("server", ["llamacpp", "transformers_plain"])
def test_the_responses_api_is_read_as_the_server_counts(server, request):
    """One chunk a token, but for the prompt's tail and the marks that never show."""
    records = drive(request.getfixturevalue(server), 2, 12, Prompts(output_tokens=24), api="responses")

    assert {"usage"} == {r.token_source for r in records}
    assert all(-1 <= r.output_tokens - len(r.token_at_s) <= 4 for r in records)
    assert all(r.output_tokens <= 24 and r.prompt_tokens > 20 for r in records)
    assert all(r.finish_reason for r in records)
    assert all(latency.ttft(r) <= latency.e2e(r) for r in records)


def test_the_prompts_tail_is_no_first_token_in_the_responses_api(transformers_plain):
    """It calls an answer completed that was cut at its limit, and sends the tail before its queue."""
    records = drive(transformers_plain, 4, 12, Prompts(output_tokens=24), api="responses")
    cleaned = latency.without_prompt_tail(records)

    assert {1} == {r.head_chunks for r in cleaned}
    assert max(latency.ttft(r) for r in cleaned) > 3 * max(latency.ttft(r) for r in records)


@pytest.mark.parametrize("server", ["llamacpp", "transformers_plain"])
@pytest.mark.parametrize("api", ["chat", "completions", "responses"])
def test_answers_in_one_piece_are_counted_by_the_server(server, api, request):
    """No first token is made up."""
    records = drive(request.getfixturevalue(server), 2, 6, Prompts(output_tokens=8), api=api, stream=False)

    assert {"usage"} == {r.token_source for r in records}
    assert all(1 <= r.output_tokens <= 8 for r in records)
    assert {None} == {latency.ttft(r) for r in records}
    assert all(r.headers_s and r.body_bytes for r in records)


def test_logprobs_tell_the_tokens_of_llamacpps_chunks(llamacpp):
    """As many as its usage, but for those that come without text after the last chunk."""
    asked = {"logprobs": True, "top_logprobs": 1}
    records = drive(llamacpp, 2, 10, Prompts(output_tokens=24), extra_body=asked)

    assert all(len(r.token_counts) == len(r.token_at_s) for r in records)
    assert all(0 <= r.output_tokens - sum(r.token_counts) <= 2 for r in records)


@pytest.mark.parametrize("server", ["llamacpp", "transformers_plain"])
def test_a_server_that_knows_no_counts_per_chunk_is_driven_all_the_same(server, request):
    """It ignores the wish; then they are not known."""
    records = drive(request.getfixturevalue(server), 1, 4, Prompts(count_per_chunk=True, output_tokens=8))

    assert {()} == {r.token_counts for r in records}
    assert {"usage"} == {r.token_source for r in records}


def test_a_tokenizer_makes_prompts_exact(llamacpp, tiny_model):
    """All requests have the same prompt length by the server's own count: the template adds a constant."""
    records = drive(llamacpp, 2, 8, Prompts(input_tokens=200, output_tokens=4, tokenizer=str(tiny_model)))

    assert 1 == len({r.prompt_tokens for r in records})
    assert 200 < records[0].prompt_tokens < 220


def test_a_tokenizer_counts_nearly_as_the_server(llamacpp, tiny_model):
    """Where the server is not asked for usage; the marks of reasoning are not in the text."""
    told = drive(llamacpp, 1, 6, Prompts(output_tokens=64))
    records = drive(
        llamacpp,
        1,
        6,
        Prompts(output_tokens=64, tokenizer=str(tiny_model)),
        extra_body={"stream_options": None},
    )

    assert ({"usage"}, {"tokenizer"}) == ({r.token_source for r in told}, {r.token_source for r in records})
    assert all(abs(r.output_tokens - len(r.token_at_s)) <= 4 for r in records)


def test_a_shared_prefix_is_found_in_the_cache(llamacpp):
    """By the server's own count, from the second request on."""
    records = drive(llamacpp, 1, 6, Prompts(input_tokens=200, shared_prefix_tokens=150, output_tokens=4))

    assert all(r.cached_tokens > 0.5 * r.prompt_tokens for r in records[1:])


def test_a_conversation_grows_in_the_servers_count(llamacpp):
    """Each turn holds what was said before, and the cache has most of it."""
    records = drive(llamacpp, 1, 6, Prompts(input_tokens=40, output_tokens=16, turns=3))
    lengths = [r.prompt_tokens for r in records]

    assert [1, 2, 3] * 2 == [r.turn for r in records]
    assert lengths[0] < lengths[1] < lengths[2] and lengths[3] < lengths[4] < lengths[5]


def test_any_http_reaches_a_model_as_well(llamacpp):
    """The body is the user's own; an event stream is timed without being taken for tokens."""
    body = json.dumps({"prompt": "PROMPT", "n_predict": 8, "ignore_eos": True, "stream": True}).replace(
        '"PROMPT"', "{{prompt_json}}"
    )
    records: list[RequestRecord] = []
    target = Target(endpoint=f"{llamacpp.url}/completion", api="http", body=body)

    async def conduct():
        async with Driver(target, Load(concurrency=1), Clock(), records.append) as driver:
            await driver.run_stage(Stage("steady", 1, requests=4))

    loop.run(conduct())
    assert ["ok"] * 4 == [r.outcome for r in records]
    assert all(4 <= len(r.token_at_s) <= 10 and r.output_tokens is None for r in records)
