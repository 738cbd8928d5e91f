"""Lengths: what is understood, and what is drawn."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdoctor.errors import UsageError
from perfdoctor.loadgen.lengths import LONGEST, Lengths, parse_lengths


def drawn(text, n=2000, seed=0):
    rng = random.Random(seed)
    return [parse_lengths(text, "--prompt-tokens").draw(rng) for _ in range(n)]


@pytest.mark.parametrize("text", [48, "48", " 48 "])
def test_a_number_is_the_same_each_time(text):
    """The usual case."""
    assert {48} == set(drawn(text))


def test_uniform_includes_its_ends():
    """Nothing outside."""
    assert set(range(3, 7)) == set(drawn("uniform(3,6)"))


def test_normal_has_its_mean_and_spread():
    """And never less than one token."""
    lengths = drawn("normal( 480 , 60.5 )")

    assert 476 < statistics.mean(lengths) < 484
    assert 57 < statistics.stdev(lengths) < 64
    assert 1 == min(drawn("normal(2,5)"))


def test_lognormal_has_its_median_and_a_long_tail():
    """Half are shorter; the mean is above."""
    lengths = drawn("lognormal(48,0.6)")

    assert 46 < statistics.median(lengths) < 50
    assert statistics.mean(lengths) > 52
    assert LONGEST >= max(drawn("lognormal(9000000,3)"))


def test_a_seed_gives_the_same_lengths():
    """A run can be repeated."""
    assert drawn("normal(48,12)", seed=3) == drawn("normal(48,12)", seed=3) != drawn("normal(48,12)", seed=4)


@pytest.mark.parametrize(
    "text",
    [
        0, -1, LONGEST + 1, "", "abc", "4.5", "1e3", "48 tokens", "²", "uniform(32)", "uniform(96,32)",
        "uniform(0,5)", "uniform(1.5,3)", "normal(a,b)", "normal(48,-1)", "normal(nan,1)", "normal(48,inf)",
        "normal(inf,1)", "lognormal(48,4)", "lognormal(0,1)", "zipf(1,2)",
        "uniform(1,2,3)", "uniform(1,2) ms", "UNIFORM(1,2)", "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_length_is_refused_with_an_example(text):
    """The flag is named."""
    with pytest.raises(UsageError, match="--prompt-tokens") as found:
        parse_lengths(text, "--prompt-tokens")

    assert "uniform(32,96)" in found.value.do


@given(st.one_of(st.text(max_size=30), st.from_regex(r"(uniform|normal|lognormal)\([0-9.e,+-]*\)")))
def test_any_text_is_lengths_or_a_usage_error(text):
    """Nothing else reaches the user, and every length can be asked for."""
    try:
        lengths = parse_lengths(text, "--prompt-tokens")
    except UsageError:
        return
    assert isinstance(lengths, Lengths)
    assert 1 <= lengths.draw(random.Random(0)) <= LONGEST
