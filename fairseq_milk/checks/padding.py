"""Does the side of the padding change the result?  By default fairseq pads the source on the left."""

import torch
from fairseq.data.data_utils import collate_tokens

from ..functional import padding_mask
from .causality import TOLERANCE, largest
from .finding import FAIL, OK, Finding
from .subject import Subject


@torch.no_grad()
def check_padding(subject: Subject) -> Finding:
    """The encoder returns the same states with and without --left-pad-source; targets are padded on the right."""
    if subject.dataset.left_pad_target:
        return Finding(FAIL, "--left-pad-target: delays are counted from the first target token, not padding")
    sources, pad = [pair["source"] for pair in subject.tried], subject.task.source_dictionary.pad()
    left, right = (subject.model.encoder(collate_tokens(sources, pad, left_pad=side)) for side in (True, False))
    lengths = torch.tensor([len(source) for source in sources])
    moved = largest(left.h - right.h, ~padding_mask(lengths, right.h.size(1)))
    side = "left" if subject.dataset.left_pad_source else "right"
    figures = {"states": moved, "source": side}
    if not moved < TOLERANCE:
        sentence = f"the states of the encoder depend on the side of the padding (--left-pad-source; here: {side})"
        return Finding(FAIL, sentence, figures)
    return Finding(OK, f"sources are padded on the {side}, and the other side would change nothing", figures)
