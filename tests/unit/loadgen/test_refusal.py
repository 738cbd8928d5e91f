"""When a run gives up, and the words it uses."""

import pytest

from perfdoctor.errors import NotOpenai, Refused, ServerDied, TlsMismatch, UnknownModel, Unreachable
from perfdoctor.loadgen.explain import explain
from perfdoctor.loadgen.refusal import LOST_CONNECTS, Verdicts
from perfdoctor.model import RequestRecord

URL = "http://127.0.0.1:8000/v1/chat/completions"


def record(outcome="ok", error=None, censored=False):
    status = int(outcome[5:]) if outcome.startswith("http_") else 200 if outcome == "ok" else None
    return RequestRecord(
        id=1, phase="steady", due_s=0.0, outcome=outcome, error=error, status=status, censored=censored
    )


def watch(*outcomes, concurrency=4):
    """The index of the request after which the run was given up, and the error; None when it never was."""
    verdicts = Verdicts(URL, "tiny", has_key=False)
    for index, outcome in enumerate(outcomes, start=1):
        error = verdicts.note(record(outcome, "why"), concurrency)
        if error:
            return index, type(error)
    return None


@pytest.mark.parametrize(
    ("outcome", "error"),
    [("connect", Unreachable), ("http_401", Refused), ("http_404", Refused), ("not_streamed", NotOpenai)],
)
def test_three_hopeless_failures_at_the_start_end_the_run(outcome, error):
    """No patience cures a closed port or a wrong key."""
    assert (3, error) == watch(*[outcome] * 10)
    assert watch(*[outcome] * 2) is None


@pytest.mark.parametrize("outcome", ["http_429", "http_503", "timeout", "reset", "empty", "truncated"])
def test_what_may_be_overload_needs_one_more_failure_than_users(outcome):
    """With 4 users, the fifth failure met a server that had already turned everyone away."""
    assert 5 == watch(*[outcome] * 10)[0]
    assert watch(*[outcome] * 4) is None


def test_one_success_makes_failures_a_result():
    """A server that answers some requests is measured to the end."""
    assert watch("ok", *["http_429"] * 50) is None
    assert watch("http_429", "http_429", "ok", *["http_429"] * 50) is None


def test_mixed_failures_are_not_given_up():
    """They are no clear refusal."""
    assert watch(*["http_401", "http_500"] * 20) is None


def test_five_lost_connects_in_a_row_are_a_dead_server():
    """It had answered, so it is not merely unreachable."""
    assert (6, ServerDied) == watch("ok", *["connect"] * LOST_CONNECTS)
    assert watch("ok", *["connect"] * (LOST_CONNECTS - 1), "ok", "connect") is None
    assert (8, ServerDied) == watch("ok", "reset", "truncated", *["connect"] * 5)


def test_a_server_may_die_in_its_first_answer():
    """Nothing was ever ok, but something did answer."""
    verdicts = Verdicts(URL, "tiny", has_key=False)
    verdicts.note(RequestRecord(id=1, phase="warmup", due_s=0.0, outcome="truncated", status=200), 1)

    errors = [verdicts.note(record("connect", "refused"), 1) for _ in range(LOST_CONNECTS)]

    assert [type(None)] * 4 + [ServerDied] == [type(error) for error in errors]


def test_cancelled_requests_say_nothing():
    """They were ended by us."""
    verdicts = Verdicts(URL, "tiny", has_key=False)

    assert [None] * 9 == [verdicts.note(record("cancelled", censored=True), 1) for _ in range(9)]
    assert verdicts.at_stage_end() is None


def test_a_short_stage_is_judged_at_its_end():
    """`-n 1` at a closed port must not end as if all were well."""
    refused, died, fine = (Verdicts(URL, "tiny", has_key=False) for _ in range(3))
    refused.note(record("connect", "refused"), 1)
    for outcome in ("ok", "connect", "connect"):
        died.note(record(outcome, "refused"), 1)
    for outcome in ("ok", "connect"):
        fine.note(record(outcome, "refused"), 1)

    assert isinstance(refused.at_stage_end(), Unreachable)
    assert isinstance(died.at_stage_end(), ServerDied)
    assert fine.at_stage_end() is None
    assert Verdicts(URL, "tiny", has_key=False).at_stage_end() is None


CASES = {
    "unknown, vLLM": ("http_404", "The model `nope` does not exist. Valid aliases: tiny.", UnknownModel),
    "unknown, transformers": ("http_400", "Server is pinned to 'm/tiny'; requested 'nope'.", UnknownModel),
    "unknown, ollama": ("http_404", 'model "nope" not found, try pulling it first', UnknownModel),
    "unknown, OpenAI": ("http_404", "invalid model ID", UnknownModel),
    "no path": ("http_404", "Not Found", Refused),
    "prompt too long": ("http_400", "request (36014 tokens) exceeds the available context size", Refused),
    "key": ("http_401", "Incorrect API key provided.", Refused),
    "limit": ("http_429", "Rate limit reached", Refused),
    "crash": ("http_500", "Internal Server Error", Refused),
    "redirect": ("http_302", None, Refused),
    "https to http": ("connect", "TLS: Cannot connect to host [SSL: WRONG_VERSION_NUMBER]", TlsMismatch),
    "certificate": ("connect", "TLS: certificate verify failed: self-signed", TlsMismatch),
    "http to https": ("bad_stream", "Expected HTTP/: b'\\x15\\x03\\x03\\x00\\x02\\x02F'", TlsMismatch),
    "nginx says https": ("http_400", "400 The plain HTTP request was sent to HTTPS port", TlsMismatch),
    "closed": ("connect", "Connect call failed", Unreachable),
    "silence": ("timeout", "no complete answer within 5 s", Unreachable),
    "page": ("not_streamed", "text/html: <!DOCTYPE html><html>", NotOpenai),
    "one piece": ("not_streamed", 'application/json: {"choices":[]}', NotOpenai),
    "smtp": ("bad_stream", "Bad status line", NotOpenai),
    "empty": ("empty", "no token", NotOpenai),
    "dropped": ("reset", "Server disconnected", NotOpenai),
    "cut off": ("truncated", "ended early", Refused),
    "in band": ("in_band_error", "out of memory", Refused),
}


@pytest.mark.parametrize(("outcome", "text", "kind"), CASES.values(), ids=CASES)
def test_every_refusal_is_explained(outcome, text, kind):
    """What happened with the server's own words, the likely why, and something to do."""
    error = explain(record(outcome, text), URL, "nope", has_key=False)

    assert kind is type(error)
    assert "127.0.0.1:8000" in error.what
    assert error.why.endswith(".") and error.do and not error.do.endswith(".")
    assert 3 == error.exit_code


def test_the_servers_own_words_are_shown():
    """They are the best evidence there is."""
    assert "Rate limit reached" in explain(record("http_429", "Rate limit reached"), URL, "m", False).what
    assert "named 'nope'" in explain(record("http_404", "model not found"), URL, "nope", False).what


def test_a_missing_key_and_a_wrong_key_are_told_apart():
    """The thing to do differs."""
    missing = explain(record("http_401", "no"), URL, "m", has_key=False)
    wrong = explain(record("http_401", "no"), URL, "m", has_key=True)

    assert "none was sent" in missing.why
    assert "not accepted" in wrong.why


def test_advice_names_the_list_of_models():
    """Ready to be typed, with the right prefix."""
    url = "http://host/proxy/v1/chat/completions"

    assert (
        "curl -s http://host/proxy/v1/models"
        in explain(record("http_404", "no such model"), url, "m", False).do
    )


@pytest.mark.parametrize(
    "words", ["Too many open files", "Cannot assign requested address", "(EADDRNOTAVAIL): widen"]
)
def test_what_this_machine_ran_out_of_is_no_sign_of_the_server(words):
    """Forty connects that failed here, after an answer: the server did not die."""
    verdicts = Verdicts(URL, "tiny", has_key=False)
    verdicts.note(record("ok"), 4)

    failed = [record("connect", f"cannot connect to 127.0.0.1:8000: {words}") for _ in range(40)]
    assert [None] * 40 == [verdicts.note(r, 4) for r in failed]
    assert verdicts.at_stage_end() is None
