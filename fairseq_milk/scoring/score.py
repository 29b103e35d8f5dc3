"""Scores a generation: BLEU, chrF and all latency metrics of its records, with intervals and signatures.

    score = score_file("generate-test.jsonl")  # or score_records(records)
    score.figure("BLEU"), score.interval("DAL"), score.signature("DAL")

Latency is computed when the score is created; BLEU, chrF and the intervals when they are first used.
`fairseq-generate`, `score`, `compare`, `sweep`, `report` and the examples format this score.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import sacrebleu

from ..console.errors import UserError
from .bootstrap import RESAMPLES, SEED, Interval, Sample, corpus_sample, interval, mean_sample
from .generate_log import read_generate_log
from .latency import PAPER, Convention, CorpusLatency, Latency, sentence_latency, summarise
from .records import Record
from .texts import Texts, published_references, texts_of

QUALITIES = ("BLEU", "chrF")
MEASURES = (*QUALITIES, *Latency._fields)


@dataclass(frozen=True)
class Metrics:
    """The settings of the metrics: the convention of latency, sacreBLEU's tokenizer and case."""

    convention: Convention = PAPER
    tokenize: str = "13a"
    lowercase: bool = False

    @classmethod
    def from_signatures(cls, bleu: str, latency: str) -> "Metrics":
        """The settings of an earlier score.  An empty signature stands for the defaults."""
        convention = Convention.from_signature(latency) if latency else PAPER
        try:
            parts = dict(part.split(":", 1) for part in bleu.split("|")) if bleu else {"tok": "13a", "case": "mixed"}
            metrics = cls(convention, parts["tok"], parts["case"] == "lc")
        except (LookupError, ValueError):
            raise UserError(f"'{bleu:.100}' is not a signature of BLEU") from None
        if metrics.tokenize not in sacrebleu.BLEU.TOKENIZERS:
            raise UserError(f"'{bleu:.100}' names a tokeniser that this sacreBLEU does not have")
        return metrics

    def metric(self, name: str, of_sentences: bool = False) -> Any:
        """A new sacreBLEU metric for 'BLEU' or 'chrF'.  of_sentences: BLEU with the order of a short sentence."""
        if name == "BLEU":
            return sacrebleu.BLEU(tokenize=self.tokenize, lowercase=self.lowercase, effective_order=of_sentences)
        return sacrebleu.CHRF(lowercase=self.lowercase)


DEFAULTS = Metrics()


class Score:
    """A scored generation, returned by `score_records`.

    records: in the order of their ids.  sentences: the latency of each record, None if undefined.  latency: the means;
    None if there are none, and then `no_latency` is the reason in one sentence.
    """

    def __init__(self, records: Sequence[Record], texts: Texts, metrics: Metrics, no_latency: Optional[str]) -> None:
        self.records, self.texts, self.metrics, self.no_latency = records, texts, metrics, no_latency
        self.sentences: List[Optional[Latency]] = [None] * len(records)
        self.latency: Optional[CorpusLatency] = None
        self._samples: Dict[str, Optional[Sample]] = {}
        self._quality = {name: metrics.metric(name) for name in QUALITIES}
        if no_latency is None:
            try:
                self.sentences = sentence_latency(records, metrics.convention)
                self.latency = summarise(self.sentences, metrics.convention)
            except ValueError as error:  # all hypotheses are empty, or the convention needs references
                self.no_latency = str(error)

    def sample(self, name: str) -> Optional[Sample]:
        """The statistics that are resampled for intervals and comparisons of a metric; None if it is not available."""
        if name not in self._samples:
            self._samples[name] = self._make_sample(name)
        return self._samples[name]

    def _make_sample(self, name: str) -> Optional[Sample]:
        if name in QUALITIES:
            hypotheses, references = self.texts
            return corpus_sample(self._quality[name], hypotheses, references) if references else None
        if self.latency is None:
            return None
        return mean_sample([None if latency is None else getattr(latency, name) for latency in self.sentences])

    def figure(self, name: str) -> float:
        """The corpus score of a metric; nan if it is not available."""
        if name not in QUALITIES:
            return math.nan if self.latency is None else float(getattr(self.latency.mean, name))
        sample = self.sample(name)
        return math.nan if sample is None else sample.corpus_score()

    def interval(self, name: str, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
        """The corpus score with its 95 % interval; the bounds are nan for 0 resamples."""
        sample = self.sample(name)
        if sample is None or not resamples:
            return Interval(self.figure(name), math.nan, math.nan)
        return interval(sample, resamples, seed)._replace(score=self.figure(name))

    def sentence_bleu(self) -> List[Optional[float]]:
        """BLEU of each record with sacreBLEU's effective order; None without references."""
        hypotheses, references = self.texts
        if references is None:
            return [None] * len(hypotheses)
        bleu = self.metrics.metric("BLEU", of_sentences=True)
        return [bleu.sentence_score(text, [reference]).score for text, reference in zip(hypotheses, references)]

    def signature(self, name: str) -> str:
        """The signature of a metric; empty if it is not available."""
        if self.sample(name) is None:
            return ""
        return str(self._quality[name].get_signature()) if name in QUALITIES else self.metrics.convention.signature()

    def format(self) -> str:
        """The line that fairseq-generate prints: BLEU = ... (signature) | AP ... AL ... DAL ... (signature)."""
        return f"{self.bleu_string()} | {self.latency_string()}"

    def bleu_string(self) -> str:
        sample = self.sample("BLEU")
        if sample is None:
            return "no BLEU: there are no references"
        return f"{sample.result(sample.statistics.sum(0)).format()} ({self.signature('BLEU')})"

    def latency_string(self) -> str:
        return f"no latency: {self.no_latency}" if self.latency is None else self.latency.format()


def score_records(
    records: Sequence[Record],
    references: Optional[Sequence[str]] = None,
    metrics: Metrics = DEFAULTS,
    no_latency: Optional[str] = None,
) -> Score:
    """The score of a generation.

    references: one per record in the given order, instead of those of the records.  no_latency: the reason why latency
    cannot be computed from the records, if that is known.
    """
    order = sorted(range(len(records)), key=lambda n: records[n].id)
    ordered = [records[n] for n in order]
    texts = texts_of(ordered)
    if references is not None:
        if len(references) != len(records):
            raise ValueError(f"there are {len(records)} sentences, but {len(references)} references")
        texts = texts._replace(references=[references[n] for n in order])
    return Score(ordered, texts, metrics, no_latency)


def score_file(path: str, metrics: Metrics = DEFAULTS, references: Optional[Path] = None) -> Score:
    """The score of a log of fairseq-generate or of generate-<subset>.jsonl.

    references: the published text of the test set, instead of the references of the records.
    """
    log = read_generate_log(path)
    published = None if references is None else published_references(log.records, references)
    return score_records(log.records, published, metrics, log.no_latency)
