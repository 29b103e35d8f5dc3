"""Labels of the points on a quality-latency plane."""

import math
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from .drawing import literal
from .labels import Box, Obstacle, Spot, along, around, choose_place
from .points import Point

FONT = 8  # of the labels
MARKER, LIMIT, CAP = 3.5, 9.0, 2.5  # half the sizes of a point, of the star and of the cap of a bar
LINE, BAR = 1.2, 3.0  # cost of a square point of a line, or of an error bar, under a label


def label_points(
    axes: Any,
    systems: Mapping[str, Sequence[Point]],
    overlay: Mapping[str, Sequence[Point]],
    best: Optional[Point],
    colours: Mapping[str, str],
) -> None:
    """Label the points of the systems, once everything is drawn and the layout is settled."""
    curves = [*systems.values(), *overlay.values()]
    obstacles = _obstacles(axes, curves, best)
    spots = [_spot(axes, *p.place) for points in curves for p in points]
    for name, points in systems.items():
        _place_labels(axes, points, colours[name], obstacles, spots)


def _obstacles(axes: Any, curves: Sequence[Sequence[Point]], best: Optional[Point]) -> List[Obstacle]:
    """What labels should not cover: above all the points, then their bars, then the lines between them."""
    found = [] if best is None else _limit_obstacles(axes, best)
    for points in curves:
        spots = [_spot(axes, *p.place) for p in sorted(points, key=lambda p: p.place)]
        found += [Obstacle(around(spot, MARKER, MARKER), 12.0) for spot in spots]
        found += [Obstacle(box, BAR) for p in points for box in _bar_boxes(axes, p)]
        found += [Obstacle(box, LINE) for pair in zip(spots, spots[1:]) for box in along(*pair)]
    return found


def _limit_obstacles(axes: Any, best: Point) -> List[Obstacle]:
    """The star, and the line at its latency."""
    (x, bottom), (_, top) = (_spot(axes, best.latency, end) for end in axes.get_ylim())
    star = Obstacle(around(_spot(axes, *best.place), LIMIT, LIMIT), 12.0)
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
        label, spot = literal(p.label), _spot(axes, *p.place)
        place = choose_place(spot, _extent(axes, label), inside, obstacles, spots) if label.strip() else None
        if place is None:
            continue
        obstacles.append(Obstacle(place.taken, math.inf))
        if place.is_led:
            obstacles += [Obstacle(box, 2.0) for box in along(spot, place.middle)]
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.7, "shrinkA": 0, "shrinkB": MARKER}
        text = axes.annotate(label, p.place, xytext=(place.box[0] - spot[0], place.box[1] - spot[1]),
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
