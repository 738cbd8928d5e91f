"""Signals that end a run."""

from __future__ import annotations

import pytest

from perfdoctor.interrupts import BOUNCE_S, Interrupts


class Hand:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_signal_raises():
    """Whatever the process is doing ends there."""
    with pytest.raises(KeyboardInterrupt):
        Interrupts(Hand()).handle()


def test_a_second_signal_at_once_does_not_cut_off_the_clean_up():
    """timeout(1) sends two; after a second an impatient one counts again."""
    hand = Hand()
    interrupts = Interrupts(hand)
    with pytest.raises(KeyboardInterrupt):
        interrupts.handle()

    hand.now += BOUNCE_S - 0.01
    interrupts.handle()

    hand.now += 0.02
    with pytest.raises(KeyboardInterrupt):
        interrupts.handle()


def test_a_shielded_block_ends_first():
    """What came in meanwhile is raised at the end of the outermost shield, once."""
    interrupts, done = Interrupts(Hand()), []

    with pytest.raises(KeyboardInterrupt), interrupts.shield():
        with interrupts.shield():
            interrupts.handle()
            done.append("inner")
        done.append("outer")

    assert ["inner", "outer"] == done
    with interrupts.shield():
        done.append("again")


def test_a_signal_that_was_heeded_elsewhere_counts():
    """The event loop takes the first Ctrl-C of a run; its echo must not cut off the report."""
    hand = Hand()
    interrupts = Interrupts(hand)

    assert interrupts.note()

    with interrupts.shield():
        interrupts.handle()
    interrupts.handle()


def test_a_failing_shielded_block_keeps_its_own_error():
    """The error says more than the interrupt."""
    interrupts = Interrupts(Hand())

    with pytest.raises(ValueError, match="mine"), interrupts.shield():
        interrupts.handle()
        raise ValueError("mine")
