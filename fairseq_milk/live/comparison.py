"""Compares an exported model with its checkpoint."""

import copy
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ..checks.streaming import decoded, streamed
from ..checks.subject import spread
from ..generation.schedule import DecodingOptions
from ..generation.session import StreamingSession
from ..scoring.records import Record
from ..scoring.score import score_records
from ..text.subwords import find_marker, join_words
from .translator import Translator

OPTIONS = DecodingOptions(max_len_a=2.0, max_len_b=20)  # ends translations that do not end by themselves


class Comparison(NamedTuple):
    """The comparison of an exported model with its checkpoint on sentences of the data."""

    sentences: int
    different: int  # sentences with other tokens or delays
    bleu: Optional[float] = None  # of the exported model, if there are references
    checkpoint_bleu: Optional[float] = None
    ties: int = 0  # sentences equal to the checkpoint in float64 only, because two candidates were too close in float32

    def __str__(self) -> str:
        same = self.sentences - self.different
        said = f"{same} of {self.sentences} sentences have the checkpoint's tokens and delays"
        said += f" ({self.ties} of them those of float64)" if self.ties else ""
        if self.bleu is None or self.checkpoint_bleu is None:
            return said
        return f"{said}; BLEU {self.bleu:.2f}, of the checkpoint {self.checkpoint_bleu:.2f}"


def compare(translator: Translator, model: Any, task: Any, subset: str, sentences: int) -> Comparison:
    """Compare tokens and delays on sentences spread over the data set, and BLEU if there are references."""
    task.load_dataset(subset)
    dataset = task.datasets[subset]
    pairs = [dataset[index] for index in spread(len(dataset), sentences)]
    count, sources = len(pairs), [pair["source"].tolist() for pair in pairs]
    wanted = decoded(model, dataset, pairs, OPTIONS)
    settings = {"max_len_a": OPTIONS.max_len_a, "max_len_b": OPTIONS.max_len_b}
    found = [streamed(translator.token_session(**settings), source) for source in sources]
    differing = [index for index in range(count) if found[index] != wanted[index]]
    ties = _ties(model, [(sources[index], found[index]) for index in differing])
    different = len(differing) - ties
    if not pairs or pairs[0].get("target") is None:
        return Comparison(count, different, ties=ties)
    references = [_text(task, pair["target"].tolist()) for pair in pairs]
    bleu, before = (_bleu([_text(task, tokens) for tokens, _ in one], references) for one in (found, wanted))
    return Comparison(count, different, bleu, before, ties)


def _ties(model: Any, differing: Sequence[Tuple[List[int], Any]]) -> int:
    """The number of these translations that equal those of the checkpoint in float64."""
    exact = copy.deepcopy(model).double() if differing else model
    return sum(streamed(StreamingSession(exact, OPTIONS), source) == found for source, found in differing)


def _text(task: Any, tokens: Sequence[int]) -> str:
    dictionary = task.target_dictionary
    symbols = [dictionary[token] for token in tokens if token != dictionary.eos()]
    return join_words(symbols, find_marker([dictionary.symbols]))


def _bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    records = [Record(n, [], [], [], text=text) for n, text in enumerate(texts)]
    return score_records(records, references, no_latency="the delays are compared one by one").figure("BLEU")
