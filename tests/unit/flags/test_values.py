"""Texts of flags and their values."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdoctor.errors import UsageError
from perfdoctor.flags import values


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("5/s", 5.0),
        ("300/min", 5.0),
        ("18000/h", 5.0),
        ("2.5", 2.5),
        ("1 per s", 1.0),
        (".5/s", 0.5),
        ("30/m", 0.5),
    ],
)
def test_a_rate_is_a_second(text: str, rate: float):
    """Whatever time it is given for."""
    assert rate == values.rate(text)


@pytest.mark.parametrize("text", ["", "0", "-1/s", "5/day", "s", "1e9/s", "nan", "inf/s", "5 s"])
def test_no_rate(text: str):
    """Refused with an example."""
    with pytest.raises(UsageError, match="is no rate"):
        values.rate(text)


@pytest.mark.parametrize(
    ("text", "share"), [("10%", 0.1), ("0.1", 0.1), ("0", 0.0), ("100 %", 1.0), ("0.5%", 0.005)]
)
def test_a_share(text: str, share: float):
    """As percent or as a number below one."""
    assert pytest.approx(share) == values.share(text)


@pytest.mark.parametrize("text", ["10", "-1%", "101%", "nan", "%", ""])
def test_no_share(text: str):
    """A bare 10 may mean either, so it is neither."""
    with pytest.raises(UsageError, match="is no share"):
        values.share(text)


def test_a_straight_ramp():
    """From one rate to another, over a time."""
    assert ((0.0, 1.0), (30.0, 20.0)) == values.ramp("1/s:20/s:30s")
    assert ((0.0, 10.0), (120.0, 0.5)) == values.ramp("10:30/min:2m")


def test_a_ramp_of_steps():
    """Level for a time, then the next at once: two corners at the same instant."""
    assert ((0.0, 1.0), (10.0, 1.0), (10.0, 5.0), (25.0, 5.0)) == values.ramp("1/s@10s,5/s@15s")


@pytest.mark.parametrize(
    "text", ["", "1/s", "1/s:2/s", "1/s:2/s:3s:4s", "1/s@10s,5/s", "1/s@", ":::", "a:b:c"]
)
def test_no_ramp(text: str):
    """Refused before anything is sent."""
    with pytest.raises(UsageError):
        values.ramp(text)


def test_members_of_a_body_are_json_or_texts():
    """Numbers, lists and null keep their kind; what is no JSON is a text."""
    lines = ["top_k=5", 'stop=["a"]', "user=me", "seed=null", "note=a=b", 'name="5"']

    assert {
        "top_k": 5,
        "stop": ["a"],
        "user": "me",
        "seed": None,
        "note": "a=b",
        "name": "5",
    } == values.body_fields(lines)


def test_a_body_is_taken_from_its_file_only(tmp_path: Path):
    """An @ in front of a name means nothing; what is sent with every request is no film."""
    (tmp_path / "body").write_bytes(b"x" * (16 * 2**20 + 1))

    with pytest.raises(UsageError, match="larger than 16 MiB"):
        values.body_file(f"{tmp_path}/body")
    with pytest.raises(UsageError, match="cannot be read"):
        values.body_file(f"@{tmp_path}/body")


def test_a_pause_may_be_none_at_all():
    """No drain, no warm-up and no ramp-up are loads too; a limit of nothing is none."""
    assert (0.0, 0.5) == (values.seconds_or_zero("0s"), values.seconds_or_zero("500ms"))
    for refused in ("-1s", "9999999h"):
        with pytest.raises(UsageError):
            values.seconds_or_zero(refused)
    with pytest.raises(UsageError, match="no usable length"):
        values.seconds("0s")
