"""`perfdoctor load-test` on real servers that somebody else started: numbers that a user can act on."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor import store
from tests.e2e._command import load_test
from tests.servers._server import Server

pytestmark = pytest.mark.server
SERVERS = ("llamacpp", "transformers_plain", "transformers_cb")
WAY = {"llamacpp": "{}/v1", "transformers_plain": "{}", "transformers_cb": "{}/v1/"}  # of writing an endpoint


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", SERVERS)
def test_every_answer_counts_and_none_fails(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Forty of forty, with the server's own token counts, and times in their only possible order."""
    server: Server = request.getfixturevalue(name)

    found = load_test(
        WAY[name].format(server.url), "-c", "4", "-n", "40", "--output-tokens", "12", cwd=tmp_path
    )

    assert (40, 40, {}, 0) == tuple(found["requests"][k] for k in ("total", "ok", "failed", "censored"))
    assert "usage" == found["tokens"]["source"]
    assert 40 < found["tokens"]["output"] <= 40 * 12
    for statistic in ("p50", "p95"):
        assert 0.001 < found["ttft"][statistic] < found["e2e"][statistic] < 60
    assert 0 < found["tpot"]["p50"] < found["e2e"]["p50"]


def test_a_connection_that_llamacpp_closes_is_no_error(llamacpp: Server, tmp_path: Path) -> None:
    """It announces keep-alive and closes after every stream; each request is sent again, none is lost."""
    found = load_test(llamacpp.url, "-c", "2", "-n", "60", "--output-tokens", "2", cwd=tmp_path)

    assert (60, {}) == (found["requests"]["ok"], found["requests"]["failed"])


def test_completions_are_measured_like_chats(server: Server, tmp_path: Path) -> None:
    """The other API, with its other chunks, on the same servers."""
    flags = ("--api", "completions", "-c", "2", "-n", "10", "--output-tokens", "16")

    found = load_test(server.url, *flags, cwd=tmp_path)

    assert (10, "usage") == (found["requests"]["ok"], found["tokens"]["source"])
    assert 0.001 < found["ttft"]["p50"] < found["e2e"]["p50"]


def test_time_to_first_token_of_a_queue_is_not_that_of_an_echo(
    transformers_plain: Server, tmp_path: Path
) -> None:
    """Sixteen users of a serial server wait for each other, though each gets the prompt's tail at once."""
    flags = ("-n", "32", "--output-tokens", "16")

    one = load_test(transformers_plain.url, "-c", "1", *flags, cwd=tmp_path / "one")
    many = load_test(transformers_plain.url, "-c", "16", *flags, cwd=tmp_path / "many")

    assert many["ttft"]["p50"] > 4 * one["e2e"]["p50"]  # fifteen answers come before it
    assert many["ttft"]["p50"] > 20 * one["tpot"]["p50"]
    assert many["gap"]["max"] < many["ttft"]["p50"]  # else the wait hides in the first gap
    assert any("prompt's own tail" in note for note in many["notes"])


def test_long_answers_show_the_echo_too(transformers_plain: Server, tmp_path: Path) -> None:
    """Answers that end by themselves lose marks without a chunk; the warm-up's short answer decides."""
    found = load_test(transformers_plain.url, "-c", "3", "-n", "9", "--output-tokens", "300", cwd=tmp_path)

    (run,) = (tmp_path / "runs").iterdir()
    records = store.open_run(run).read_requests()
    echoes = [r.token_at_s[0] - (r.sent_s or 0) for r in records if r.phase == "steady"]
    assert found["ttft"]["p50"] > 2 * sorted(echoes)[len(echoes) // 2]
    assert found["gap"]["max"] < found["ttft"]["p50"]
