"""What `fairseq-generate --results-path` leaves beside fairseq's own file: a line a sentence and a summary, as JSON."""

import json
import os
from typing import Any, Dict, List, Optional, Sequence

import sacrebleu

from ..console.files import write_atomically
from ..scoring import PAPER, Convention, Latency, Record, sentence_latency, summarise
from ..version import __version__

PER_SENTENCE = ("AP", "AL", "DAL")


class Results:
    """A finished generation, scored.

    scoring: an object with a `convention` of latency and sacreBLEU's `bleu`; None for the defaults.
    about: what else a reader should know, put into the summary as it is.
    """

    def __init__(self, records: Sequence[Record], scoring: Any, about: Dict[str, Any]) -> None:
        self.records = sorted(records, key=lambda record: record.id)
        self.convention: Convention = PAPER if scoring is None else scoring.convention
        self.bleu: sacrebleu.BLEU = sacrebleu.BLEU() if scoring is None else scoring.bleu
        self.about = about
        self.no_latency: Optional[str] = None
        self.sentences: List[Optional[Latency]] = [None] * len(self.records)
        try:
            self.sentences = sentence_latency(self.records, self.convention)
            self.corpus = summarise(self.sentences, self.convention)
        except ValueError as error:  # nothing but empty hypotheses, or no references where the convention wants them
            self.no_latency = str(error)

    def latency_string(self) -> str:
        return f"no latency: {self.no_latency}" if self.no_latency else self.corpus.format()

    def summary(self) -> Dict[str, Any]:
        """Everything about the corpus; BLEU and latency are null where they cannot be had."""
        return {
            **self.about,
            "sentences": len(self.records),
            "BLEU": self._bleu(),
            "latency": self._latency(),
            "version": __version__,
        }

    def lines(self) -> List[Dict[str, Any]]:
        """One sentence each: its record, and its latency with the signature."""
        return [
            {**record.to_dict(), **_figures(latency), "signature": self.convention.signature()}
            for record, latency in zip(self.records, self.sentences)
        ]

    def write(self, folder: str, subset: str) -> None:
        """generate-<subset>.jsonl and generate-<subset>.json."""
        base = os.path.join(folder, f"generate-{subset}")
        write_atomically(base + ".jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines()))
        write_atomically(base + ".json", json.dumps(self.summary(), indent=2, ensure_ascii=False) + "\n")

    def _bleu(self) -> Optional[Dict[str, Any]]:
        references = [record.reference_text for record in self.records if record.reference_text is not None]
        if len(references) < len(self.records):
            return None
        score = self.bleu.corpus_score([record.text or "" for record in self.records], [references])
        return {"score": score.score, "signature": str(self.bleu.get_signature())}

    def _latency(self) -> Optional[Dict[str, Any]]:
        if self.no_latency is not None:
            return None
        counts = {"measured": self.corpus.measured, "skipped": self.corpus.skipped}
        return {**self.corpus.mean._asdict(), **counts, "signature": self.convention.signature()}


def remove_old(folder: str, subset: str) -> None:
    """The files of an earlier generation, so that they are never taken for those of one that failed."""
    for ending in ("jsonl", "json"):
        try:
            os.remove(os.path.join(folder, f"generate-{subset}.{ending}"))
        except FileNotFoundError:
            pass


def _figures(latency: Optional[Latency]) -> Dict[str, Optional[float]]:
    return {name: None if latency is None else getattr(latency, name) for name in PER_SENTENCE}
