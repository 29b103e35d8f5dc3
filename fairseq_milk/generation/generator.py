"""The generator for `fairseq-generate` and `fairseq-interactive`: the batched decoder with fairseq's interface."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq.sequence_generator import SequenceGeneratorWithAlignment
from torch import Tensor, nn

from ..models.encoder import right_padded
from .batch import Hypothesis, translate
from .schedule import DecodingOptions


class SimultaneousGenerator(nn.Module):
    """Decodes greedily.  Each hypothesis has fairseq's keys, `delays` and, if requested, `soft_attention`.

    alignment: None, "hard" or "soft", fairseq's --print-alignment.
    """

    def __init__(
        self,
        dictionary: Any,
        options: DecodingOptions,
        alignment: Optional[str] = None,
        attention: bool = False,
        length_penalty: float = 1.0,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.symbols_to_strip_from_output = {self.eos}
        self.options, self.alignment = options, alignment
        self.attention = attention or alignment is not None
        self.length_penalty = length_penalty if normalise else 0.0

    @torch.no_grad()
    def generate(self, models: List[Any], sample: Dict[str, Any], **kwargs: Any) -> List[List[Dict[str, Any]]]:
        """One hypothesis per sentence.  kwargs: arguments of fairseq for beam search, ignored here."""
        (model,) = models
        src_tokens = sample["net_input"]["src_tokens"]
        lengths = src_tokens.ne(self.pad).sum(1).tolist()
        hypotheses = translate(model, src_tokens, self.options, self.attention)
        return [[self._finish(hypothesis, length)] for hypothesis, length in zip(hypotheses, lengths)]

    def _finish(self, hypothesis: Hypothesis, src_length: int) -> Dict[str, Any]:
        scores = torch.tensor(hypothesis.scores)
        result: Dict[str, Any] = {
            "tokens": torch.tensor(hypothesis.tokens),
            "score": scores.sum() / len(hypothesis.scores) ** self.length_penalty,
            "positional_scores": scores,
            "attention": None,
            "alignment": self._align(hypothesis.attention, src_length),
            "delays": hypothesis.delays,
            "steps": " ".join(map(str, hypothesis.delays)),
        }
        if self.attention:
            result["soft_attention"] = hypothesis.attention
        return result

    def _align(self, attention: List[List[float]], src_length: int) -> List[Any]:
        """The alignment in the format of fairseq's beam search, with zeros for unread tokens.

        hard: (source, target) pairs, the strongest source word of each target word, neither of them EOS;
        soft: for each target token, EOS included, the weights of all source tokens as text.
        """
        if self.alignment == "hard":
            words = [row[: src_length - 1] for row in attention[:-1]]
            return [(max(range(len(row)), key=row.__getitem__), i) for i, row in enumerate(words) if row]
        if self.alignment == "soft":
            return [[f"{weight:.6f}" for weight in row + [0.0] * (src_length - len(row))] for row in attention]
        return []


class AlignedBeamSearch(SequenceGeneratorWithAlignment):
    """fairseq's beam search with --print-alignment, for an encoder that always pads on the right."""

    def _prepare_batch_for_alignment(self, sample: Dict[str, Any], hypothesis: Any) -> Tuple[Tensor, ...]:
        src_tokens, *rest = super()._prepare_batch_for_alignment(sample, hypothesis)
        return (right_padded(src_tokens, self.pad)[0], *rest)


def full_read(hypothesis: Dict[str, Any], src_tokens: Tensor, padding_idx: int) -> None:
    """Add the delays of offline decoding to a hypothesis: the whole source is read first."""
    length = int(src_tokens.ne(padding_idx).sum())
    hypothesis["delays"] = [length] * len(hypothesis["tokens"])
    hypothesis["steps"] = " ".join(map(str, hypothesis["delays"]))
    attention = hypothesis["attention"]  # (J, I), or empty if the model has no attention
    if attention is not None and attention.dim() == 2:
        hypothesis["soft_attention"] = attention[:length].t().tolist()
