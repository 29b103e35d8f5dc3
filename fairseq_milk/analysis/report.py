"""The report of a sweep: one HTML file that holds everything it shows and fetches nothing.

Text from outside (tokens, names, paths) passes through `html.escape` by construction, pictures are SVG images in data:
addresses, where nothing can run, and the page forbids scripts and the network by its own policy.
"""

import base64
from typing import List, NamedTuple, Optional, Sequence, Set

from matplotlib.figure import Figure

from .diagram import Panel, schedule_diagram
from .drawing import render
from .histogram import delay_histogram
from .html import Markup, element, join, listing, section, table
from .paper_results import NAMES, TEST_SETS
from .plane import Point, Range, pareto_front, quality_latency_plane
from .provenance import provenance
from .sentences import Generation, Sentence
from .stylesheet import CSS
from .systems import LATENCIES, System, curves, paper_curves

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
DIGITS = {"bleu": 1, "dal": 2, "al": 2, "ap": 3}
LARGE, SMALL = (7.6, 4.4), (4.6, 3.5)  # inches of the curves


class Choice(NamedTuple):
    """What to show.  sentences: ids to draw besides the worst, `worst` of each kind.  paper: one of its test sets."""

    title: str = "Quality and latency"
    sentences: Sequence[int] = ()
    worst: int = 2
    paper: Optional[str] = None
    command: str = ""


def build_report(systems: Sequence[System], generations: Sequence[Generation], choice: Choice) -> str:
    """systems: all that were measured.  generations: of those that are looked at sentence by sentence."""
    sections = [
        _header(systems, choice),
        _results(systems),
        _curves(systems, choice.paper),
        *([_delays(generations), *_sentences(generations, choice)] if generations else [_no_generations()]),
        *([_paper(choice.paper)] if choice.paper else []),
        provenance(systems, choice.command),
    ]
    return _page(choice.title, sections)


def _page(title: str, sections: Sequence[Markup]) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(CSS)),
    )
    body = element("body", element("main", *(join(["\n", section]) for section in sections)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _header(systems: Sequence[System], choice: Choice) -> Markup:
    results = [result for system in systems for result in system.results]
    sizes = sorted({result.n_sentences for result in results})
    subsets = sorted({result.subset for result in results if result.log.endswith(f"generate-{result.subset}.jsonl")})
    said = f"{_count(len(systems), 'system')}, {_count(len(results), 'run')}, {' or '.join(map(str, sizes))} sentences"
    said += f" of {', '.join(subsets)}." if subsets else "."
    return element("header", element("h1", choice.title), element("p", said, class_="quiet"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---- the table and the curves ---------------------------------------------------------------------------------------


def _results(systems: Sequence[System]) -> Markup:
    points = [point for of_system in curves(systems, "dal").values() for point in of_system]
    front = {point[:2] for point in pareto_front(points)}
    rows = []
    for system in systems:
        best = (system.mean("dal"), system.mean("bleu")) in front
        names = _names(system.name, system.point, best)
        rows.append([*names, len(system.results), *(_figure_cell(system, measure) for measure in DIGITS)])
    explanation = (
        "Bold: no other system has a better BLEU at the same or a smaller DAL (the Pareto front). In brackets: the "
        "lowest and the highest seed, or for a single seed the 95 % confidence interval, by bootstrap over sentences."
    )
    return section(
        "Results",
        table(["system", "setting", "seeds", *(measure.upper() for measure in DIGITS)], rows, texts=2),
        element("p", explanation, class_="quiet"),
        *_signatures(systems),
    )


def _names(system: str, setting: str, bold: bool) -> List[Markup]:
    return [element("strong" if bold else "span", name) for name in (system, setting)]


def _figure_cell(system: System, measure: str) -> Markup:
    value, bounds, digits = system.mean(measure), system.range(measure), DIGITS[measure]
    return join([_number(value, digits), element("small", _bounds(bounds, digits))])


def _number(value: float, digits: int) -> str:
    return "–" if value != value else f"{value:.{digits}f}"


def _bounds(bounds: Optional[Range], digits: int) -> str:
    return "" if bounds is None else f" [{bounds[0]:.{digits}f}, {bounds[1]:.{digits}f}]"


def _signatures(systems: Sequence[System]) -> List[Markup]:
    """How BLEU and latency were counted, with a warning if not all rows were counted alike."""
    lines = []
    for name, field in (("BLEU", "bleu_signature"), ("Latency", "latency_signature")):
        signatures = sorted({getattr(result, field) for system in systems for result in system.results} - {""})
        lines.append(element("p", f"{name}: ", element("code", "; ".join(signatures) or "none"), class_="quiet"))
        if len(signatures) > 1:
            said = f"Not all rows have the same signature of {name}: their figures cannot be compared."
            lines.append(element("p", said, class_="warning"))
    return lines


def _curves(systems: Sequence[System], paper: Optional[str]) -> Markup:
    figures = []
    for measure, name in LATENCIES.items():
        overlay = paper_curves(paper, measure) if paper else None
        size = LARGE if measure == "dal" else SMALL
        figure = quality_latency_plane(curves(systems, measure), latency_name=name, overlay=overlay, size=size)
        picture = _picture(figure, f"BLEU against {measure.upper()}, one curve a system", shrink=0.7)
        figures.append(element("figure", picture, class_="scroll"))
    said = "Up and to the left is better."
    if paper:
        said += f" Dashed and light: the paper's own curves for {NAMES[paper]}, another test set."
    explanation = element("p", said, class_="quiet")
    return section("Quality against latency", explanation, element("div", *figures, class_="side"))


def _picture(figure: Figure, alt: str, shrink: float = 0.0) -> Markup:
    """The figure as an SVG image, where nothing can run.  shrink: the least part of its size, on a narrow page."""
    address = "data:image/svg+xml;base64," + base64.b64encode(render(figure, "svg")).decode("ascii")
    return element("img", src=address, alt=alt, style=f"min-width: {96 * shrink * figure.get_figwidth():.0f}px")


# ---- sentences ------------------------------------------------------------------------------------------------------


def _no_generations() -> Markup:
    said = "There are no delays, or the logs that hold them are not here."
    return section("Sentences", element("p", said))


def _delays(generations: Sequence[Generation]) -> Markup:
    delays = {generation.label: generation.initial_delays() for generation in generations}
    written = {label: values for label, values in delays.items() if values}
    if not written:
        return section("Initial delays", element("p", "Nothing was written."))
    said = "How many source tokens are read before the first target token is written."
    figure = element("figure", _picture(delay_histogram(written), "Histogram of initial delays"))
    return section("Initial delays", element("p", said, class_="quiet"), figure)


def _sentences(generations: Sequence[Generation], choice: Choice) -> List[Markup]:
    """The chosen ones, then those where the first generation is worst; none twice."""
    first = generations[0]
    seen: Set[int] = set()
    sections = []
    for heading, ids in (
        ("Chosen sentences", choice.sentences),
        (f"Lowest sentence BLEU of {first.label}", first.lowest_bleu(choice.worst)),
        (f"Largest lag of {first.label}", first.largest_dal(choice.worst)),
    ):
        new = [i for i in dict.fromkeys(ids) if i not in seen]
        seen.update(new)
        if new:
            sections.append(section(heading, *(_sentence(i, generations) for i in new)))
    return sections


def _sentence(i: int, generations: Sequence[Generation]) -> Markup:
    there = {generation.label: generation.sentences[i] for generation in generations if i in generation.sentences}
    one = next(iter(there.values()))
    terms = [("source", _prose(one.source)), ("reference", _prose(one.reference or "–"))]
    terms += [(label, join([_prose(s.hypothesis or "–"), " ", _scores(s)])) for label, s in there.items()]
    diagrams = [_diagram(i, label, sentence) for label, sentence in there.items() if sentence.drawable]
    return element("article", element("h3", f"Sentence {i}"), listing(terms), element("div", *diagrams, class_="side"))


def _prose(text: str) -> Markup:
    """Text in a language of its own, whose direction stays inside."""
    return element("bdi", text, dir="auto")


def _scores(sentence: Sentence) -> Markup:
    bleu = "" if sentence.bleu is None else f"BLEU {sentence.bleu:.1f}"
    lag = "" if sentence.dal is None else f"DAL {sentence.dal:.2f}"
    return element("span", f"({', '.join(filter(None, (bleu, lag)))})", class_="quiet")


def _diagram(i: int, label: str, sentence: Sentence) -> Markup:
    figure = schedule_diagram(*Panel.from_record(sentence.record, label))
    return element("figure", _picture(figure, f"Schedule of {label} in sentence {i}", shrink=0.5), class_="scroll")


# ---- the paper -----------------------------------------------------------------------------------------------------


def _paper(pair: str) -> Markup:
    lines = TEST_SETS[pair]
    front = {point[:2] for point in pareto_front([Point(line.dal, line.bleu) for line in lines])}
    rows = []
    for line in lines:
        names = _names(line.system, line.setting, (line.dal, line.bleu) in front)
        rows.append([*names, f"{line.bleu:.1f}", f"{line.dal:.1f}", f"{line.al:.1f}", f"{line.ap:.2f}"])
    return section(
        f"The paper's figures: {NAMES[pair]}",
        element("p", "Arivazhagan et al. (2019), appendix A. Bold: the Pareto front in DAL.", class_="quiet"),
        table(["system", "setting", "BLEU", "DAL", "AL", "AP"], rows, texts=2),
    )
