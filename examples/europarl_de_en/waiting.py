"""Measures how long a system waits for late German words, and which words it writes too early.

Late words are verbs at the end of a clause and the particles of separable verbs (verbs.py).  A written word belongs to
the source words that it is aligned with (word_alignment.py); words without alignment are not counted.  For both groups:

    lag      g - i / gamma: source tokens read, minus those of a system that reads and writes at a constant rate
    reads    source tokens read just before the word was written
    early    share of the words that were written before the last source word they are aligned with was read
    follows  words written between a source word and the next one; needs no alignment
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from examples.europarl_de_en.verbs import late_words
from examples.europarl_de_en.word_alignment import Links, Pair
from fairseq_milk.scoring.bootstrap import Sample
from fairseq_milk.scoring.records import Markers, Record, find_markers
from fairseq_milk.text.subwords import join_words, word_ends, word_starts

MEASURES = ("lag", "reads", "early", "follows")


class Word(NamedTuple):
    """The measurement of one word: its group, its part of speech, and the figures."""

    late: bool
    tag: str
    values: Dict[str, float]


def written_words(record: Record, links: Links, tags: Sequence[str], markers: Markers) -> List[Word]:
    """Lag, reads and early of the aligned words of the hypothesis."""
    late, ends = late_words(tags), word_ends(record.source, markers.source)
    starts = [i for i, begins in enumerate(word_starts(record.hypothesis, markers.target)) if begins]
    gamma = (len(record.hypothesis) + 1) / (len(record.source) + 1)
    words = []
    for number, i in enumerate(starts):
        sources = sorted(source for source, target in links if target == number)
        if sources:
            g, before = record.delays[i], record.delays[i - 1] if i else 0
            needed = ends[sources[-1]] + 1
            values = {"lag": g - i / gamma, "reads": float(g - before), "early": float(g < needed)}
            words.append(Word(bool(late & set(sources)), tags[sources[-1]], values))
    return words


def read_words(record: Record, tags: Sequence[str], markers: Markers) -> List[Word]:
    """`follows` of the source words: how many words were written between the end of each and the end of the next."""
    late, ends = late_words(tags), [*word_ends(record.source, markers.source), len(record.source) + 1]
    starts = [i for i, begins in enumerate(word_starts(record.hypothesis, markers.target)) if begins]
    delays = [record.delays[i] for i in starts]
    counts = [sum(ends[j] < g <= ends[j + 1] for g in delays) for j in range(len(tags))]
    return [Word(j in late, tag, {"follows": float(counts[j])}) for j, tag in enumerate(tags)]


Sentences = List[List[Word]]  # the words of each sentence


def sample(sentences: Sentences, measure: str, late: Optional[bool]) -> Sample:
    """The mean of a measure over the words of a group; late None: the mean over late words minus that over others."""
    sums = np.zeros((len(sentences), 4))
    for row, words in zip(sums, sentences):
        for word in words:
            if measure in word.values:
                row[[0, 1] if word.late else [2, 3]] += (word.values[measure], 1.0)

    def mean(total: np.ndarray) -> float:
        with np.errstate(invalid="ignore", divide="ignore"):
            late_mean, other_mean = total[0] / total[1], total[2] / total[3]
        return float(late_mean - other_mean if late is None else late_mean if late else other_mean)

    return Sample(sums, mean)


def measure(
    records: Sequence[Record], links: Sequence[Links], tag: Callable[[Sequence[str]], Sequence[str]]
) -> Sentences:
    """All words of a system's sentences."""
    markers, sentences = find_markers(records), []
    for record, found in zip(records, links):
        tags = tag(join_words(record.source, markers.source).split())
        sentences.append(written_words(record, found, tags, markers) + read_words(record, tags, markers))
    return sentences


def word_pairs(records: Sequence[Record]) -> List[Pair]:
    markers = find_markers(records)
    return [
        (join_words(r.source, markers.source).split(), join_words(r.hypothesis, markers.target).split())
        for r in records
    ]
