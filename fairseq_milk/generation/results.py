"""Writes the results of `fairseq-generate --results-path` as JSON: one line per sentence, and a summary."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional

from ..console.files import write_atomically
from ..scoring.collapse import reads_of
from ..scoring.score import QUALITIES, Score
from ..version import __version__

PER_SENTENCE = ("AP", "AL", "DAL")


def write_score(score: Score, about: Dict[str, Any], folder: str, subset: str) -> None:
    """Write generate-<subset>.jsonl and generate-<subset>.json."""
    base = os.path.join(folder, f"generate-{subset}")
    write_atomically(base + ".jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines(score)))
    write_atomically(base + ".json", json.dumps(summary(score, about), indent=2, ensure_ascii=False) + "\n")


def lines(score: Score) -> List[Dict[str, Any]]:
    """One line per sentence: its record, and its latency with the signature."""
    signature = score.metrics.convention.signature()
    figures = [{name: None if s is None else getattr(s, name) for name in PER_SENTENCE} for s in score.sentences]
    return [{**record.to_dict(), **row, "signature": signature} for record, row in zip(score.records, figures)]


def summary(score: Score, about: Dict[str, Any]) -> Dict[str, Any]:
    """The summary of the corpus; a missing figure is null.

    about: further fields of the summary.
    """
    return {
        **about,
        "sentences": len(score.records),
        **{name: _quality(score, name) for name in QUALITIES},
        "latency": _latency(score),
        "version": __version__,
    }


def _quality(score: Score, name: str) -> Optional[Dict[str, Any]]:
    if score.sample(name) is None:
        return None
    return {"score": score.figure(name), "signature": score.signature(name)}


def _latency(score: Score) -> Optional[Dict[str, Any]]:
    """The means, the number of sentences, and the shares of full and minimal reads."""
    if score.latency is None:
        return None
    mean, measured, skipped, convention = score.latency
    reads = reads_of(score.records)
    counts = {"measured": measured, "skipped": skipped, "full_reads": reads.full, "minimal_reads": reads.minimal}
    return {**mean._asdict(), **counts, "signature": convention.signature()}


def remove_old(folder: str, subset: str) -> None:
    """Remove the files of an earlier generation, so that they are not mistaken for those of one that failed."""
    for ending in ("jsonl", "json"):
        Path(folder, f"generate-{subset}.{ending}").unlink(missing_ok=True)
