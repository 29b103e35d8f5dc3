"""The sentences of one generation: texts, sentence BLEU and lag, and the worst sentences."""

from typing import Dict, List, NamedTuple, Optional

from ..console.errors import UserError
from ..scoring.records import Record, find_markers
from ..scoring.score import Score
from ..text.subwords import join_words
from .diagram import LONGEST, Panel


class Sentence(NamedTuple):
    """One sentence.  bleu: None without a reference.  dal: None for an empty hypothesis."""

    record: Record
    source: str
    hypothesis: str
    reference: Optional[str]
    bleu: Optional[float]
    dal: Optional[float]

    @property
    def drawable(self) -> bool:
        return 0 < len(self.record.delays) <= LONGEST and len(self.record.source) < LONGEST

    @property
    def scores(self) -> str:
        """For example BLEU 30.1, DAL 8.50."""
        bleu = [] if self.bleu is None else [f"BLEU {self.bleu:.1f}"]
        return ", ".join(bleu if self.dal is None else [*bleu, f"DAL {self.dal:.2f}"])


class Generation(NamedTuple):
    """The sentences of one system by their ids."""

    label: str
    sentences: Dict[int, Sentence]

    def initial_delays(self) -> List[int]:
        """g_1 of the sentences with a hypothesis."""
        return [sentence.record.delays[0] for sentence in self.sentences.values() if sentence.record.delays]

    def lowest_bleu(self, count: int) -> List[int]:
        """The ids of the sentences with the lowest BLEU that can be drawn, the lowest first."""
        scores = {i: s.bleu for i, s in self.sentences.items() if s.drawable and s.bleu is not None}
        return sorted(scores, key=lambda i: scores[i])[:count]

    def largest_dal(self, count: int) -> List[int]:
        """The ids of the sentences with the largest lag that can be drawn, the largest first."""
        lags = {i: s.dal for i, s in self.sentences.items() if s.drawable and s.dal is not None}
        return sorted(lags, key=lambda i: -lags[i])[:count]


def check_sentence(i: int, generation: Generation) -> None:
    """Raise a UserError if the generation has no such sentence or it cannot be drawn."""
    known = generation.sentences
    if i not in known:
        raise UserError(f"--sentence {i}: {generation.label} has the sentences {min(known)} to {max(known)}")
    try:
        Panel.from_record(known[i].record).checked()
    except ValueError as error:
        raise UserError(f"--sentence {i}: {error}") from None


def read_generation(label: str, score: Score) -> Generation:
    """The sentences of a score, with BLEU and DAL of each."""
    marker = find_markers(score.records).source
    hypotheses, references = score.texts
    sentences = {}
    for n, (record, latency, bleu) in enumerate(zip(score.records, score.sentences, score.sentence_bleu())):
        reference = None if references is None else references[n]
        lag = None if latency is None else latency.DAL
        source = join_words(record.source, marker)
        sentences[record.id] = Sentence(record, source, hypotheses[n], reference, bleu, lag)
    return Generation(label, sentences)
