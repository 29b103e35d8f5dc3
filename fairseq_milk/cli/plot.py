"""fairseq-milk plot: the paper's figures from a sweep's table or from generations."""

import argparse
from pathlib import Path
from typing import List, Sequence

from matplotlib.figure import Figure

from ..analysis.diagram import Panel, schedule_diagrams
from ..analysis.drawing import FORMATS, save
from ..analysis.histogram import delay_histogram
from ..analysis.paper_results import TEST_SETS
from ..analysis.plane import quality_latency_plane
from ..analysis.sentences import Generation, check_sentence, read_generation
from ..analysis.systems import LATENCIES, QUALITIES, System, choose, curves, paper_curves, read_systems
from ..console.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    plane = _kind(kinds, "plane", "BLEU against latency: one curve per system, error bars, the Pareto front")
    plane.add_argument("--latency", choices=LATENCIES, default="dal", help="the horizontal axis (dal)")
    plane.add_argument("--quality", default="bleu", metavar="COLUMN", help="the vertical axis: bleu (the default), "
                       "chrf, or another column of the tables, such as exact")  # fmt: skip
    plane.add_argument("--paper", choices=TEST_SETS, help="also draw the paper's curves, dashed")
    schedule = _kind(kinds, "schedule", "one sentence: attention and the path of the head, systems side by side")
    schedule.add_argument("--sentence", type=int, required=True, metavar="ID", help="the sentence, as in S-ID")
    _kind(kinds, "delays", "histogram of initial delays")


def _kind(
    kinds: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, help: str
) -> argparse.ArgumentParser:
    parser = kinds.add_parser(name, help=help, description=help)
    add_inputs(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="the picture: .png, .svg or .pdf")
    parser.add_argument("--title", default="", help="title of the picture")
    return parser


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="results.csv or results.json of fairseq-milk sweep, or generations (generate-<subset>.jsonl, logs): FILE "
        "or NAME=FILE. With NAME, the systems of a table are called NAME/SYSTEM; for a generation NAME may be 'SYSTEM "
        "SETTING', and generations with the same NAME are its seeds",
    )
    parser.add_argument(
        "--subset",
        metavar="NAME",
        help="use the results on this data set, e.g. valid (default: the one with most results)",
    )
    parser.add_argument(
        "--show",
        nargs="+",
        metavar="NAME",
        help="only these systems, as the sweep names them: milk-latency-weight=0.1 (default: in a plane all; where "
        "sentences are shown, all if they are few, otherwise MILk and the other system closest to it in lag)",
    )


def run(args: argparse.Namespace) -> int:
    path = check_out(args.out, FORMATS)
    systems = read_systems(args.inputs, args.subset)
    figure = {"plane": _plane, "schedule": _schedule, "delays": _delays}[args.kind](systems, args)
    for saved in save(figure, path.with_suffix(""), [path.suffix[1:]]):
        print(saved)
    return 0


def check_out(out: str, suffixes: Sequence[str]) -> Path:
    """The path of --out; a UserError, before anything is computed, if it cannot be written."""
    path = Path(out)
    if path.suffix[1:] not in suffixes:
        raise UserError(f"--out must end in {' or '.join('.' + suffix for suffix in suffixes)}, got {out}")
    if not path.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {path.parent}")
    return path


def read_generations(systems: Sequence[System], args: argparse.Namespace) -> List[Generation]:
    return [read_generation(system.label, system.score()) for system in choose(systems, args.show)]


def _schedules(systems: Sequence[System], args: argparse.Namespace) -> List[Generation]:
    generations = read_generations(systems, args)
    if not generations:
        raise UserError(f"{', '.join(args.inputs)}: there are no delays, or the logs that hold them are not here")
    return generations


def _plane(systems: Sequence[System], args: argparse.Namespace) -> Figure:
    quality = QUALITIES.get(args.quality, args.quality)
    points = curves(choose(systems, args.show) if args.show else systems, args.latency, args.quality)
    if not points:
        raise UserError(f"{', '.join(args.inputs)}: no system has both {quality} and latency")
    overlay = paper_curves(args.paper, args.latency) if args.paper else None
    names = {"latency_name": LATENCIES[args.latency], "quality_name": quality}
    return quality_latency_plane(points, title=args.title, overlay=overlay, **names)


def _schedule(systems: Sequence[System], args: argparse.Namespace) -> Figure:
    generations = _schedules(systems, args)
    for generation in generations:
        check_sentence(args.sentence, generation)
    records = {generation.label: generation.sentences[args.sentence].record for generation in generations}
    return schedule_diagrams([Panel.from_record(record, label) for label, record in records.items()], args.title)


def _delays(systems: Sequence[System], args: argparse.Namespace) -> Figure:
    generations = _schedules(systems, args)
    return delay_histogram({generation.label: generation.initial_delays() for generation in generations}, args.title)
