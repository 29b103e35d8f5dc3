"""Places the label of a point: near it, inside the axes, not on another label, and covering as little as possible."""

import math
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

Spot = Tuple[float, float]
Box = Tuple[float, float, float, float]  # left, bottom, right, top
SIDES = ((1, -1), (1, 1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))  # sides of the point, the best first
DISTANCES = (4, 9, 15, 22, 30, 40, 52, 66, 82, 100)
GAP = 1.5  # between a label and the next or the edge, because letters move slightly with the resolution
FAR = 12  # distance from which a thin line leads from the label to its point
SOLID = 12.0  # smallest weight of what a leading line should not cross: points and labels
DOUBT = 1.5  # another point must be this many times further from a label than its own

# Costs, in square points covered: per point of distance, of a line across a label or point, and of a label that could
# belong to another point
NEAR, CROSSING, AMBIGUOUS = 1.2, 60.0, 30.0
LEADER = 2.0  # of a square point of a leading line under a label
MISSING = 1e5  # of a label without a place


class Obstacle(NamedTuple):
    """What a label should not cover.  weight: the cost of covering a square point; infinite if forbidden."""

    box: Box
    weight: float


class LabelPosition(NamedTuple):
    """distance: from the point.  is_ambiguous: whether another point is about as near to the label as its own."""

    box: Box
    distance: float
    is_ambiguous: bool = False
    cost: float = 0.0

    @property
    def is_led(self) -> bool:
        """Whether a line leads from the label to its point."""
        return self.distance > FAR or self.is_ambiguous

    @property
    def taken(self) -> Box:
        return _grown(self.box, GAP)

    @property
    def middle(self) -> Spot:
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


def choose_places(
    spots: Sequence[Spot], sizes: Sequence[Spot], inside: Box, obstacles: Sequence[Obstacle]
) -> List[Optional[LabelPosition]]:
    """Places for the labels of all points; an empty label (size 0) and one without a free place have None.

    A label keeps the others away, so that the order decides: several are tried, and the cheapest is taken.
    """
    given = [n for n, size in enumerate(sizes) if size[0] > 0]
    orders = (given, given[::-1], sorted(given, key=lambda n: spots[n]), sorted(given, key=lambda n: spots[n][::-1]))
    return min((_in_order(order, spots, sizes, inside, obstacles) for order in orders), key=_total)


def _in_order(
    order: Sequence[int], spots: Sequence[Spot], sizes: Sequence[Spot], inside: Box, obstacles: Sequence[Obstacle]
) -> List[Optional[LabelPosition]]:
    places: List[Optional[LabelPosition]] = [None] * len(spots)
    taken = list(obstacles)
    for n in order:
        place = places[n] = choose_place(spots[n], sizes[n], inside, taken, spots)
        if place is not None:
            taken.append(Obstacle(place.taken, math.inf))
            if place.is_led:
                taken += [Obstacle(box, LEADER) for box in along(spots[n], place.middle)]
    return places


def _total(places: Sequence[Optional[LabelPosition]]) -> float:
    """The cost of all labels; one that has no place costs more than any that has."""
    return sum(MISSING if place is None else place.cost for place in places)


def choose_place(
    spot: Spot, size: Spot, inside: Box, obstacles: Sequence[Obstacle], spots: Sequence[Spot] = ()
) -> Optional[LabelPosition]:
    """The cheapest place for a label of this width and height; None if there is none.  spots: all points."""
    room = _grown(inside, -GAP)
    others = [other for other in spots if other != spot]
    found = [place for place in _places(spot, size, room) if _contains(room, place.box)]
    places = [place._replace(is_ambiguous=_is_ambiguous(place.box, spot, others)) for place in found]
    if not places:
        return None
    costs = _covered(places, obstacles) + _crossed(spot, places, obstacles)
    costs += AMBIGUOUS * np.array([place.is_ambiguous for place in places])
    costs += NEAR * np.array([place.distance for place in places])
    best = int(costs.argmin())
    return places[best]._replace(cost=float(costs[best])) if math.isfinite(costs[best]) else None


def _places(spot: Spot, size: Spot, room: Box) -> Iterator[LabelPosition]:
    """Candidate places on all sides at growing distances, also shifted along the edge for long labels."""
    (x, y), (width, height) = spot, size
    for distance in DISTANCES:
        for right, up in SIDES:
            left = x + right * distance - (1 - right) * width / 2
            bottom = y + up * distance - (1 - up) * height / 2
            yield LabelPosition((left, bottom, left + width, bottom + height), distance)
            if up:
                left = min(max(left, room[0]), room[2] - width)
                yield LabelPosition((left, bottom, left + width, bottom + height), distance)


def _covered(places: Sequence[LabelPosition], obstacles: Sequence[Obstacle]) -> np.ndarray:
    """For each place, the weighted sum of the areas of obstacles that it covers."""
    a = np.array([place.box for place in places])[:, None]
    b = np.array([obstacle.box for obstacle in obstacles]).reshape(1, -1, 4)
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    areas = sides.clip(min=0).prod(-1)
    weights = np.broadcast_to([obstacle.weight for obstacle in obstacles], areas.shape)
    covered: np.ndarray = np.multiply(areas, weights, out=np.zeros_like(areas), where=areas > 0).sum(1)
    return covered


def _crossed(spot: Spot, places: Sequence[LabelPosition], obstacles: Sequence[Obstacle]) -> np.ndarray:
    """For each place, the cost of the labels and points that the line to it would cross."""
    solid = [obstacle.box for obstacle in obstacles if obstacle.weight >= SOLID and not _holds(obstacle.box, spot)]
    boxes = np.array(solid).reshape(1, 1, -1, 4)
    middles = np.array([place.middle if place.is_led else spot for place in places])[:, None]
    way = np.array(spot) + (middles - spot) * np.linspace(0, 1, 24)[:, None]  # (places, 24, 2)
    inside = (boxes[..., :2] < way[:, :, None]) & (way[:, :, None] < boxes[..., 2:])
    crossed = np.any(np.all(inside, axis=-1), axis=1)  # (places, boxes)
    cost: np.ndarray = CROSSING * crossed.sum(1)
    return cost


def _is_ambiguous(box: Box, spot: Spot, others: Sequence[Spot]) -> bool:
    own = _distance(box, spot)
    return any(_distance(box, other) <= max(DOUBT * own, own + 2) for other in others)


def _distance(box: Box, spot: Spot) -> float:
    """The distance from the edge of the box; 0 inside."""
    return math.hypot(max(box[0] - spot[0], 0, spot[0] - box[2]), max(box[1] - spot[1], 0, spot[1] - box[3]))


def _grown(box: Box, by: float) -> Box:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def _holds(box: Box, spot: Spot) -> bool:
    return box[0] <= spot[0] <= box[2] and box[1] <= spot[1] <= box[3]


def _contains(outer: Box, inner: Box) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def around(spot: Spot, half_width: float, half_height: float) -> Box:
    return spot[0] - half_width, spot[1] - half_height, spot[0] + half_width, spot[1] + half_height


def along(a: Spot, b: Spot, step: float = 4.0) -> List[Box]:
    """Small boxes that cover the line."""
    count = max(1, math.ceil(math.dist(a, b) / step))
    spots = [(a[0] + (b[0] - a[0]) * (n + 0.5) / count, a[1] + (b[1] - a[1]) * (n + 0.5) / count) for n in range(count)]
    return [around(spot, step / 2, step / 2) for spot in spots]
