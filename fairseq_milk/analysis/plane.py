"""The quality-latency plane: one curve a system, and, where it is known, the best that is possible."""

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import matplotlib
from matplotlib.figure import Figure

from .drawing import AMBER, BLACK, BLUE, GREEN, ORANGE, PINK, SKY, literal, style

# Markers tell the systems apart in print
STYLES: List[Tuple[str, str]] = [
    (BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (PINK, "D"), (AMBER, "v"), (SKY, "P"), (BLACK, "X"),
]  # fmt: skip
STAR = "#F0C000"
FONT = 8  # of the labels
CORNERS = ((4, -4), (4, 4), (-4, 4), (-4, -4), (4, -14), (-4, -14), (4, 14), (-4, 14))  # from the point, in order
Box = Tuple[float, float, float, float]  # left, bottom, right, top


class Point(NamedTuple):
    """One trained system on the plane.  The errors are half widths of an interval."""

    latency: float
    quality: float
    label: str = ""
    latency_error: float = 0.0
    quality_error: float = 0.0


def quality_latency_plane(
    systems: Mapping[str, Sequence[Point]],
    best: Optional[Point] = None,
    latency_name: str = "DAL (tokens)",
    quality_name: str = "BLEU",
    title: str = "",
    quality_from: Optional[float] = None,
) -> Figure:
    """systems: name -> its points, joined from left to right.  best: the limit, drawn as a star.

    quality_from: where the vertical axis begins; points below it are not shown.
    """
    with matplotlib.rc_context(style()):
        figure = Figure(figsize=(6.8, 4.6), layout="constrained")
        axes: Any = figure.add_subplot()
        if best is not None:
            _draw_best(axes, best)
        for index, (name, points) in enumerate(systems.items()):
            _draw_system(axes, name, sorted(points), *STYLES[index % len(STYLES)])
        axes.set_xlabel(literal(latency_name))
        axes.set_ylabel(literal(quality_name))
        if title:
            axes.set_title(literal(title), fontsize=11)
        if quality_from is not None:
            axes.set_ylim(bottom=quality_from)
        axes.margins(x=0.1, y=0.08)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        _place_labels(axes, systems)
        if systems or best is not None:
            axes.legend(frameon=False, fontsize=9, loc="best")
    return figure


def _draw_best(axes: Any, best: Point) -> None:
    """The star, and the region that no system can enter with full quality."""
    axes.axvline(best.latency, color="0.6", linewidth=0.9, linestyle=(0, (2, 3)), zorder=1)
    axes.plot([best.latency], [best.quality], "*", color=STAR, markeredgecolor="black", markersize=17, linestyle="",
              label=literal(best.label) or "best possible", zorder=6, clip_on=False)  # fmt: skip


def _draw_system(axes: Any, name: str, points: Sequence[Point], colour: str, marker: str) -> None:
    axes.errorbar(
        [p.latency for p in points],
        [p.quality for p in points],
        xerr=_errors([p.latency_error for p in points]),
        yerr=_errors([p.quality_error for p in points]),
        color=colour,
        marker=marker,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.5,
        elinewidth=0.9,
        capsize=2,
        label=literal(name),
        zorder=4,
    )


def _place_labels(axes: Any, systems: Mapping[str, Sequence[Point]]) -> None:
    """Each label at the first corner of its point where it hides neither another label nor a point."""
    axes.get_xlim(), axes.get_ylim()  # settles the scales
    scale = 72 / axes.figure.dpi
    every = [p for points in systems.values() for p in points]
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in _positions(axes, every, scale)]
    for index, points in enumerate(systems.values()):
        for p, (x, y) in zip(points, _positions(axes, points, scale)):
            boxes = [_box(x, y, 0.62 * FONT * len(p.label), dx, dy) for dx, dy in CORNERS]
            free = [n for n, box in enumerate(boxes) if not any(_overlap(box, other) for other in taken)]
            corner = free[0] if free else 0
            taken.append(boxes[corner])
            dx, dy = CORNERS[corner]
            axes.annotate(literal(p.label), (p.latency, p.quality), xytext=(dx, dy), textcoords="offset points",
                          ha="left" if dx > 0 else "right", va="bottom" if dy > 0 else "top", fontsize=FONT,
                          color=STYLES[index % len(STYLES)][0], zorder=5, annotation_clip=True)  # fmt: skip


def _positions(axes: Any, points: Sequence[Point], scale: float) -> List[Tuple[float, float]]:
    """On the page, in points of print."""
    return [tuple(axes.transData.transform((p.latency, p.quality)) * scale) for p in points]


def _box(x: float, y: float, width: float, dx: float, dy: float) -> Box:
    left = x + dx if dx > 0 else x + dx - width
    bottom = y + dy if dy > 0 else y + dy - FONT
    return left, bottom, left + width, bottom + FONT


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _errors(values: List[float]) -> Optional[List[float]]:
    return values if any(values) else None
