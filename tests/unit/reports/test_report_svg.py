"""Scales, ticks, paths and elements of the drawings."""

from __future__ import annotations

import pytest

from perfdoctor.reports import _svg


def test_scale_maps_both_ends_and_the_middle():
    """A linear map, also onto an axis that runs downwards."""
    scale = _svg.Scale(0, 10, 100, 0)

    assert (100, 50, 0) == (scale(0), scale(5), scale(10))


def test_scale_of_an_empty_domain_does_not_divide_by_zero():
    """One single value maps to the start."""
    assert 7 == _svg.Scale(3, 3, 7, 90)(3)


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 10, 6, (0, 2, 4, 6, 8, 10)),
        (0, 0.3, 4, (0, 0.1, 0.2, 0.3)),
        (12, 28, 5, (15, 20, 25)),
        (0, 1, 2, (0, 1)),
        (5, 5, 6, (5,)),
        (0, float("inf"), 6, (0,)),
    ],
)
def test_ticks_are_round_and_inside(low, high, most, expected):
    """Multiples of 1, 2 or 5 times a power of ten; one tick where there is no range."""
    assert expected == pytest.approx(_svg.ticks(low, high, most))


@pytest.mark.parametrize("high", [1e-7, 0.013, 1.0, 7.3, 99.9, 12345.0])
@pytest.mark.parametrize("most", [2, 4, 10])
def test_ticks_are_never_more_than_asked(high, most):
    """Labels must not overlap, whatever the range."""
    assert 1 <= len(_svg.ticks(0, high, most)) <= most


@pytest.mark.parametrize(("value", "expected"), [(0, 1), (-3, 1), (1, 1), (3, 5), (2.3, 2.5), (710, 1000)])
def test_round_up_ends_an_axis_at_or_above_the_value(value, expected):
    """A chart of nothing gets an axis too."""
    assert expected == _svg.round_up(value)


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (1.26, "1.3"), (-0.01, "0"), (100, "100")])
def test_pixels_are_short(value, text):
    """Bytes count in a drawing of thousands of boxes."""
    assert text == _svg.pixel(value)


def test_path_lifts_the_pen_at_a_missing_value():
    """A hole is a hole: no line across it."""
    assert "M0 1L1 2M3 4" == _svg.path([(0, 1), (1, 2), (2, None), (3, 4)])


def test_elements_escape_attributes_and_text():
    """A model's name cannot leave its attribute or open an element."""
    made = _svg.element("g", _svg.title("<b>&"), aria_label='"><script>')

    assert '<g aria-label="&quot;&gt;&lt;script&gt;"><title>&lt;b&gt;&amp;</title></g>' == made


def test_picture_names_itself():
    """A drawing is an image with a description, for those who cannot see it."""
    made = _svg.picture(10, 20, "two lines", ["<g/>"])

    assert 'role="img"' in made
    assert 'aria-label="two lines"' in made
    assert "<title>two lines</title>" in made
