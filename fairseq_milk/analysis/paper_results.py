"""The paper's figures (Arivazhagan et al. 2019): the tables of appendix A and of its development section."""

from typing import Dict, List, NamedTuple, Tuple


class PaperResult(NamedTuple):
    """One line of the appendix.  Latency in subword tokens of the paper's BPE; quality in detokenised, cased BLEU."""

    system: str
    setting: str
    bleu: float
    dal: float
    al: float
    ap: float


NAMES = {"deen": "WMT15 German-English, newstest2015", "enfr": "WMT14 English-French, newstest2014"}

# BLEU, DAL, AL and AP on newstest2015 (DeEn), then on newstest2014 (EnFr)
APPENDIX = """
wait-k k=2     19.5  2.5  1.5 0.56    28.9  2.9  2.1 0.57
wait-k k=4     23.8  4.2  3.1 0.63    35.6  4.5  3.7 0.63
wait-k k=6     25.3  6.1  4.9 0.70    38.4  6.5  5.5 0.70
wait-k k=8     26.7  8.1  6.8 0.75    39.8  8.4  7.5 0.75
wait-k k=10    27.3  9.9  8.8 0.80    40.5 10.3  9.4 0.80
wait-k k=12    27.6 11.7 10.6 0.84    40.6 12.1 11.3 0.84
wait-k k=14    28.1 13.3 12.3 0.87    40.9 13.9 13.0 0.87
wait-k k=16    28.3 14.9 14.0 0.89    40.7 15.5 14.7 0.89
wait-k k=20    28.6 17.6 16.9 0.93    41.1 18.3 17.7 0.93
wait-k k=24    28.5 19.9 19.3 0.95    41.1 20.8 20.3 0.96
wait-k k=300   28.4 27.9 27.9 1.00    40.6 28.8 28.8 1.00
MoChA  w=1     26.0  6.9  4.7 0.68    37.7  5.5  3.4 0.63
MoChA  w=2     25.6  6.2  4.0 0.66    37.3  5.4  3.3 0.62
MoChA  w=4     26.0  6.4  4.2 0.67    37.1  5.6  3.6 0.63
MoChA  w=8     26.4  7.4  5.1 0.70    38.1  6.8  4.5 0.66
MoChA  w=16    26.6  8.4  5.9 0.72    38.6  7.9  5.1 0.69
MILk   λ=0.75  25.3  4.1  2.8 0.60
MILk   λ=0.5   26.4  5.1  3.5 0.63    37.9  4.6  3.1 0.61
MILk   λ=0.4   26.9  5.7  4.0 0.64    38.7  4.9  3.3 0.61
MILk   λ=0.3   27.4  6.7  4.7 0.67    39.1  5.2  3.6 0.63
MILk   λ=0.2   28.4  8.5  6.0 0.71    39.6  5.8  4.0 0.64
MILk   λ=0.1   28.5 10.3  7.5 0.76    40.5  7.2  5.1 0.68
MILk   λ=0.05  28.5 12.6  9.5 0.81    40.9  8.4  6.2 0.71
MILk   λ=0.01  28.6 24.4 22.7 0.97    40.7 17.9 14.8 0.89
MILk   λ=0     28.4 27.9 27.9 1.00    40.5 28.8 28.8 1.00
"""


def _column(first: int) -> List[PaperResult]:
    """The results of one test set, whose figures begin at this word of each line."""
    lines = [line.split() for line in APPENDIX.strip().splitlines()]
    return [PaperResult(line[0], line[1], *map(float, line[first : first + 4])) for line in lines if len(line) > first]


TEST_SETS: Dict[str, List[PaperResult]] = {"deen": _column(2), "enfr": _column(6)}

# On the DeEn development set: lambda -> BLEU and DAL without mass preservation, then with it
PRESERVATION: Dict[float, Tuple[float, float, float, float]] = {
    0.0: (27.7, 21.0, 27.7, 27.9),
    0.1: (27.0, 13.6, 27.6, 10.5),
    0.2: (25.7, 11.6, 27.5, 8.7),
}

# On the DeEn development set at lambda = 0.2: the noise n -> BLEU and DAL
NOISE: Dict[int, Tuple[float, float]] = {
    0: (3.4, 24.2),
    1: (10.8, 12.9),
    2: (24.6, 12.3),
    3: (27.5, 10.4),
    4: (27.5, 8.7),
    6: (26.3, 7.2),
}
