"""Points on the quality-latency plane, and their Pareto front."""

import math
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .arrays import Matrix, as_lists

Range = Tuple[float, float]  # from, to


class Point(NamedTuple):
    """One trained system on the plane.  The ranges, of an interval or over seeds, are drawn as error bars."""

    latency: float
    quality: float
    label: str = ""
    latency_range: Optional[Range] = None
    quality_range: Optional[Range] = None

    @property
    def place(self) -> Tuple[float, float]:
        return self.latency, self.quality


# points by system, in any order: `Point`s, or rows of latency and quality, optionally with the other fields
Curves = Mapping[str, Union[Matrix, Sequence[Sequence[Any]]]]


def as_points(curves: Curves) -> Dict[str, List[Point]]:
    return {name: [_as_point(row, name) for row in rows] for name, rows in curves.items()}


def _as_point(row: Any, name: str) -> Point:
    values = as_lists(row)
    try:
        point = Point(*values)
        if math.isfinite(point.latency) and math.isfinite(point.quality) and isinstance(point.label, str):
            return point
    except TypeError:
        pass
    raise ValueError(f"{name}: a point is two finite numbers, latency and quality, and maybe a label, got {values}")


def pareto_front(points: Sequence[Point]) -> List[Point]:
    """The Pareto-optimal points from left to right: no other point is better and as fast, or faster and as good."""

    def beats(a: Point, b: Point) -> bool:
        return a.latency <= b.latency and a.quality >= b.quality and a[:2] != b[:2]

    return sorted((p for p in points if not any(beats(other, p) for other in points)), key=lambda p: p.place)
