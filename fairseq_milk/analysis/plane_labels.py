"""Labels of the points on a quality-latency plane: near their points, inside the axes, covering as little as possible.

All sizes are in points of print.  A box is (left, bottom, right, top); an obstacle is a box and its cost per square
point that a label covers.
"""

import math
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg

from .drawing import literal
from .points import Point

FONT = 8
RESOLUTIONS = (72, 100, 150)  # of an SVG or PDF, of the screen, and of a PNG: the widths of letters are rounded in each
MARKER, LIMIT, CAP, STEP = 3.5, 9.0, 2.5, 2.0  # half the sizes of a point, the star, a bar's cap and a piece of a line
GAP = 1.5  # between a label and the next or the edge, because the layout moves slightly with the resolution
SIDES = np.array([(1, -1), (1, 1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)])  # of the point, the best first
DISTANCES = np.array([4, 9, 15, 22, 30, 40, 52, 66, 82, 100])
FAR = 12  # distance from which a thin line leads from the label to its point
DOUBT = 1.5  # another point must be this many times further from a label than its own

# Costs of a square point covered; then of a point of distance, of a line to the label across a point or another label,
# of a label that could belong to another point, and of a label without a place
LINE, LEADER, BAR, SOLID, LABEL = 1.2, 2.0, 3.0, 12.0, 1e9
NEAR, CROSSING, AMBIGUOUS, MISSING = 1.2, 60.0, 30.0, 1e5


class Place(NamedTuple):
    """is_led: whether a line leads from the label to its point."""

    box: np.ndarray
    is_led: bool
    cost: float


def label_points(
    axes: Any,
    systems: Mapping[str, Sequence[Point]],
    overlay: Mapping[str, Sequence[Point]],
    best: Optional[Point],
    colours: Mapping[str, str],
) -> None:
    """Label the points of the systems, once everything is drawn and the layout is settled."""

    def on_page(places: Any) -> np.ndarray:
        spots: np.ndarray = axes.transData.transform(np.reshape(places, (-1, 2))) * 72 / axes.figure.dpi
        return spots

    curves = [*systems.values(), *overlay.values()]
    labelled = [(p, colours[name]) for name, points in systems.items() for p in points if p.label.strip()]
    spots, every = on_page([p.place for p, _ in labelled]), on_page([p.place for points in curves for p in points])
    sizes = [_size(axes, literal(p.label)) for p, _ in labelled]
    room = axes.get_window_extent().extents * 72 / axes.figure.dpi + [GAP, GAP, -GAP, -GAP]
    places = _choose_places(spots, sizes, room, _obstacles(on_page, curves, best, axes.get_ylim()), every)
    for (p, colour), spot, place in zip(labelled, spots, places):
        if place is None:
            continue
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.7, "shrinkA": 0, "shrinkB": MARKER}
        text = axes.annotate(literal(p.label), p.place, xytext=place.box[:2] - spot, textcoords="offset points",
                             ha="left", va="bottom", fontsize=FONT, color=colour, zorder=5,
                             arrowprops=leader if place.is_led else None)  # fmt: skip
        text.set_in_layout(False)  # the layout is settled


def _size(axes: Any, label: str) -> np.ndarray:
    """Width and height of a label, the largest over the resolutions."""
    probe = axes.text(0, 0, label, fontsize=FONT)
    sizes = [probe.get_window_extent(RendererAgg(1, 1, dpi), dpi).size * 72 / dpi for dpi in RESOLUTIONS]
    probe.remove()
    largest: np.ndarray = np.max(sizes, axis=0)
    return largest


def _obstacles(
    on_page: Callable[[Any], np.ndarray], curves: Sequence[Sequence[Point]], best: Optional[Point], heights: Any
) -> np.ndarray:
    """What labels should not cover: above all the points, then their bars, then the lines between them."""
    found = [np.zeros((0, 5))]
    if best is not None:  # the star, and the line at its latency
        bottom, top = on_page([(best.latency, height) for height in heights])
        found += [_around(on_page(best.place), LIMIT, SOLID), _along(bottom, top, LINE)]
    for points in curves:
        spots = on_page([p.place for p in sorted(points, key=lambda p: p.place)])
        found += [_around(spots, MARKER, SOLID), *(_along(a, b, LINE) for a, b in zip(spots, spots[1:]))]
        bars = [[(end, p.quality) for end in p.latency_range] for p in points if p.latency_range is not None]
        bars += [[(p.latency, end) for end in p.quality_range] for p in points if p.quality_range is not None]
        found += [np.array([[*(low - CAP), *(high + CAP), BAR]]) for low, high in map(on_page, bars)]
    return np.concatenate(found)


def _around(spots: np.ndarray, half: float, cost: float) -> np.ndarray:
    """Obstacles around these spots."""
    return np.column_stack([spots - half, spots + half, np.full(len(spots), cost)])


def _along(a: np.ndarray, b: np.ndarray, cost: float) -> np.ndarray:
    """Small obstacles that cover the line from a to b."""
    count = max(1, math.ceil(math.dist(a, b) / (2 * STEP)))
    return _around(a + (b - a) * ((np.arange(count) + 0.5) / count)[:, None], STEP, cost)


def _choose_places(
    spots: np.ndarray, sizes: Sequence[np.ndarray], room: np.ndarray, obstacles: np.ndarray, every: np.ndarray
) -> List[Optional[Place]]:
    """Places for the labels of all spots; None for a label without a free place.  every: all points.

    A label keeps the others away, so that the order decides: several are tried, and the cheapest is taken.
    """

    def in_order(order: Sequence[int]) -> List[Optional[Place]]:
        places: List[Optional[Place]] = [None] * len(spots)
        taken = obstacles
        for n in order:
            place = places[n] = _choose_place(spots[n], sizes[n], room, taken, every)
            if place is not None:
                middle = (place.box[:2] + place.box[2:]) / 2
                label = [*(place.box[:2] - GAP), *(place.box[2:] + GAP), LABEL]
                taken = np.vstack([taken, label, *([_along(spots[n], middle, LEADER)] if place.is_led else [])])
        return places

    def total(places: Sequence[Optional[Place]]) -> float:
        return sum(MISSING if place is None else place.cost for place in places)

    given = list(range(len(spots)))
    orders = (given, given[::-1], np.lexsort(spots.T[::-1]).tolist(), np.lexsort(spots.T).tolist())
    return min(map(in_order, orders), key=total)


def _choose_place(
    spot: np.ndarray, size: np.ndarray, room: np.ndarray, obstacles: np.ndarray, every: np.ndarray
) -> Optional[Place]:
    """The cheapest place for a label of this width and height; None if there is none."""
    if np.any(size > room[2:] - room[:2]):
        return None
    corners = (spot + DISTANCES[:, None, None] * SIDES - (1 - SIDES) * size / 2).reshape(-1, 2)
    corners = corners.clip(room[:2], room[2:] - size)  # long labels are shifted along the edge
    boxes = np.hstack([corners, corners + size])
    own, others = _distances(boxes, spot[None]), _distances(boxes, every[np.any(every != spot, axis=1)])
    is_ambiguous = np.any(others <= np.maximum(DOUBT * own, own + 2), axis=1)
    is_led = is_ambiguous | (own[:, 0] > FAR)
    costs = NEAR * own[:, 0] + AMBIGUOUS * is_ambiguous
    costs += _covered(boxes, obstacles) + CROSSING * is_led * _crossed(spot, boxes, obstacles)
    best = costs.argmin()
    return Place(boxes[best], bool(is_led[best]), float(costs[best])) if costs[best] < MISSING else None


def _distances(boxes: np.ndarray, spots: np.ndarray) -> np.ndarray:
    """(boxes, spots): from a spot to the edge of a box, the longer of right and up; 0 inside."""
    outside = np.maximum(boxes[:, None, :2] - spots, spots - boxes[:, None, 2:4])
    distances: np.ndarray = outside.max(axis=-1).clip(min=0)
    return distances


def _covered(boxes: np.ndarray, obstacles: np.ndarray) -> np.ndarray:
    """For each box, the cost of the obstacles that it covers."""
    sides = np.minimum(boxes[:, None, 2:], obstacles[:, 2:4]) - np.maximum(boxes[:, None, :2], obstacles[:, :2])
    costs: np.ndarray = sides.clip(min=0).prod(axis=-1) @ obstacles[:, 4]
    return costs


def _crossed(spot: np.ndarray, boxes: np.ndarray, obstacles: np.ndarray) -> np.ndarray:
    """For each box, how many labels and points are on the line from the spot to its middle."""
    solid = obstacles[(obstacles[:, 4] >= SOLID) & (_distances(obstacles, spot[None])[:, 0] > 0)]
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    lines = spot + (middles - spot) * np.linspace(0, 1, 24)[:, None, None]  # (24, boxes, 2)
    hits = _distances(solid, lines.reshape(-1, 2)).reshape(len(solid), 24, len(boxes)) == 0
    crossed: np.ndarray = hits.any(axis=1).sum(axis=0)
    return crossed
