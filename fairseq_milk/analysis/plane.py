"""The quality-latency plane: one curve per system, the Pareto front and, if known, the limit."""

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .arrays import Matrix, as_lists
from .axis_cut import apply_cut, find_cut
from .drawing import house_style, legend_label, literal
from .labels import Box, Obstacle, Spot, along, around, choose_place
from .looks import display_name, style_of

STAR = "#F0C000"
FONT = 8  # of the labels
MARKER, LIMIT, CAP = 3.5, 9.0, 2.5  # half the sizes of a point, of the star and of the cap of a bar
LINE, BAR = 1.2, 3.0  # cost of a square point of a line, or of an error bar, under a label
ENTRIES = 6  # largest number of columns of the legend
Range = Tuple[float, float]  # from, to


class Point(NamedTuple):
    """One trained system on the plane.  The ranges, of an interval or over seeds, are drawn as error bars."""

    latency: float
    quality: float
    label: str = ""
    latency_range: Optional[Range] = None
    quality_range: Optional[Range] = None


# points by system, in any order: `Point`s, or rows of latency and quality, optionally with the other fields
Curves = Mapping[str, Union[Matrix, Sequence[Sequence[Any]]]]


def as_points(curves: Curves) -> Dict[str, List[Point]]:
    return {name: [_as_point(row, name) for row in rows] for name, rows in curves.items()}


def _as_point(row: Any, name: str) -> Point:
    values = as_lists(row)
    try:
        point = Point(*values)
        fits = math.isfinite(point.latency) and math.isfinite(point.quality) and isinstance(point.label, str)
    except TypeError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: a point is two finite numbers, latency and quality, and maybe a label, got {values}")
    return point


def pareto_front(points: Sequence[Point]) -> List[Point]:
    """The Pareto-optimal points from left to right: no other point is better and as fast, or faster and as good."""

    def beats(a: Point, b: Point) -> bool:
        return a.latency <= b.latency and a.quality >= b.quality and a[:2] != b[:2]

    return sorted((p for p in points if not any(beats(other, p) for other in points)), key=_place)


def quality_latency_plane(
    systems: Curves,
    best: Optional[Point] = None,
    latency_name: str = "DAL (tokens)",
    quality_name: str = "BLEU",
    title: str = "",
    overlay: Optional[Curves] = None,
    size: Tuple[float, float] = (6.8, 4.6),
) -> Figure:
    """Draw one curve per system, and the Pareto front as a grey line of steps.  The legend is below.

        quality_latency_plane({"MILk": [(3.1, 38.2), (5.0, 40.1)], "wait-k": np.array([[3.0, 35.9], [6.1, 40.0]])})

    best: the limit, drawn as a star.  overlay: other curves to compare with, dashed and light, in the colours of the
    systems of the same name.  size: in inches, without the legend.
    """
    systems, overlay = as_points(systems), as_points(overlay or {})
    styles = style_of([*systems, *overlay])
    with house_style():
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
        axes.margins(x=0.1, y=0.08)
        cut = find_cut(_latencies([*systems.values(), *overlay.values()], best))
        if cut is not None:
            apply_cut(axes, cut)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        FigureCanvasAgg(figure)  # which knows the sizes of letters
        if drawn:
            _draw_legend(figure, drawn)
        figure.draw_without_rendering()  # settles the layout
        obstacles = _obstacles(axes, [*systems.values(), *overlay.values()], best)
        spots = [_spot(axes, *_place(p)) for points in (*systems.values(), *overlay.values()) for p in points]
        for name, points in systems.items():
            _place_labels(axes, points, styles[name][0], obstacles, spots)
    return figure


def _latencies(curves: Sequence[Sequence[Point]], best: Optional[Point]) -> List[float]:
    """All values on the horizontal axis."""
    points = [p for points in curves for p in points] + ([] if best is None else [best])
    return [x for p in points for x in (p.latency, *(p.latency_range or ()))]


def _place(point: Point) -> Tuple[float, float]:
    return point.latency, point.quality


def _draw_best(axes: Any, best: Point) -> Any:
    """Draw the star, and the region that no system with full quality can reach."""
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
        label=legend_label(display_name(name)),
        zorder=4,
    )


def _draw_overlay(axes: Any, name: str, points: Sequence[Point], colour: str, marker: str) -> Any:
    places = sorted(map(_place, points))
    (line,) = axes.plot([x for x, _ in places], [y for _, y in places], color=colour, marker=marker, markersize=4.5,
                        markerfacecolor="white", linewidth=1.0, linestyle=(0, (4, 2)), alpha=0.55,
                        label=legend_label(display_name(name)), zorder=3)  # fmt: skip
    return line


def _draw_front(axes: Any, front: Sequence[Point]) -> List[Any]:
    """Draw the front, unless it is a single point."""
    if len(front) < 2:
        return []
    lines: List[Any] = axes.step(*zip(*map(_place, front)), where="post", color="0.72", linewidth=3.0, alpha=0.45,
                                 solid_capstyle="round", label="Pareto front", zorder=2)  # fmt: skip
    return lines


def _draw_legend(figure: Figure, drawn: Sequence[Any]) -> None:
    """Draw the legend below the axes in as few rows as possible; the figure grows by its height."""

    def legend(columns: int) -> Any:
        return figure.legend(handles=drawn, frameon=False, fontsize=9, loc="outside lower center", ncols=columns)

    for rows in range(math.ceil(len(drawn) / ENTRIES), len(drawn) + 1):
        made = legend(math.ceil(len(drawn) / rows))
        size = made.get_window_extent()
        if size.width <= figure.bbox.width or rows == len(drawn):
            figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)
            return
        made.remove()


def _obstacles(axes: Any, curves: Sequence[Sequence[Point]], best: Optional[Point]) -> List[Obstacle]:
    """What labels should not cover: above all the points, then their bars, then the lines between them."""
    found = [] if best is None else _limit_obstacles(axes, best)
    for points in curves:
        spots = [_spot(axes, *_place(p)) for p in sorted(points, key=_place)]
        found += [Obstacle(around(spot, MARKER, MARKER), 12.0) for spot in spots]
        found += [Obstacle(box, BAR) for p in points for box in _bar_boxes(axes, p)]
        found += [Obstacle(box, LINE) for pair in zip(spots, spots[1:]) for box in along(*pair)]
    return found


def _limit_obstacles(axes: Any, best: Point) -> List[Obstacle]:
    """The star, and the line at its latency."""
    (x, bottom), (_, top) = (_spot(axes, best.latency, end) for end in axes.get_ylim())
    star = Obstacle(around(_spot(axes, *_place(best)), LIMIT, LIMIT), 12.0)
    return [star, *(Obstacle(box, LINE) for box in along((x, bottom), (x, top)))]


def _bar_boxes(axes: Any, p: Point) -> List[Box]:
    boxes = []
    if p.latency_range is not None:
        (left, y), (right, _) = (_spot(axes, end, p.quality) for end in p.latency_range)
        boxes.append((left, y - CAP, right, y + CAP))
    if p.quality_range is not None:
        (x, bottom), (_, top) = (_spot(axes, p.latency, end) for end in p.quality_range)
        boxes.append((x - CAP, bottom, x + CAP, top))
    return boxes


def _place_labels(
    axes: Any, points: Sequence[Point], colour: str, obstacles: List[Obstacle], spots: Sequence[Spot]
) -> None:
    """Put each label in the best free place inside the axes; without such a place it is left out.

    spots: all points.  A label that is nearer to another point than to its own gets a line to its own.
    """
    inside = tuple(edge * _points(axes) for edge in axes.get_window_extent().extents)
    for p in points:
        label, spot = literal(p.label), _spot(axes, *_place(p))
        place = choose_place(spot, _extent(axes, label), inside, obstacles, spots) if label.strip() else None
        if place is None:
            continue
        obstacles.append(Obstacle(place.taken, math.inf))
        if place.is_led:
            obstacles += [Obstacle(box, 2.0) for box in along(spot, place.middle)]
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.7, "shrinkA": 0, "shrinkB": MARKER}
        text = axes.annotate(label, _place(p), xytext=(place.box[0] - spot[0], place.box[1] - spot[1]),
                             textcoords="offset points", ha="left", va="bottom", fontsize=FONT, color=colour, zorder=5,
                             arrowprops=leader if place.is_led else None)  # fmt: skip
        text.set_in_layout(False)  # the layout is settled


def _points(axes: Any) -> float:
    """Points of print, the unit of all sizes, per pixel."""
    return 72 / float(axes.figure.dpi)


def _spot(axes: Any, latency: float, quality: float) -> Tuple[float, float]:
    """The position of a point on the page."""
    x, y = axes.transData.transform((latency, quality)) * _points(axes)
    return float(x), float(y)


def _extent(axes: Any, text: str) -> Tuple[float, float]:
    """Width and height of a label."""
    probe = axes.text(0, 0, text, fontsize=FONT)
    box = probe.get_window_extent()
    probe.remove()
    return box.width * _points(axes), box.height * _points(axes)


def _bars(values: Sequence[float], ranges: Sequence[Optional[Range]]) -> Optional[List[List[float]]]:
    """Lengths of the error bars below and above the values; None if there are none."""
    whole = [(value, value) if bounds is None else bounds for value, bounds in zip(values, ranges)]
    below = [max(value - low, 0.0) for value, (low, _) in zip(values, whole)]
    above = [max(high - value, 0.0) for value, (_, high) in zip(values, whole)]
    return [below, above] if any(below + above) else None
