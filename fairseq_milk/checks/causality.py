"""Does the model look ahead?  If the encoder sees the whole source, no latency figure is valid."""

import math
from typing import Dict, List, NamedTuple, Tuple

import torch
from torch import Tensor

from ..functional import expected_delays, padding_mask
from ..functional.masking import spread
from ..models.encoder import right_padded
from .energies import by_schedule, changed_energies
from .finding import FAIL, OK, SKIP, WARN, Finding
from .subject import Subject

TOLERANCE = 1e-4  # largest change of a state; states are of the order of 1


class Outcome(NamedTuple):
    h: Tensor  # (B, J, D)
    g: Tensor  # (B, I)
    features: Tensor  # (B, I, 2D), input of the output layer


@torch.no_grad()
def check_causality(subject: Subject) -> Finding:
    """Cut every source after a prefix: what depends on the prefix alone must not change."""
    model, pad = subject.model, subject.task.source_dictionary.pad()
    if not (model.decoder.attention.streaming or model.encoder.incremental):
        return Finding(SKIP, "an offline model: its encoder reads the whole source first")
    tokens, lengths = right_padded(subject.sample["net_input"]["src_tokens"], pad)
    if int(lengths.max()) < 2:
        return Finding(SKIP, "every source is a single token: there is nothing to look ahead at")
    whole = outcome(subject, tokens)
    # half of the source, or what is read before the first target token; at least one token is removed
    cut = torch.maximum(lengths // 2, whole.g[:, 0].long()).minimum(lengths - 1).clamp(min=1)
    prefix = tokens.masked_fill(padding_mask(cut, tokens.size(1)), pad)
    written = subject.written & (cut < lengths).unsqueeze(1)
    moved, compared = changes(whole, outcome(subject, prefix), cut, written)
    if subject.learned:
        forced, more = forced_changes(subject, tokens, prefix, cut, written)
        moved = {name: max(moved.get(name, 0.0), change) for name, change in {**moved, **forced}.items()}
        compared += more
    leaks = [name for name, change in moved.items() if not change < TOLERANCE]
    figures = {**moved, "tokens_cut": int((tokens != prefix).sum()), "outputs_compared": compared}
    if leaks:
        sentence = f"the source that comes later changes earlier {', '.join(leaks)}: the model looks ahead"
        return Finding(FAIL, sentence, figures)
    if compared == 0 and model.decoder.attention.streaming:
        sentence = (
            "the states of the encoder do not depend on what comes later, but outputs could not be compared: nothing "
            "is written before the end of the source"
        )
        return Finding(WARN, sentence, figures)
    return Finding(OK, "what comes later in the source changes nothing earlier", figures)


def outcome(subject: Subject, tokens: Tensor) -> Outcome:
    """States, delays and features for these sources under the hard schedule."""
    net_input = {**subject.sample["net_input"], "src_tokens": tokens}
    features, schedule = subject.model(**net_input, features_only=True, hard=True)
    return Outcome(subject.model.encoder(tokens).h, expected_delays(schedule["alpha"]), features)


def changes(whole: Outcome, prefix: Outcome, cut: Tensor, written: Tensor) -> Tuple[Dict[str, float], int]:
    """The largest change of each quantity that depends on the prefix only, and the number of outputs compared."""
    read = ~padding_mask(cut, whole.h.size(1))  # (B, J)
    decided = (whole.g <= cut.unsqueeze(1)) & written  # (B, I)
    moved = {
        "states": largest(whole.h - prefix.h, read),
        "delays": largest(whole.g - prefix.g, decided),
        "outputs": largest(whole.features - prefix.features, decided),
    }
    return moved, int(decided.sum())


def forced_changes(
    subject: Subject, tokens: Tensor, prefix: Tensor, cut: Tensor, written: Tensor
) -> Tuple[Dict[str, float], int]:
    """`changes` with a head that is forced to stop at the end of the prefix, and the change of its energies."""
    read = ~padding_mask(cut, tokens.size(1))  # (B, J)
    energies: List[Tensor] = []  # of the heads, before they are replaced

    def stop_at_cut(e: Tensor) -> Tensor:
        energies.append(e)
        return torch.where(spread(padding_mask(cut - 1, e.size(-1)), e), math.inf, -math.inf).to(e.dtype).expand_as(e)

    with changed_energies(subject.heads, stop_at_cut):
        whole, other = outcome(subject, tokens), outcome(subject, prefix)
    moved, compared = changes(whole, other, cut, written)
    half = len(energies) // 2
    change = (by_schedule(energies[:half]) - by_schedule(energies[half:])).abs().amax(1)  # (B, I, J)
    counts = read.unsqueeze(1) & written.unsqueeze(2)
    return {"energies": largest(change, counts), **moved}, compared


def largest(change: Tensor, where: Tensor) -> float:
    """max |change| over the positions that count; 0 if there are none."""
    change = change[where].abs()
    return float(change.max()) if change.numel() else 0.0
