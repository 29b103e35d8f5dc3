"""The pictures: the quality-latency plane with the oracle's point, and the schedules of single sentences."""

import json
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from matplotlib.figure import Figure

from examples.recording import write_lines
from examples.verb_final.comparison import best_milk, nearest_waitk
from examples.verb_final.language import Sentence
from examples.verb_final.results import Results, Row
from fairseq_milk.analysis.diagram import EOS, Panel, schedule_diagrams
from fairseq_milk.analysis.drawing import save
from fairseq_milk.analysis.plane import quality_latency_plane
from fairseq_milk.analysis.points import Point

QUALITIES = {"exact": "sentences translated exactly (%)", "bleu": "BLEU"}
CURVES = ("MILk", "wait-k", "monotonic", "MoChA", "soft")  # the families on the plane
SCHEDULES = "schedules.jsonl"  # the panels of the schedules, one per line
SHOWN = {"verb-final": range(8, 14), "verb-second": range(6, 11)}  # kinds of sentences to draw, and their lengths


def draw_all(results: Results, folder: Path, qualities: Sequence[str] = ("exact",)) -> List[Path]:
    """Draw all pictures as PNG and SVG, and keep the panels of the schedules; returns the paths of the PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, panels = worth_showing(results), []
    for kind in SHOWN:
        index = choose_sentence(results, rows, kind)
        if index is not None:
            shown = [panel(row, results.sentences[index], index) for row in rows]
            panels += [{"picture": f"schedule-{kind}", **drawn._asdict()} for drawn in shown]
    write_lines(folder / SCHEDULES, panels)
    return [*draw_planes(results, folder, qualities), *draw_schedules(folder / SCHEDULES, folder)]


def draw_schedules(kept: Path, folder: Path, formats: Sequence[str] = ("png", "svg")) -> List[Path]:
    """Draw the panels of a file that `draw_all` has written, those of one picture beside each other."""
    pictures: Dict[str, List[Panel]] = {}
    for line in kept.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        pictures.setdefault(fields.pop("picture"), []).append(Panel(**fields))
    return [save(schedule_diagrams(panels), folder / name, formats)[0] for name, panels in pictures.items()]


def draw_planes(results: Results, folder: Path, qualities: Sequence[str]) -> List[Path]:
    names = {quality: "plane" if quality == "exact" else f"plane-{quality}" for quality in qualities}
    return [save(draw_plane(results, quality), folder / name)[0] for quality, name in names.items()]


def draw_plane(results: Results, quality: str) -> Figure:
    curves: Dict[str, Sequence[Point]] = {}
    for family in CURVES:
        points = [_point(row, quality) for row in results.rows if row.system.family == family]
        if points:
            curves[family] = points
    best = Point(results.oracle.mean("dal"), results.oracle.mean(quality), "best possible")
    return quality_latency_plane(curves, best, quality_name=QUALITIES[quality])


def _point(row: Row, quality: str) -> Point:
    """The point of a row; its error bars are the range over the seeds."""
    return Point(row.mean("dal"), row.mean(quality), row.system.point, row.range("dal"), row.range(quality))


def worth_showing(results: Results) -> List[Row]:
    milk = best_milk(results)
    if milk is None:
        return results.rows[:2]
    waitk = nearest_waitk(results, milk)
    return [milk] if waitk is None else [milk, waitk]


def choose_sentence(results: Results, rows: Sequence[Row], kind: str) -> Optional[int]:
    """One of this kind, preferably of medium length, exact in the first row, wrong in the second, with a name."""
    exact = [row.exact(results.sentences) for row in rows]

    def merit(index: int) -> float:
        sentence = results.sentences[index]
        merit = 4.0 * (len(sentence.source) in SHOWN[kind]) + 2.0 * exact[0][index] + 0.5 * ("s" in sentence.source)
        return merit + (kind == "verb-final" and len(exact) > 1 and not exact[1][index])

    candidates = [index for index, sentence in enumerate(results.sentences) if sentence.kind == kind]
    return max(candidates, key=merit) if candidates else None


def panel(row: Row, sentence: Sentence, index: int) -> Panel:
    """The diagram of a sentence; the limit is drawn if the hypothesis has the right number of tokens."""
    drawn, right = Panel.from_record(row.records[index], row.system.label), [*sentence.target, EOS]
    wrong = [i >= len(right) or token != right[i] for i, token in enumerate(drawn.target)]
    best = sentence.delays if len(drawn.target) == len(sentence.delays) else None
    return drawn._replace(best=best, wrong=wrong)
