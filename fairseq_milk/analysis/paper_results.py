"""The paper's own figures (Arivazhagan et al. 2019): the tables of appendix A and those of its development section."""

from typing import Dict, List, Mapping, NamedTuple, Tuple

Scores = Tuple[float, float, float, float]  # BLEU, DAL, AL, AP


class PaperResult(NamedTuple):
    """One line of the appendix.  Latency in subword tokens of the paper's BPE; quality in detokenised, cased BLEU."""

    system: str
    setting: str
    bleu: float
    dal: float
    al: float
    ap: float


def _lines(system: str, name: str, scores: Mapping[str, Scores]) -> List[PaperResult]:
    return [PaperResult(system, f"{name}={value}", *line) for value, line in scores.items()]


NAMES = {"deen": "WMT15 German-English, newstest2015", "enfr": "WMT14 English-French, newstest2014"}

TEST_SETS: Dict[str, List[PaperResult]] = {
    "deen": [
        *_lines(
            "wait-k",
            "k",
            {
                "2": (19.5, 2.5, 1.5, 0.56),
                "4": (23.8, 4.2, 3.1, 0.63),
                "6": (25.3, 6.1, 4.9, 0.70),
                "8": (26.7, 8.1, 6.8, 0.75),
                "10": (27.3, 9.9, 8.8, 0.80),
                "12": (27.6, 11.7, 10.6, 0.84),
                "14": (28.1, 13.3, 12.3, 0.87),
                "16": (28.3, 14.9, 14.0, 0.89),
                "20": (28.6, 17.6, 16.9, 0.93),
                "24": (28.5, 19.9, 19.3, 0.95),
                "300": (28.4, 27.9, 27.9, 1.00),
            },
        ),
        *_lines(
            "MoChA",
            "w",
            {
                "1": (26.0, 6.9, 4.7, 0.68),
                "2": (25.6, 6.2, 4.0, 0.66),
                "4": (26.0, 6.4, 4.2, 0.67),
                "8": (26.4, 7.4, 5.1, 0.70),
                "16": (26.6, 8.4, 5.9, 0.72),
            },
        ),
        *_lines(
            "MILk",
            "λ",
            {
                "0.75": (25.3, 4.1, 2.8, 0.60),
                "0.5": (26.4, 5.1, 3.5, 0.63),
                "0.4": (26.9, 5.7, 4.0, 0.64),
                "0.3": (27.4, 6.7, 4.7, 0.67),
                "0.2": (28.4, 8.5, 6.0, 0.71),
                "0.1": (28.5, 10.3, 7.5, 0.76),
                "0.05": (28.5, 12.6, 9.5, 0.81),
                "0.01": (28.6, 24.4, 22.7, 0.97),
                "0": (28.4, 27.9, 27.9, 1.00),
            },
        ),
    ],
    "enfr": [
        *_lines(
            "wait-k",
            "k",
            {
                "2": (28.9, 2.9, 2.1, 0.57),
                "4": (35.6, 4.5, 3.7, 0.63),
                "6": (38.4, 6.5, 5.5, 0.70),
                "8": (39.8, 8.4, 7.5, 0.75),
                "10": (40.5, 10.3, 9.4, 0.80),
                "12": (40.6, 12.1, 11.3, 0.84),
                "14": (40.9, 13.9, 13.0, 0.87),
                "16": (40.7, 15.5, 14.7, 0.89),
                "20": (41.1, 18.3, 17.7, 0.93),
                "24": (41.1, 20.8, 20.3, 0.96),
                "300": (40.6, 28.8, 28.8, 1.00),
            },
        ),
        *_lines(
            "MoChA",
            "w",
            {
                "1": (37.7, 5.5, 3.4, 0.63),
                "2": (37.3, 5.4, 3.3, 0.62),
                "4": (37.1, 5.6, 3.6, 0.63),
                "8": (38.1, 6.8, 4.5, 0.66),
                "16": (38.6, 7.9, 5.1, 0.69),
            },
        ),
        *_lines(
            "MILk",
            "λ",
            {
                "0.5": (37.9, 4.6, 3.1, 0.61),
                "0.4": (38.7, 4.9, 3.3, 0.61),
                "0.3": (39.1, 5.2, 3.6, 0.63),
                "0.2": (39.6, 5.8, 4.0, 0.64),
                "0.1": (40.5, 7.2, 5.1, 0.68),
                "0.05": (40.9, 8.4, 6.2, 0.71),
                "0.01": (40.7, 17.9, 14.8, 0.89),
                "0": (40.5, 28.8, 28.8, 1.00),
            },
        ),
    ],
}

# On the DeEn development set: lambda -> BLEU and DAL without mass preservation, then with it
PRESERVATION: Dict[float, Scores] = {
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
