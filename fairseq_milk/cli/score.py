"""fairseq-milk score: BLEU, chrF and latency of one generation, or of two compared, under stated conventions."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import sacrebleu

from ..console.errors import require
from ..console.tables import bounds, text_table
from ..scoring.bootstrap import RESAMPLES, SEED, difference
from ..scoring.generate_log import GenerateLog, read_generate_log
from ..scoring.latency import CONVENTIONS, LENGTHS, PAPER, UNITS, Convention, Latency
from ..scoring.records import check_same_sentences
from ..scoring.score import Metrics, Score, score_records
from ..scoring.texts import check_comparable, published_references, read_references

MOST_RESAMPLES = 10**6  # takes minutes
SHOWN = ("BLEU", "chrF", "DAL")  # with intervals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="log of fairseq-generate, or generate-<subset>.jsonl")
    parser.add_argument("file2", nargs="?", help="a second generation of the same sentences, compared with the first")
    parser.add_argument("--references", type=Path, metavar="FILE", help="the published text of the test set, instead "
                        "of the references that fairseq-generate had")  # fmt: skip
    parser.add_argument("--convention", choices=CONVENTIONS, help="report latency in this convention only")
    parser.add_argument("--unit", choices=UNITS, help="the unit of latency")
    parser.add_argument("--eos", choices=("yes", "no"), help="whether EOS counts as a token, on both sides")
    parser.add_argument("--length", choices=LENGTHS, help="the |y| of AP and AL (DAL always uses the hypothesis)")
    parser.add_argument("--tokenize", default="13a", choices=sacrebleu.BLEU.TOKENIZERS, help="sacreBLEU's tokenizer")
    parser.add_argument("--lowercase", action="store_true", help="compute BLEU and chrF on lower-cased text")
    add_resampling(parser)


def add_resampling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap",
        type=int,
        default=RESAMPLES,
        metavar="N",
        help="number of resamples (%(default)s); 0: no intervals",
    )
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the resampling (%(default)s)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def check_resampling(args: argparse.Namespace) -> None:
    most = MOST_RESAMPLES
    require(0 <= args.bootstrap <= most, "bootstrap", args.bootstrap, f"must lie between 0 and {most}")
    require(args.seed >= 0, "seed", args.seed, "must not be negative")


def run(args: argparse.Namespace) -> int:
    check_resampling(args)
    logs = [read_generate_log(path) for path in (args.file, args.file2) if path is not None]
    if len(logs) == 2:
        check_same_sentences(logs[0].records, logs[1].records, [log.path for log in logs])
    scores = [_score(log, args) for log in logs]
    report: Dict[str, Any] = {"files": [_file_report(log, score, args) for log, score in zip(logs, scores)]}
    if len(logs) == 2:
        report.update(_difference_report(logs, scores, args))
    print(json.dumps(report, indent=2, ensure_ascii=False) if args.json else _text(report))
    return 0


def _chosen(args: argparse.Namespace) -> Optional[Convention]:
    """The convention of the options; None if none was given and all are shown."""
    changes: Dict[str, Any] = {"unit": args.unit, "length": args.length}
    changes["eos"] = None if args.eos is None else args.eos == "yes"
    changes = {key: value for key, value in changes.items() if value is not None}
    if args.convention is None and not changes:
        return None
    return dataclasses.replace(CONVENTIONS[args.convention or "paper"], **changes)


def _name(convention: Convention) -> str:
    return next((name for name, named in CONVENTIONS.items() if named == convention), "")


def _all_conventions() -> List[Convention]:
    """All conventions, the named ones first."""
    every = [Convention(unit, eos, length) for unit in UNITS for eos in (True, False) for length in LENGTHS]
    return [*CONVENTIONS.values(), *(convention for convention in every if not _name(convention))]


def _score(log: GenerateLog, args: argparse.Namespace) -> Score:
    """Score one file: without delays for BLEU alone, which is an error if a convention was given."""
    chosen, references = _chosen(args), _references(log, args.references)
    metrics = Metrics(chosen or PAPER, args.tokenize, args.lowercase)
    score = score_records(log.records, references, metrics, log.no_latency)
    if chosen is not None and score.no_latency is not None:
        raise ValueError(score.no_latency if log.no_latency else f"{log.path}: {score.no_latency}")
    return score


def _references(log: GenerateLog, path: Optional[Path]) -> Optional[List[str]]:
    if path is None:
        return None
    lines = len(read_references(path))
    if lines != len(log.records):
        raise ValueError(f"{log.path} has {len(log.records)} sentences, {path} has {lines}")
    return published_references(log.records, path)


def _row(score: Score, convention: Convention) -> Dict[str, Any]:
    """The row of a convention; without figures if it needs references that are missing."""
    row: Dict[str, Any] = {"convention": _name(convention), "signature": convention.signature()}
    if convention != score.metrics.convention:
        score = score_records(score.records, metrics=Metrics(convention))
    if score.latency is not None:
        mean, measured, skipped, _ = score.latency
        row.update(mean._asdict(), measured=measured, skipped=skipped)
    return row


def _file_report(log: GenerateLog, score: Score, args: argparse.Namespace) -> Dict[str, Any]:
    report: Dict[str, Any] = {"file": log.path, "sentences": len(score.records)}
    for name in SHOWN:
        if score.sample(name) is not None:
            figures = score.interval(name, args.bootstrap, args.seed)._asdict()
            report[name] = figures if args.bootstrap else {"score": figures["score"]}
            report[name]["signature"] = score.signature(name)
    if warning := score.texts.warning():
        report["warning"] = warning
    chosen = _chosen(args)
    conventions = [chosen] if chosen else _all_conventions()
    report["latency"] = [] if log.no_latency else [_row(score, convention) for convention in conventions]
    if score.no_latency is not None:
        report["no_latency"] = score.no_latency
    return report


def _difference_report(
    logs: Sequence[GenerateLog], scores: Sequence[Score], args: argparse.Namespace
) -> Dict[str, Any]:
    """Second minus first, for the metrics that both files have."""
    first, second = scores
    warning = check_comparable(first.texts, second.texts, [log.path for log in logs])
    report: Dict[str, Any] = {}
    for name in SHOWN:
        a, b = first.sample(name), second.sample(name)
        if a is not None and b is not None:
            report[name] = {"score": b.corpus_score() - a.corpus_score()}
            if args.bootstrap:
                report[name] = difference(a, b, args.bootstrap, args.seed)._asdict()
    return {"difference": report, **({"warning": warning} if warning else {})}


def _text(report: Dict[str, Any]) -> str:
    lines: List[str] = []
    for file in report["files"]:
        lines.append(f"{file['file']}: {file['sentences']} sentences")
        for name in SHOWN:
            if name in file:
                lines.append(f"{name:<5}{file[name]['score']:7.2f}{_bounds(file[name])}  ({file[name]['signature']})")
        if "warning" in file:
            lines.append(f"warning: {file['warning']}")
        if "BLEU" not in file:
            lines.append("no BLEU: there are no references")
        if "no_latency" in file:
            lines.append(f"no latency: {file['no_latency']}")
        if file["latency"]:
            lines += ["", _table(file["latency"])]
        lines.append("")
    if "difference" in report:
        if "warning" in report:
            lines.append(f"warning: {report['warning']}")
        lines.append("second minus first, paired:")
        for name, value in report["difference"].items():
            p = f"  p = {value['p']:.3f}" if "p" in value else ""
            lines.append(f"{name:<5}{value['score']:+7.2f}{_bounds(value)}{p}")
    return "\n".join(lines).rstrip()


def _bounds(value: Dict[str, Any]) -> str:
    return f" {bounds(value['low'], value['high'])}" if "low" in value else ""


def _table(rows: List[Dict[str, Any]]) -> str:
    """One line per convention; a dash where it needs references that are missing."""
    cells = [["", *Latency._fields, "skipped", "signature"]]
    for row in rows:
        figures = [f"{row[name]:.{3 if name == 'AP' else 2}f}" if name in row else "-" for name in Latency._fields]
        cells.append([row["convention"], *figures, str(row.get("skipped", "-")), row["signature"]])
    return text_table(cells, last="left")
