"""Are source and target the right way round?"""

from typing import Any, Dict, Optional

import torch

from .finding import FAIL, OK, SKIP, WARN, Finding
from .likelihood import nll_per_token
from .subject import Subject

FOREIGN = 0.3  # share of unknown words above which the text is of another language or segmentation
RARE = 0.05  # share of unknown words above which the check warns


def check_direction(subject: Subject) -> Finding:
    """Each dictionary covers its side; with one dictionary for both, the model predicts this direction better."""
    unknown = {side: unknown_words(subject, side) for side in ("source", "target")}
    figures: Dict[str, Any] = {"unknown": unknown, "nll": None}
    shares = f"{unknown['source']:.1%} of the source and {unknown['target']:.1%} of the target words are unknown"
    if max(unknown.values()) > FOREIGN:
        swapped = min(unknown.values()) > FOREIGN
        why = "source and target seem to be swapped" if swapped else "the dictionary was made from another text"
        return Finding(FAIL, f"{shares}: {why}", figures)
    figures["nll"] = both_directions(subject)
    if figures["nll"] and figures["nll"]["swapped"] < figures["nll"]["given"]:
        sentence = (
            "the model predicts the source from the target better than the target from the source "
            f"({figures['nll']['swapped']:.2f} and {figures['nll']['given']:.2f} nats per token): they are swapped"
        )
        return Finding(FAIL, sentence, figures)
    checked = subject.trained or not one_dictionary(subject)
    if not checked:
        shares += "; not checked: with one dictionary for both sides only a trained model can tell them apart"
    status = WARN if max(unknown.values()) > RARE else OK if checked else SKIP
    return Finding(status, shares, figures)


def unknown_words(subject: Subject, side: str) -> float:
    """The share of UNK among the words of this side."""
    unk = subject.task.source_dictionary.unk()  # fairseq has the same on both sides
    words = sum(len(pair[side]) - 1 for pair in subject.lines)  # without EOS
    return sum(int(pair[side].eq(unk).sum()) for pair in subject.lines) / max(words, 1)


def one_dictionary(subject: Subject) -> bool:
    """Whether both sides have the same dictionary, so that swapped sides would have no unknown words."""
    return bool(subject.task.source_dictionary == subject.task.target_dictionary)


@torch.no_grad()
def both_directions(subject: Subject) -> Optional[Dict[str, float]]:
    """-log p per token of the data as given and swapped; None for an untrained model or two dictionaries."""
    if not (subject.trained and one_dictionary(subject)):
        return None
    turned = [{**pair, "source": pair["target"], "target": pair["source"]} for pair in subject.tried]
    swapped = subject.dataset.collater(turned)
    return {"given": float(nll_per_token(subject)), "swapped": float(nll_per_token(subject, swapped))}
