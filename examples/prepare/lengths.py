"""Checks whether latency on the prepared data can be compared with the paper's.

A system that reads everything before it writes has DAL = AL = |x|, so its mean on a test set is the mean length of the
sources in subwords with EOS.  The paper's tables have that row.  If our mean differs, the text was segmented
differently, and a lag of 8 tokens is another amount of speech.
"""

from pathlib import Path
from typing import Iterator, NamedTuple

from examples.prepare.recipe import Corpus

TOLERANCE = 0.03


class Length(NamedTuple):
    split: str
    mean: float
    paper: float

    @property
    def deviation(self) -> float:
        return self.mean / self.paper - 1

    def sentence(self) -> str:
        figures = (
            f"{self.split}: {self.mean:.1f} subwords per source sentence with EOS; the paper's full-read DAL is "
            f"{self.paper:.1f} ({self.deviation:+.1%})"
        )
        if abs(self.deviation) <= TOLERANCE:
            return figures
        return (
            f"{figures}: more than {TOLERANCE:.0%} apart, so latency on these data cannot be compared with the paper's "
            "tables; look for the cause (tokenisation, number of BPE operations, another test set) before you train"
        )


def mean_length(path: Path) -> float:
    """The mean number of subwords per line, with EOS."""
    with open(path, "rb") as file:
        lengths = [len(line.split()) + 1 for line in file]
    return sum(lengths) / len(lengths)


def lengths(corpus: Corpus, segmented: Path) -> Iterator[Length]:
    for split, paper in corpus.full_read.items():
        yield Length(split, mean_length(segmented / f"{split}.{corpus.source}"), paper)
