"""Requests of `--api http`: what is filled in, and what cannot be."""

import json
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.answer import Answer
from perfdoctor.loadgen.protocols._protocol import Ask, make_protocol
from perfdoctor.loadgen.protocols._template import Values, parse_template
from perfdoctor.model import Target

ASK = Ask("m", (("user", 'say "hi"\n'),), 5, number=3, variables={"city": "Bonn", "n": "7"})


def protocol(seed=0, **target):
    target = Target(api="http", **{"endpoint": "http://localhost:1/x", **target})
    return make_protocol(target, seed, ("city", "n"))


def request(ask=ASK, seed=0, **target):
    return protocol(seed, **target).request(ask, "/ignored")


def fill(text, ask=ASK, seed=0):
    return parse_template(text, ask.variables, "the body").fill(Values(ask, seed))


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("no holes { }", "no holes { }"),
        ("{{id}}/{{ id }}", "3/3"),
        ("{{city}} {{n}}", "Bonn 7"),
        ('{"q":{"p":{{prompt_json}}}}', '{"q":{"p":"say \\"hi\\"\\n"}}'),
        ("{{prompt}}", 'say "hi"\n'),
        ("{{city_json}}", '"Bonn"'),
        ("{{max_tokens}} {{model}}", "5 m"),
        ("{{random(4,4)}}", "4"),
    ],
)
def test_holes_are_filled(text, filled):
    """From the request, the prompt and the row."""
    assert filled == fill(text)


def test_messages_are_a_json_list():
    """So that a whole conversation fits into any chat API."""
    assert [{"role": "user", "content": 'say "hi"\n'}] == json.loads(fill("{{messages}}"))


def test_a_uuid_is_the_same_within_a_request_and_another_in_the_next():
    """As an idempotency key must be."""
    first, again = fill("{{uuid}} {{uuid}}").split()
    other = fill("{{uuid}}", replace(ASK, number=4))

    assert first == again != other
    assert 4 == uuid.UUID(first).version


@given(st.integers(-1000, 1000), st.integers(0, 1000))
def test_random_numbers_are_within_their_ends(low, width):
    """Both included; a fraction gives fractions."""
    assert low <= int(fill(f"{{{{random({low},{low + width})}}}}")) <= low + width
    assert 0.5 <= float(fill("{{random(0.5, 2)}}")) <= 2


def test_a_seed_and_a_number_give_the_same_bytes():
    """A run can be repeated; another seed is another run; each place is drawn anew."""
    text = "{{uuid}} {{random(1,1000000)}} {{random(1,1000000)}}"

    assert fill(text) == fill(text)
    assert len({fill(text), fill(text, seed=1), fill(text, replace(ASK, number=4))}) == 3
    assert len(set(fill(text).split())) == 3


@pytest.mark.parametrize("hole", ["town", "random", "random(1)", "random(a,b)", "", "id()", "json"])
def test_an_unknown_variable_is_named_with_those_that_exist(hole):
    """Before anything is sent."""
    with pytest.raises(UsageError, match="no such variable") as found:
        request(body=f"{{{{{hole}}}}}")

    assert f"{{{{{hole}}}}}" in found.value.what
    assert "city" in found.value.why and "uuid" in found.value.why


@given(st.text(st.sampled_from("{}aid_(,1) "), max_size=30))
def test_any_text_is_a_template_or_a_usage_error(text):
    """And what is no hole stays as it is."""
    try:
        filled = fill(text)
    except UsageError:
        return
    assert "{{" in text or text == filled


@pytest.mark.parametrize(
    ("target", "method", "kind"),
    [
        ({}, "GET", None),
        ({"body": "[1]"}, "POST", "application/json"),
        ({"body": "hi"}, "POST", "text/plain; charset=utf-8"),
        ({"body": "hi", "method": "put"}, "PUT", "text/plain; charset=utf-8"),
        ({"method": "HEAD"}, "HEAD", None),
    ],
)
def test_method_and_type_follow_from_the_body(target, method, kind):
    """Unless they are given."""
    made = request(**target)

    assert (method, kind) == (made.method, protocol(**target).content_type)
    assert (made.body is None) == ("body" not in target)


def test_the_path_has_variables_too_and_they_are_quoted():
    """A blank would end the request line."""
    made = request(
        replace(ASK, variables={"city": "Bad Ems/1", "n": "7"}), endpoint="http://h/a/{{city}}?id={{id}}"
    )

    assert "/a/Bad%20Ems%2F1?id=3" == made.path


def test_headers_have_variables_too_and_stay_on_one_line():
    """A line break from a row would end the header; those without variables are the transport's business."""
    ask = replace(ASK, variables={"city": "Bonn\r\nX-Evil: 1", "n": "7"})
    headers = {"Idempotency-Key": "{{uuid}}", "X-City": "{{city}}", "X-Fixed": "a"}
    made = request(ask, headers=headers)

    assert {"Idempotency-Key", "X-City"} == set(made.headers)
    assert "Bonn X-Evil: 1" == made.headers["X-City"]
    assert ("Idempotency-Key", "X-City") == protocol(headers=headers).fills_headers


@pytest.mark.parametrize(
    "varying", [{"body": "{{id}}"}, {"endpoint": "http://h/{{id}}"}, {"headers": {"X": "{{id}}"}}]
)
def test_requests_without_variables_are_all_the_same(varying):
    """They are made once."""
    assert protocol(body="hi", headers={"X": "a"}).fixed
    assert not protocol(**varying).fixed


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ({"endpoint": "http://{{city}}/x"}, "before its path"),
        ({"method": "GE T"}, "HTTP method"),
        ({"extra_body": {"a": 1}}, "--body-field"),
    ],
)
def test_orders_that_cannot_be_met_are_refused(target, word):
    """With what to do instead."""
    with pytest.raises(UsageError, match=word) as found:
        request(**target)

    assert found.value.do


def test_a_stream_is_timed_by_its_events():
    """Whatever they hold; what holds a connection open is none."""
    read, answer = protocol().read, Answer()
    for at_ns, event in enumerate([b": keepalive", b"hello", b'{"a":1}', b"[DONE]"], start=100):
        read(event, at_ns, answer)

    assert ([101, 102], 101, True) == (answer.token_ns, answer.first_event_ns, answer.done)
