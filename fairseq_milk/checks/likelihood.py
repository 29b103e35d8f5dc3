"""Is this the data of the model?  With another dictionary of the same size it loads, but its output is wrong."""

import math
from collections import Counter
from typing import Any, Dict, List, Optional

import torch
from torch import Tensor

from ..functional.output_loss import label_smoothed_nll
from .finding import FAIL, OK, UNTRAINED, WARN, Finding
from .subject import Subject

CLEARLY = 0.1  # share by which the right source must lower the NLL; with a permuted dictionary up to 0.05 was seen


def check_likelihood(subject: Subject) -> Finding:
    """The NLL per token is below that of a uniform distribution and of the word frequencies, in nats.

    It must also be clearly below the NLL given the sources of other sentences: a decoder that ignores its source can
    still be better than the frequencies.
    """
    if not subject.trained:
        return UNTRAINED
    with torch.no_grad():
        nll, unrelated = float(nll_per_token(subject)), nll_of_other_sources(subject)
    frequencies = Counter(token for pair in subject.lines for token in pair["target"].tolist())
    guess, ignorance = entropy(frequencies), math.log(len(subject.task.target_dictionary))
    figures = {"nll": nll, "other_sources": unrelated, "frequencies": guess, "uniform": ignorance}
    cost = f"the references cost the model {nll:.2f} nats per token"
    if not nll < ignorance:
        sentence = (
            f"{cost}, more than words drawn at random ({ignorance:.2f}): these are not the dictionaries or the data "
            "that it was trained with"
        )
        return Finding(FAIL, sentence, figures)
    if nll > guess:
        sentence = f"{cost}, more than words drawn by their frequency ({guess:.2f}): it has learned little so far"
        return Finding(WARN, sentence, figures)
    if unrelated is not None and not nll < (1 - CLEARLY) * unrelated:
        sentence = (
            f"{cost}, and {unrelated:.2f} with the sources of other sentences: this is not its source dictionary, or "
            "it has not learned to read the source"
        )
        return Finding(FAIL, sentence, figures)
    others = "" if unrelated is None else f", other sources {unrelated:.2f}"
    return Finding(OK, f"{cost}, words drawn by their frequency would cost {guess:.2f}{others}", figures)


def nll_of_other_sources(subject: Subject) -> Optional[float]:
    """-log p(y|x') per token, x' another source of about the length of x; None if all sources are the same."""
    sources = [pair["source"] for pair in subject.lines]
    others: List[Dict[str, Any]] = []
    for pair in subject.tried:
        different = [x for x in sources if not torch.equal(x, pair["source"])]
        if not different:
            return None
        others.append({**pair, "source": min(different, key=lambda x: abs(len(x) - len(pair["source"])))})
    return float(nll_per_token(subject, subject.dataset.collater(others)))


def nll_per_token(subject: Subject, sample: Optional[Dict[str, Any]] = None) -> Tensor:
    """-log p(y|x) / |y| of the batch, in nats.  The schedule is hard if the model is in evaluation mode."""
    sample = subject.sample if sample is None else sample
    features = subject.model(**sample["net_input"], features_only=True)[0]
    output, target = subject.model.decoder.output, sample["target"].flatten()
    padding = subject.task.target_dictionary.pad()
    sums = label_smoothed_nll(output.project(features).flatten(0, 1), output.weight, output.bias, target, 0.0, padding)
    nll: Tensor = sums.loss / sample["ntokens"]
    return nll


def entropy(counts: "Counter[int]") -> float:
    """-sum_v q_v log q_v of the relative frequencies q."""
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values())
