"""fairseq-milk score: BLEU and latency of one generation, or of two compared, under stated conventions."""

import argparse
import dataclasses
import json
from typing import Any, Dict, List, NamedTuple, Optional

import sacrebleu

from ..analysis import GenerateLog, read_generate_log
from ..scoring import CONVENTIONS, PAPER, Convention, Latency, sentence_latency, summarise
from ..scoring.bootstrap import RESAMPLES, SEED, Sample, corpus_sample, difference, interval, mean_sample
from ..scoring.latency import LENGTHS, UNITS

MOST_RESAMPLES = 10**6  # minutes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="log of fairseq-generate, or generate-<subset>.jsonl")
    parser.add_argument("file2", nargs="?", help="a second generation of the same sentences, compared with the first")
    parser.add_argument("--convention", choices=CONVENTIONS, help="latency in this convention only")
    parser.add_argument("--unit", choices=UNITS, help="what latency is counted in")
    parser.add_argument("--eos", choices=("yes", "no"), help="whether EOS is a token, on both sides")
    parser.add_argument("--length", choices=LENGTHS, help="the |y| of AP and AL (DAL: always the hypothesis)")
    parser.add_argument("--tokenize", default="13a", choices=sacrebleu.BLEU.TOKENIZERS, help="sacreBLEU's tokenizer")
    parser.add_argument("--lowercase", action="store_true", help="BLEU without case")
    parser.add_argument(
        "--bootstrap", type=int, default=RESAMPLES, metavar="N", help="resamples (%(default)s); 0: no intervals"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of the resamples (%(default)s)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")


class Scored(NamedTuple):
    """One file, scored.  samples: 'BLEU' and 'DAL', as far as the file has them; rows: one a convention."""

    log: GenerateLog
    samples: Dict[str, Sample]
    rows: List[Dict[str, Any]]


def run(args: argparse.Namespace) -> int:
    if not 0 <= args.bootstrap <= MOST_RESAMPLES:
        raise ValueError(f"--bootstrap must lie between 0 and {MOST_RESAMPLES}, got {args.bootstrap}")
    if args.seed < 0:
        raise ValueError(f"--seed must not be negative, got {args.seed}")
    chosen = _chosen(args)
    bleu = sacrebleu.BLEU(tokenize=args.tokenize, lowercase=args.lowercase)
    logs = [read_generate_log(path) for path in (args.file, args.file2) if path is not None]
    if len(logs) == 2:
        _check_same_sentences(*logs)
    scored = [_score(log, bleu, chosen) for log in logs]
    signatures = {"DAL": (chosen or PAPER).signature()}
    if any("BLEU" in file.samples for file in scored):
        signatures["BLEU"] = str(bleu.get_signature())
    report: Dict[str, Any] = {"files": [_file_report(file, signatures, args) for file in scored]}
    if len(scored) == 2:
        report["difference"] = _difference_report(scored[0], scored[1], args)
    print(json.dumps(report, indent=2, ensure_ascii=False) if args.json else _text(report))
    return 0


def _chosen(args: argparse.Namespace) -> Optional[Convention]:
    """The convention asked for, None if all are to be shown."""
    changes: Dict[str, Any] = {"unit": args.unit, "length": args.length}
    changes["eos"] = None if args.eos is None else args.eos == "yes"
    changes = {key: value for key, value in changes.items() if value is not None}
    if args.convention is None and not changes:
        return None
    return dataclasses.replace(CONVENTIONS[args.convention or "paper"], **changes)


def _name(convention: Convention) -> str:
    return next((name for name, named in CONVENTIONS.items() if named == convention), "")


def _all_conventions() -> List[Convention]:
    """The named ones first."""
    every = [Convention(unit, eos, length) for unit in UNITS for eos in (True, False) for length in LENGTHS]
    return [*CONVENTIONS.values(), *(convention for convention in every if not _name(convention))]


def _check_same_sentences(first: GenerateLog, second: GenerateLog) -> None:
    if len(first.records) != len(second.records):
        raise ValueError(f"{first.path} has {len(first.records)} sentences, {second.path} has {len(second.records)}")
    for a, b in zip(first.records, second.records):
        same_kind = (first.no_latency is None) == (second.no_latency is None)
        if a.id != b.id or (same_kind and list(a.source) != list(b.source)):
            raise ValueError(f"{first.path} and {second.path} are not of the same sentences (see sentence {a.id})")


def _score(log: GenerateLog, bleu: sacrebleu.BLEU, chosen: Optional[Convention]) -> Scored:
    """A file without delays is scored for BLEU alone, unless a convention was asked for."""
    samples: Dict[str, Sample] = {}
    rows: List[Dict[str, Any]] = []
    hypotheses, references = log.texts()
    if references is not None:
        samples["BLEU"] = corpus_sample(bleu, hypotheses, references)
    if log.no_latency is not None:
        if chosen is not None:
            raise ValueError(log.no_latency)
        return Scored(log, samples, rows)
    for convention in [chosen] if chosen else _all_conventions():
        row: Dict[str, Any] = {"convention": _name(convention), "signature": convention.signature()}
        rows.append(row)
        try:
            sentences = sentence_latency(log.records, convention)
            corpus = summarise(sentences, convention)
        except ValueError as error:
            if chosen is not None:
                raise ValueError(f"{log.path}: {error}") from None
            continue
        row.update(corpus.mean._asdict(), measured=corpus.measured, skipped=corpus.skipped)
        if convention == (chosen or PAPER):
            samples["DAL"] = mean_sample([None if latency is None else latency.DAL for latency in sentences])
    return Scored(log, samples, rows)


def _file_report(file: Scored, signatures: Dict[str, str], args: argparse.Namespace) -> Dict[str, Any]:
    report: Dict[str, Any] = {"file": file.log.path, "sentences": len(file.log.records)}
    for name, sample in file.samples.items():
        if args.bootstrap:
            report[name] = interval(sample, args.bootstrap, args.seed)._asdict()
        else:
            report[name] = {"score": sample.corpus_score()}
        report[name]["signature"] = signatures[name]
    if 3 * sum(text.endswith(" .") for text in file.log.texts()[0]) > len(file.log.records):
        report["warning"] = "BLEU is of tokenised text (hypotheses end in ' .'): the file has no detokenised text"
    report["latency"] = file.rows
    if file.log.no_latency is not None:
        report["no_latency"] = file.log.no_latency
    return report


def _difference_report(first: Scored, second: Scored, args: argparse.Namespace) -> Dict[str, Any]:
    """Second minus first, for what both files have."""
    report: Dict[str, Any] = {}
    for name, sample in first.samples.items():
        if name not in second.samples:
            continue
        if args.bootstrap:
            report[name] = difference(sample, second.samples[name], args.bootstrap, args.seed)._asdict()
        else:
            report[name] = {"score": second.samples[name].corpus_score() - sample.corpus_score()}
    return report


def _text(report: Dict[str, Any]) -> str:
    lines: List[str] = []
    for file in report["files"]:
        lines.append(f"{file['file']}: {file['sentences']} sentences")
        for name in ("BLEU", "DAL"):
            if name in file:
                lines.append(f"{name:<5}{file[name]['score']:7.2f}{_bounds(file[name])}  ({file[name]['signature']})")
        if "warning" in file:
            lines.append(f"warning: {file['warning']}")
        if "BLEU" not in file:
            lines.append("no BLEU: there are no references")
        if "no_latency" in file:
            lines.append(f"no latency: {file['no_latency']}")
        if file["latency"]:
            lines += ["", *_table(file["latency"])]
        lines.append("")
    if "difference" in report:
        lines.append("second minus first, paired:")
        for name, value in report["difference"].items():
            p = f"  p = {value['p']:.3f}" if "p" in value else ""
            lines.append(f"{name:<5}{value['score']:+7.2f}{_bounds(value)}{p}")
    return "\n".join(lines).rstrip()


def _bounds(value: Dict[str, Any]) -> str:
    return f" [{value['low']:.2f}, {value['high']:.2f}]" if "low" in value else ""


def _table(rows: List[Dict[str, Any]]) -> List[str]:
    """One line a convention; a dash where it needs references that are not there."""
    lines = [f"{'':<14}" + "".join(f"{name:>9}" for name in Latency._fields) + f"{'skipped':>9}  signature"]
    for row in rows:
        cells = [f"{row[name]:.{3 if name == 'AP' else 2}f}" if name in row else "-" for name in Latency._fields]
        cells.append(str(row.get("skipped", "-")))
        lines.append(f"{row['convention']:<14}" + "".join(f"{cell:>9}" for cell in cells) + f"  {row['signature']}")
    return lines
