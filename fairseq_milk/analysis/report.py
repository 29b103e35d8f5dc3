"""The report of a sweep: one self-contained HTML file.

The content is computed here and laid out by templates/report.html.  Text from files (tokens, names, paths) is escaped
by Jinja, pictures are images in data: URLs, which cannot run scripts, and the content security policy of the page
forbids scripts and network access.
"""

import base64
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set

from matplotlib.figure import Figure

from ..console.tables import bounds
from .diagram import Panel, schedule_diagram
from .drawing import render, small_png
from .histogram import delay_histogram
from .looks import display_name
from .page import Cell, Table, render_page
from .paper_results import NAMES, TEST_SETS
from .plane import quality_latency_plane
from .points import Point, pareto_front
from .provenance import provenance
from .sentences import Generation, Sentence
from .systems import LATENCIES, System, curves, paper_curves

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
DIGITS = {"bleu": 1, "dal": 2, "al": 2, "ap": 3}
LARGE, SMALL = (7.6, 4.4), (4.6, 3.5)  # size of the curves in inches
MOST_ROWS, MOST_LETTERS, MOST_TOKENS = 30, 300, 40  # of a table and of a text before they are folded; of a diagram
HEAVIEST = 45_000  # bytes in an SVG: a larger diagram becomes a PNG in few colours, a larger plane one in many


class Choice(NamedTuple):
    """What to show.  sentences: ids to draw besides the `worst` of each kind.  paper: one of its test sets."""

    title: str = "Quality and latency"
    sentences: Sequence[int] = ()
    worst: int = 2
    paper: Optional[str] = None
    command: str = ""


class Picture(NamedTuple):
    """address: a data: URL.  least: smallest width in pixels on a narrow page, where it scrolls if `shrink` is set."""

    address: str
    alt: str
    shrink: float
    least: int


def build_report(systems: Sequence[System], generations: Sequence[Generation], choice: Choice) -> str:
    """The HTML page.  systems: all scored systems.  generations: those that are shown sentence by sentence."""
    return render_page(
        "report.html",
        "report.css",
        policy=POLICY,
        choice=choice,
        most_rows=MOST_ROWS,
        most_letters=MOST_LETTERS,
        summary=_summary(systems),
        results=_results(systems),
        curves=_curves(systems, choice.paper),
        delays=_delays(generations) if generations else None,
        sentences=_sentences(generations, choice) if generations else [],
        paper=_paper(choice.paper) if choice.paper else None,
        provenance=provenance(systems),
    )


def _summary(systems: Sequence[System]) -> str:
    results = [result for system in systems for result in system.results]
    sizes = sorted({result.n_sentences for result in results})
    subsets = sorted({result.subset for result in results if result.log.endswith(f"generate-{result.subset}.jsonl")})
    text = f"{_count(len(systems), 'system')}, {_count(len(results), 'run')}, {' or '.join(map(str, sizes))} sentences"
    return text + (f" of {', '.join(subsets)}." if subsets else ".")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---- the table and the curves ---------------------------------------------------------------------------------------


def _results(systems: Sequence[System]) -> Dict[str, Any]:
    points = [point for of_system in curves(systems, "dal").values() for point in of_system]
    front = {point[:2] for point in pareto_front(points)}
    heading = ["system", "setting", "seeds", *(measure.upper() for measure in DIGITS)]
    rows = []
    for system in systems:
        names = _names(display_name(system.name), system.point, (system.mean("dal"), system.mean("bleu")) in front)
        rows.append([*names, Cell(len(system.results)), *(_figure(system, measure) for measure in DIGITS)])
    signatures = {
        name: sorted({getattr(result, field) for system in systems for result in system.results} - {""})
        for name, field in (("BLEU", "bleu_signature"), ("Latency", "latency_signature"))
    }
    return {
        "table": Table([Cell(name) for name in heading], rows, texts=2),
        "collapsed": _collapsed(systems),
        "signatures": {name: "; ".join(found) for name, found in signatures.items()},
        "warnings": [
            f"Not all rows have the same signature of {name}: their figures cannot be compared."
            for name, found in signatures.items()
            if len(found) > 1
        ],
    }


def _names(system: str, setting: str, bold: bool) -> List[Cell]:
    return [Cell(name, kind="strong" if bold else "") for name in (system, setting)]


def _figure(system: System, measure: str) -> Cell:
    value, ends, digits = system.mean(measure), system.range(measure), DIGITS[measure]
    text = "–" if value != value else f"{value:.{digits}f}"
    return Cell(text, "" if ends is None else bounds(*ends, places=digits))


def _collapsed(systems: Sequence[System]) -> List[str]:
    """One warning per system whose learned schedule has collapsed."""
    warnings = []
    for system in systems:
        for kind in sorted({result.collapse for result in system.results} - {""}):
            seeds = ", ".join(str(result.seed) for result in system.results if result.collapse == kind)
            warnings.append(f"The schedule of {display_name(system.label)} has collapsed (seed {seeds}): it {kind}.")
    return warnings


def _curves(systems: Sequence[System], paper: Optional[str]) -> List[Picture]:
    pictures = []
    for measure, name in LATENCIES.items():
        overlay = paper_curves(paper, measure) if paper else None
        size = LARGE if measure == "dal" else SMALL
        figure = quality_latency_plane(curves(systems, measure), latency_name=name, overlay=overlay, size=size)
        pictures.append(_picture(figure, f"BLEU against {measure.upper()}, one curve per system", shrink=0.7))
    return pictures


def _picture(figure: Figure, alt: str, shrink: float = 0.0, colours: int = 128) -> Picture:
    """An SVG, or a PNG if that would be too large.  shrink: smallest share of its size on a narrow page."""
    content, kind = render(figure, "svg"), "svg+xml"
    if len(content) > HEAVIEST:
        content, kind = small_png(figure, colours), "png"
    address = f"data:image/{kind};base64," + base64.b64encode(content).decode("ascii")
    return Picture(address, alt, shrink, round(96 * shrink * figure.get_figwidth()))


# ---- sentences ------------------------------------------------------------------------------------------------------


def _delays(generations: Sequence[Generation]) -> Optional[Picture]:
    delays = {generation.label: generation.initial_delays() for generation in generations}
    written = {label: values for label, values in delays.items() if values}
    return _picture(delay_histogram(written), "Histogram of initial delays") if written else None


def _sentences(generations: Sequence[Generation], choice: Choice) -> List[Dict[str, Any]]:
    """The chosen sentences, then the worst of the first generation, each once."""
    first = generations[0]
    name = display_name(first.label)
    seen: Set[int] = set()
    groups = []
    for heading, ids in (
        ("Chosen sentences", choice.sentences),
        (f"Lowest sentence BLEU of {name}", first.lowest_bleu(choice.worst)),
        (f"Largest lag of {name}", first.largest_dal(choice.worst)),
    ):
        new = [i for i in dict.fromkeys(ids) if i not in seen]
        seen.update(new)
        if new:
            groups.append({"heading": heading, "sentences": [_sentence(i, generations) for i in new]})
    return groups


def _sentence(i: int, generations: Sequence[Generation]) -> Dict[str, Any]:
    translations = {display_name(g.label): g.sentences[i] for g in generations if i in g.sentences}
    return {
        "id": i,
        "translations": translations,
        "diagrams": [_diagram(i, label, sentence) for label, sentence in translations.items() if _fits(sentence)],
        "too_long": [label for label, sentence in translations.items() if sentence.drawable and not _fits(sentence)],
    }


def _fits(sentence: Sentence) -> bool:
    return sentence.drawable and max(len(sentence.record.delays), len(sentence.record.source)) <= MOST_TOKENS


def _diagram(i: int, label: str, sentence: Sentence) -> Picture:
    figure = schedule_diagram(*Panel.from_record(sentence.record, label))
    return _picture(figure, f"Schedule of {label} in sentence {i}", shrink=0.5, colours=16)


# ---- the paper -----------------------------------------------------------------------------------------------------


def _paper(pair: str) -> Dict[str, Any]:
    lines = TEST_SETS[pair]
    front = {point[:2] for point in pareto_front([Point(line.dal, line.bleu) for line in lines])}
    rows = []
    for line in lines:
        figures = (f"{line.bleu:.1f}", f"{line.dal:.1f}", f"{line.al:.1f}", f"{line.ap:.2f}")
        rows.append([*_names(line.system, line.setting, (line.dal, line.bleu) in front), *map(Cell, figures)])
    heading = ["system", "setting", "BLEU", "DAL", "AL", "AP"]
    return {"name": NAMES[pair], "table": Table([Cell(name) for name in heading], rows, texts=2)}
