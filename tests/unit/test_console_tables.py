"""Figures with the bounds of an interval, as tables show them."""

import math

from fairseq_milk.console.tables import bounds, difference_with_bounds, with_bounds


def test_figures_with_bounds() -> None:
    assert bounds(29.1, 31.256) == "[29.10, 31.26]" and bounds(29.1, 31.256, places=1) == "[29.1, 31.3]"
    assert with_bounds(30.0, 29.1, 31.256, places=1) == "30.0 (29.1–31.3)"
    assert with_bounds(0.5, math.nan, math.nan) == "0.50 (nan–nan)"
    assert difference_with_bounds(0.0, -0.126, 1.1) == "+0.00 (-0.13 to +1.10)"
