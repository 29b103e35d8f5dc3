"""What `fairseq-generate` and `fairseq-interactive` call: the batched simultaneous decoder in fairseq's clothes."""

from typing import Any, Dict, List, Optional

import torch
from torch import Tensor, nn

from .decoding import DecodingOptions, Hypothesis, translate


class SimultaneousGenerator(nn.Module):
    """Greedy.  Each hypothesis has, beside fairseq's keys, `delays` and, if asked, `soft_attention`.

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
        self.eos = dictionary.eos()
        self.symbols_to_strip_from_output = {self.eos}
        self.options, self.alignment = options, alignment
        self.attention = attention or alignment is not None
        self.length_penalty = length_penalty if normalise else 0.0

    @torch.no_grad()
    def generate(
        self, models: List[Any], sample: Dict[str, Any], prefix_tokens: Any = None, constraints: Any = None, **kwargs: Any
    ) -> List[List[Dict[str, Any]]]:
        (model,) = models
        hypotheses = translate(model, sample["net_input"]["src_tokens"], self.options, self.attention)
        return [[self._finish(hypothesis)] for hypothesis in hypotheses]

    def _finish(self, hypothesis: Hypothesis) -> Dict[str, Any]:
        scores = torch.tensor(hypothesis.scores)
        result: Dict[str, Any] = {
            "tokens": torch.tensor(hypothesis.tokens),
            "score": scores.sum() / len(hypothesis.scores) ** self.length_penalty,
            "positional_scores": scores,
            "attention": None,
            "alignment": self._align(hypothesis.attention),
            "delays": hypothesis.delays,
            "steps": " ".join(map(str, hypothesis.delays)),
        }
        if self.attention:
            result["soft_attention"] = hypothesis.attention
        return result

    def _align(self, attention: List[List[float]]) -> List[Any]:
        """hard: (source, target) pairs, the strongest source token of each; soft: rows of weights as text."""
        if self.alignment == "hard":
            return [(max(range(len(row)), key=row.__getitem__), i) for i, row in enumerate(attention[:-1])]
        if self.alignment == "soft":
            return [[f"{weight:.6f}" for weight in row] for row in attention]
        return []


def full_read(hypothesis: Dict[str, Any], src_tokens: Tensor, padding_idx: int) -> None:
    """Give a hypothesis of fairseq's (offline) beam search its delays: everything is read before anything is written."""
    length = int(src_tokens.ne(padding_idx).sum())
    hypothesis["delays"] = [length] * len(hypothesis["tokens"])
    hypothesis["steps"] = " ".join(map(str, hypothesis["delays"]))
