"""Where answers part, however a server cuts them into chunks."""

from __future__ import annotations

import pytest

from perfdoctor.verify._ask import Asked, compare, first_difference


@pytest.mark.parametrize(
    ("one", "other", "at"),
    [
        (("a", "b"), ("a", "b"), None),
        (("a", "b"), ("ab",), None),  # the same text in fewer chunks
        ((), (), None),
        (("a", "b", "c"), ("a", "x", "c"), 1),
        (("a", "bc"), ("a", "bd"), 1),
        (("a", "b"), ("a",), 1),  # it ends early
        (("a",), ("a", "b"), 1),  # it goes on
        ((), ("a",), 0),
        (("x",), (), 0),
    ],
)
def test_the_first_chunk_that_differs(one, other, at):
    """By the chunks of the before side."""
    assert at == first_difference(one, other)


def asked(apart, together=None) -> Asked:
    split = tuple(tuple(text.split(" ")) for text in apart)
    return Asked(
        split, split if together is None else tuple(tuple(t.split(" ")) for t in together), 32, 1.0, 0.5
    )


def test_equal_answers():
    """Nothing differs."""
    found = compare(asked(["a b", "c d"]), asked(["a b", "c d"]))

    assert (2, 0, None, 0, 0) == (
        found.prompts,
        found.differ,
        found.first,
        found.differ_together,
        found.unsteady,
    )


def test_the_earliest_difference_counts():
    """Of two answers that differ, at token 2 and at token 1."""
    found = compare(asked(["a b c", "a b c", "a b c"]), asked(["a b x", "a x c", "a b c"]))

    assert (2, 1) == (found.differ, found.first)


def test_a_mixed_up_batch_is_told_apart():
    """Asked one by one all is well; asked together one caller gets another's answer."""
    found = compare(asked(["a b", "c d"]), asked(["a b", "c d"], together=["a b", "a b"]))

    assert (0, 1) == (found.differ, found.differ_together)


def test_what_the_before_side_does_not_repeat_says_nothing():
    """The fix is not blamed for an answer that is another each time anyway."""
    found = compare(asked(["a b", "c d"], together=["a x", "c d"]), asked(["a y", "c d"]))

    assert (1, 0, None) == (found.unsteady, found.differ, found.missing)
    assert compare(asked(["a"], together=["b"]), asked(["c"])).missing
