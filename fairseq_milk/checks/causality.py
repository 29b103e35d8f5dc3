"""Does anything look ahead?  An encoder that sees the whole source makes every latency figure worthless."""

from typing import Any, Tuple

import torch
from torch import Tensor

from ..functional import expected_delays, padding_mask
from ..models.encoder import right_padded
from .finding import FAIL, OK, SKIP, Finding
from .subject import Subject

TOLERANCE = 1e-4  # of states, which are of the order of 1


@torch.no_grad()
def check_causality(subject: Subject) -> Finding:
    """The second half of every source is exchanged: no earlier state, delay or output may move."""
    model, dictionary = subject.model, subject.task.source_dictionary
    if not (model.decoder.attention.streaming or model.encoder.incremental):
        return Finding("causality", SKIP, "an offline model: its encoder reads the whole source first")
    tokens, lengths = right_padded(subject.sample["net_input"]["src_tokens"], dictionary.pad())
    cut = (lengths // 2).clamp(min=1)
    other = exchanged(tokens, lengths, cut, dictionary)
    h, g, features = outcome(subject, tokens)
    h_other, g_other, features_other = outcome(subject, other)
    read = ~padding_mask(cut, h.size(1))  # (B, J)
    decided = (g <= cut.unsqueeze(1)) & subject.written  # (B, I), written before the exchanged tokens were read
    moved = {
        "states": largest(h - h_other, read),
        "delays": largest(g - g_other, decided),
        "outputs": largest(features - features_other, decided),
    }
    leaks = [name for name, change in moved.items() if not change < TOLERANCE]
    figures = {**moved, "tokens_exchanged": int((tokens != other).sum()), "outputs_compared": int(decided.sum())}
    if leaks:
        sentence = f"other source tokens later on change earlier {', '.join(leaks)}: the model looks ahead"
        return Finding("causality", FAIL, sentence, figures)
    return Finding("causality", OK, "other source tokens later on change nothing earlier", figures)


def exchanged(tokens: Tensor, lengths: Tensor, cut: Tensor, dictionary: Any) -> Tensor:
    """Every word from position `cut` on becomes the next of the dictionary; EOS stays.  (B, J) -> (B, J)."""
    first, size = dictionary.nspecial, tokens.size(1)
    words = len(dictionary) - first
    later = padding_mask(cut, size) & ~padding_mask(lengths - 1, size)
    return torch.where(later, (tokens - first + 1) % words + first, tokens)


def outcome(subject: Subject, tokens: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """h: (B, J, D), g: (B, I) and the features of the output layer: (B, I, 2D), under the hard schedule."""
    net_input = {**subject.sample["net_input"], "src_tokens": tokens}
    features, schedule = subject.model(**net_input, features_only=True, hard=True)
    return subject.model.encoder(tokens).h, expected_delays(schedule["alpha"]), features


def largest(change: Tensor, where: Tensor) -> float:
    """max |change| over the positions that count; 0 if there are none."""
    change = change[where].abs()
    return float(change.max()) if change.numel() else 0.0
