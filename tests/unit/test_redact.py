"""What must not be written, and what must stay readable beside it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from perfdoctor import store
from perfdoctor.model import RequestRecord, RunFacts, Sample, Scenario, Target
from perfdoctor.redact import Redactor, has_key_in_query, header_secrets, masked_arguments, url_secrets

KEY = "sk-live-0123456789abcdef"


@pytest.mark.parametrize("echo", [KEY, f"Bearer {KEY}", base64.b64encode(KEY.encode()).decode()])
def test_a_key_is_masked_in_each_form(echo: str):
    """Servers repeat keys as they came, with their scheme, or encoded."""
    text = Redactor([KEY]).clean(f"no such key: {echo}!")

    assert KEY not in text
    assert echo not in text
    assert "no such key: " in text


def test_the_key_inside_an_authorization_header_is_a_secret_of_its_own():
    """A refusal often repeats it without the word Bearer."""
    found = header_secrets({"Authorization": f"Bearer {KEY}", "Cookie": "a=1; session=0123456789"})

    assert KEY in found
    assert "0123456789" in found
    assert "Bearer" not in found


@pytest.mark.parametrize(("value", "secret"), [("blue", False), ("seven77", False), ("eight888", True)])
def test_short_values_of_plain_headers_are_no_secrets(value: str, secret: bool):
    """`X-Tenant: blue` must not mask every `blue` of a run."""
    assert secret == bool(header_secrets({"X-Tenant": value}))


def test_header_values_are_masked_in_the_command_line():
    """Whatever they are, in both spellings of the flag; other words stay."""
    given = ["load-test", "--header", "X-A: secret", "--header=X-B: other", "--endpoint", "http://h:1"]

    expected = ("load-test", "--header", "X-A: [redacted]", "--header=X-B: [redacted]", *given[4:])
    assert expected == masked_arguments(given)


@pytest.mark.parametrize(
    "key", ["chat", "true", "complete", "steady", "1234", "null", "0.25", "schema", "disk"]
)
def test_a_key_that_is_one_of_our_words_leaves_the_run_readable(tmp_path: Path, key: str):
    """Masking works on texts, never on names, numbers or the words that records are made of."""
    scenario = Scenario(target=Target(model=f"m {key} x"))
    request = RequestRecord(id=1234, phase="steady", due_s=0.25, reused=True, error=f"bad key {key}!")
    sample = Sample(at_s=1234.25, probe="disk", values={"schema": 0.25}, why=f"saw {key}")

    writer = store.create_run(RunFacts(scenario=scenario), tmp_path / "run", [key])
    writer.append_request(request)
    writer.append_sample(sample)
    writer.log(f"log {key} end")
    writer.seal(state="complete")

    run = store.open_run(tmp_path / "run")
    (read,), (sampled,) = run.read_requests(), run.read_samples()
    assert (1234, 0.25, True, "steady") == (read.id, read.due_s, read.reused, read.phase)
    assert ("disk", {"schema": 0.25}) == (sampled.probe, sampled.values)
    assert "m [redacted] x" == run.facts.scenario.target.model
    assert ("bad key [redacted]!", "saw [redacted]") == (read.error, sampled.why)
    assert "log [redacted] end" in (tmp_path / "run" / "log.txt").read_text()


@pytest.mark.parametrize(
    "name", ["api_key", "apikey", "key", "Token", "access-token", "X-Amz-Signature", "sessionid"]
)
def test_a_member_of_a_query_that_is_a_key_by_its_name(name: str):
    """Refused by those who look, and masked if it got through; a template's hole is filled with no secret."""
    assert has_key_in_query(f"http://h/?n=1&{name}=abcd")
    assert ("abcd",) == url_secrets(f"http://h/?n=1&{name}=abcd")
    assert not has_key_in_query(f"http://h/?{name}={{{{id}}}}")


@pytest.mark.parametrize("name", ["q", "keyword", "max_tokens", "author", "passage", "monkey"])
def test_other_members_of_a_query_stay_readable(name: str):
    """Or a run could not be repeated from its own scenario; but what looks like a key is masked."""
    assert not has_key_in_query(f"http://h/?{name}=steady")
    assert () == url_secrets(f"http://h/?{name}=steady&page={{{{id}}}}")
    assert ("sk-0123456789abcdefghij",) == url_secrets(f"http://h/?{name}=sk-0123456789abcdefghij")
