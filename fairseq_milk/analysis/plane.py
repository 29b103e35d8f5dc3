"""The quality-latency plane: one curve a system, the Pareto front and, where it is known, the limit."""

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import matplotlib
from matplotlib.figure import Figure

from .drawing import legend_label, literal, style, style_of, text_width, visible

STAR = "#F0C000"
FONT = 8  # of the labels
CORNERS = ((4, -4), (4, 4), (-4, 4), (-4, -4), (4, -14), (-4, -14), (4, 14), (-4, 14))  # from the point, in order
Box = Tuple[float, float, float, float]  # left, bottom, right, top
Range = Tuple[float, float]  # from, to


class Point(NamedTuple):
    """One trained system on the plane.  The ranges, of an interval or of several seeds, become error bars."""

    latency: float
    quality: float
    label: str = ""
    latency_range: Optional[Range] = None
    quality_range: Optional[Range] = None


Curves = Mapping[str, Sequence[Point]]  # system -> its points, in any order


def pareto_front(points: Sequence[Point]) -> List[Point]:
    """From left to right, the points that no other beats by being as fast and better, or as good and faster."""

    def beats(a: Point, b: Point) -> bool:
        return a.latency <= b.latency and a.quality >= b.quality and a[:2] != b[:2]

    return sorted((p for p in points if not any(beats(other, p) for other in points)), key=_place)


def quality_latency_plane(
    systems: Curves,
    best: Optional[Point] = None,
    latency_name: str = "DAL (tokens)",
    quality_name: str = "BLEU",
    title: str = "",
    quality_from: Optional[float] = None,
    overlay: Optional[Curves] = None,
    size: Tuple[float, float] = (6.8, 4.6),
) -> Figure:
    """The points of a system are joined from left to right, those that nothing beats by a grey line of steps.

    best: the limit, drawn as a star.  quality_from: where the vertical axis begins; points below it are not shown.
    overlay: curves of others to compare with, dashed and light, in the colours of the systems of the same name.
    size: in inches.
    """
    overlay = overlay or {}
    styles = style_of([*systems, *overlay])
    with matplotlib.rc_context(style()):
        figure = Figure(figsize=size, layout="constrained")
        axes: Any = figure.add_subplot()
        drawn = [] if best is None else [_draw_best(axes, best)]
        drawn += [_draw_system(axes, name, points, *styles[name]) for name, points in systems.items()]
        drawn += [_draw_overlay(axes, name, points, *styles[name]) for name, points in overlay.items()]
        drawn += _draw_front(axes, pareto_front([p for points in systems.values() for p in points]))
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
        _place_labels(axes, systems, overlay, {name: colour for name, (colour, _) in styles.items()})
        if drawn:
            axes.legend(handles=drawn, frameon=False, fontsize=9, loc="best")
    return figure


def _place(point: Point) -> Tuple[float, float]:
    return point.latency, point.quality


def _draw_best(axes: Any, best: Point) -> Any:
    """The star, and the region that no system can enter with full quality."""
    axes.axvline(best.latency, color="0.6", linewidth=0.9, linestyle=(0, (2, 3)), zorder=1)
    return axes.plot([best.latency], [best.quality], "*", color=STAR, markeredgecolor="black", markersize=17,
                     label=legend_label(best.label) or "best possible", zorder=6, clip_on=False)[0]  # fmt: skip


def _draw_system(axes: Any, name: str, points: Sequence[Point], colour: str, marker: str) -> Any:
    points = sorted(points, key=_place)
    return axes.errorbar(
        [p.latency for p in points],
        [p.quality for p in points],
        xerr=_bars([p.latency for p in points], [p.latency_range for p in points]),
        yerr=_bars([p.quality for p in points], [p.quality_range for p in points]),
        color=colour,
        marker=marker,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.5,
        elinewidth=0.9,
        capsize=2,
        label=legend_label(name),
        zorder=4,
    )


def _draw_overlay(axes: Any, name: str, points: Sequence[Point], colour: str, marker: str) -> Any:
    places = sorted(map(_place, points))
    (line,) = axes.plot([x for x, _ in places], [y for _, y in places], color=colour, marker=marker, markersize=4.5,
                        markerfacecolor="white", linewidth=1.0, linestyle=(0, (4, 2)), alpha=0.55,
                        label=legend_label(name), zorder=3)  # fmt: skip
    return line


def _draw_front(axes: Any, front: Sequence[Point]) -> List[Any]:
    """Nothing for a single point."""
    if len(front) < 2:
        return []
    lines: List[Any] = axes.step(*zip(*map(_place, front)), where="post", color="0.72", linewidth=3.0, alpha=0.45,
                                 solid_capstyle="round", label="Pareto front", zorder=2)  # fmt: skip
    return lines


def _place_labels(axes: Any, systems: Curves, overlay: Curves, colours: Mapping[str, str]) -> None:
    """Each label at the first corner of its point where it hides neither another label nor a point, if there is one."""
    axes.get_xlim(), axes.get_ylim()  # settles the scales
    scale = 72 / axes.figure.dpi
    every = [p for points in (*systems.values(), *overlay.values()) for p in points]
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in _positions(axes, every, scale)]
    for name, points in systems.items():
        for p, (x, y) in zip(points, _positions(axes, points, scale)):
            width = 0.62 * FONT * text_width(visible(p.label))
            boxes = [_box(x, y, width, dx, dy) for dx, dy in CORNERS]
            free = [n for n, box in enumerate(boxes) if not any(_overlap(box, other) for other in taken)]
            if not free:
                continue
            taken.append(boxes[free[0]])
            dx, dy = CORNERS[free[0]]
            axes.annotate(literal(p.label), (p.latency, p.quality), xytext=(dx, dy), textcoords="offset points",
                          ha="left" if dx > 0 else "right", va="bottom" if dy > 0 else "top", fontsize=FONT,
                          color=colours[name], zorder=5, annotation_clip=True)  # fmt: skip


def _positions(axes: Any, points: Sequence[Point], scale: float) -> List[Tuple[float, float]]:
    """On the page, in points of print."""
    return [tuple(axes.transData.transform((p.latency, p.quality)) * scale) for p in points]


def _box(x: float, y: float, width: float, dx: float, dy: float) -> Box:
    left = x + dx if dx > 0 else x + dx - width
    bottom = y + dy if dy > 0 else y + dy - FONT
    return left, bottom, left + width, bottom + FONT


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _bars(values: Sequence[float], ranges: Sequence[Optional[Range]]) -> Optional[List[List[float]]]:
    """Lengths of the error bars below and above the values; None if there are none."""
    whole = [(value, value) if bounds is None else bounds for value, bounds in zip(values, ranges)]
    below = [max(value - low, 0.0) for value, (low, _) in zip(values, whole)]
    above = [max(high - value, 0.0) for value, (_, high) in zip(values, whole)]
    return [below, above] if any(below + above) else None
