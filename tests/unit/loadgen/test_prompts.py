"""Prompts: reproducible, of the asked length, and never sharing a prefix."""

import itertools

import pytest

from perfdoctor.loadgen.prompts.synthetic import make_prompt


def test_same_seed_and_request_give_the_same_prompt():
    """A run can be repeated word for word."""
    assert make_prompt(0, 1, 48) == make_prompt(0, 1, 48)
    assert make_prompt(0, 1, 48, 7).split()[5:] == make_prompt(0, 1, 48, 8).split()[5:]


@pytest.mark.parametrize(
    ("one", "other"),
    [((0, 1, 200), (0, 2, 200)), ((0, 1, 200), (1, 1, 200)), ((0, 1, 200, 5), (0, 1, 200, 6))],
    ids=["request", "seed", "run"],
)
def test_prompts_share_no_prefix_worth_caching(one, other):
    """Neither within a run nor between runs: the common start is shorter than three words."""
    first, second = make_prompt(*one).split(), make_prompt(*other).split()

    shared = list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))

    assert 3 > len(shared)


@pytest.mark.parametrize("words", [12, 13, 24, 48, 500, 4000])
def test_length_is_as_asked(words):
    """In words; a tokenizer makes about a third more of them."""
    assert [words] * 50 == [len(make_prompt(3, n, words).split()) for n in range(50)]


def test_a_tiny_prompt_is_still_a_question():
    """Below a dozen words only the frame is left."""
    assert 5 <= len(make_prompt(0, 1, 1).split()) <= 20
