"""A broken horizontal axis: compresses a wide gap without points, marked by two strokes."""

from typing import Any, NamedTuple, Optional, Sequence

import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator

FEWEST = 6  # fewest values for which an axis is cut
WIDE = 0.4  # smallest share of the range that a gap must have
ALONE = 2.5  # how many times wider it must be than the next gap
LEFT = 0.08  # width of the cut gap, as a share of the rest


class Cut(NamedTuple):
    """From `start` to `end` the axis is compressed to `width`."""

    start: float
    end: float
    width: float

    @property
    def removed(self) -> float:
        return self.end - self.start - self.width

    def forward(self, x: Any) -> np.ndarray:
        """The position of a value on the compressed axis."""
        return np.asarray(x) - self.removed * np.clip((np.asarray(x) - self.start) / (self.end - self.start), 0, 1)

    def inverse(self, u: Any) -> np.ndarray:
        return np.asarray(u) + self.removed * np.clip((np.asarray(u) - self.start) / self.width, 0, 1)


def find_cut(values: Sequence[float]) -> Optional[Cut]:
    """The cut for these values; None if no gap is wide enough."""
    xs = np.unique(values)
    if len(xs) < FEWEST:
        return None
    gaps, span = np.diff(xs), float(xs[-1] - xs[0])
    widest = int(gaps.argmax())
    gap = float(gaps[widest])
    if gap < WIDE * span or gap < ALONE * float(np.delete(gaps, widest).max()):
        return None
    margin = 0.06 * (span - gap)  # room for the points and their bars on both sides
    start, end = float(xs[widest]) + margin, float(xs[widest + 1]) - margin
    return Cut(start, end, LEFT * (span - gap)) if end - start > LEFT * (span - gap) else None


def apply_cut(axes: Any, cut: Cut) -> None:
    """Compress the axis, remove ticks in the gap, and draw the strokes.  Called after everything else is drawn."""
    axes.set_xscale("function", functions=(cut.forward, cut.inverse))
    axes.autoscale_view(scaley=False)  # the margins are shares of what is left
    low, high = axes.get_xlim()
    whole = high - low > 4
    ticks = [*MaxNLocator(6, integer=whole).tick_values(low, cut.start)]
    ticks += [*MaxNLocator(2, integer=whole).tick_values(cut.end, high)]
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if low <= t <= cut.start or cut.end <= t <= high]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(FixedLocator([]))
    for x in (cut.inverse(cut.start + cut.width * share) for share in (0.35, 0.65)):
        axes.plot([float(x)], [0.0], color="black", linestyle="none", marker=[(-1, -2), (1, 2)], markersize=9, zorder=9,
                  clip_on=False, transform=axes.get_xaxis_transform(), scalex=False, scaley=False)  # fmt: skip
