"""Labels of the points on a quality-latency plane."""

from typing import Any, List, Mapping, Optional, Sequence, Tuple

from .drawing import literal
from .labels import SOLID, Box, Obstacle, along, around, choose_places
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
    coloured = [(p, colours[name]) for name, points in systems.items() for p in points]
    coloured += [(p._replace(label=""), "") for points in overlay.values() for p in points]
    _place_labels(axes, coloured, obstacles)


def _obstacles(axes: Any, curves: Sequence[Sequence[Point]], best: Optional[Point]) -> List[Obstacle]:
    """What labels should not cover: above all the points, then their bars, then the lines between them."""
    found = [] if best is None else _limit_obstacles(axes, best)
    for points in curves:
        spots = [_spot(axes, *p.place) for p in sorted(points, key=lambda p: p.place)]
        found += [Obstacle(around(spot, MARKER, MARKER), SOLID) for spot in spots]
        found += [Obstacle(box, BAR) for p in points for box in _bar_boxes(axes, p)]
        found += [Obstacle(box, LINE) for pair in zip(spots, spots[1:]) for box in along(*pair)]
    return found


def _limit_obstacles(axes: Any, best: Point) -> List[Obstacle]:
    """The star, and the line at its latency."""
    (x, bottom), (_, top) = (_spot(axes, best.latency, end) for end in axes.get_ylim())
    star = Obstacle(around(_spot(axes, *best.place), LIMIT, LIMIT), SOLID)
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


def _place_labels(axes: Any, coloured: Sequence[Tuple[Point, str]], obstacles: Sequence[Obstacle]) -> None:
    """Put the labels into free places inside the axes, with a line to the point where it is not clear whose it is."""
    inside = tuple(edge * _points(axes) for edge in axes.get_window_extent().extents)
    labels, spots = [literal(p.label) for p, _ in coloured], [_spot(axes, *p.place) for p, _ in coloured]
    places = choose_places(spots, [_extent(axes, label) for label in labels], inside, obstacles)
    for (p, colour), label, spot, place in zip(coloured, labels, spots, places):
        if place is None:
            continue
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
    """Width and height of a label; 0 if it is empty."""
    if not text.strip():
        return 0.0, 0.0
    probe = axes.text(0, 0, text, fontsize=FONT)
    box = probe.get_window_extent()
    probe.remove()
    return box.width * _points(axes), box.height * _points(axes)
