"""What is checked: a model, its data, and a sample of sentences to try it on."""

from typing import Any, Dict, List, NamedTuple, Optional

import torch
from torch import Tensor

from ..attention import SimultaneousAttention
from ..console.errors import UserError
from ..functional import padding_mask

LINES = 1000  # sentences that the checks of the data look at
SENTENCES = 32  # that the model is tried on
LONGEST = 80  # tokens of a sentence that the model is tried on: a minute is enough, whatever the data


class Subject(NamedTuple):
    model: Any  # in evaluation mode
    task: Any
    dataset: Any  # fairseq's LanguagePairDataset
    data: str  # the directory that it comes from
    trained: bool  # False: just built from training arguments
    latency_weight: Optional[float]  # lambda, where it is known
    lines: List[Dict[str, Any]]  # sentence pairs, spread over the data set
    tried: List[Dict[str, Any]]  # some of them, for the model
    sample: Dict[str, Any]  # `tried` as a batch

    @property
    def heads(self) -> List[Any]:
        """The energies of the learned heads, one for each attention that decides; none if the schedule is given."""
        return [attention.head for attention in self.model.decoder.attentions if attention.decides and self.learned]

    @property
    def learned(self) -> bool:
        return self.attention.learned

    @property
    def attention(self) -> SimultaneousAttention:
        attention: SimultaneousAttention = self.model.decoder.attention
        return attention

    @property
    def target_lengths(self) -> Tensor:
        """|y|, EOS included.  (B,)."""
        lengths: Tensor = self.sample["target"].ne(self.task.target_dictionary.pad()).sum(1)
        return lengths

    @property
    def written(self) -> Tensor:
        """The target tokens that are not padding.  (B, I) bool."""
        return ~padding_mask(self.target_lengths, self.sample["target"].size(1))

    @torch.no_grad()
    def schedule(self, hard: bool) -> Dict[str, Tensor]:
        """alpha: (B, I, J), alphas: (B, S, I, J) and src_lengths: (B,), the reference as the target, without noise."""
        schedule: Dict[str, Tensor] = self.model(**self.sample["net_input"], features_only=True, hard=hard)[1]
        return schedule


def subject(
    model: Any, task: Any, dataset: Any, data: str, trained: bool, latency_weight: Optional[float] = None
) -> Subject:
    if dataset.tgt is None:
        raise UserError(f"the data set in {data} has no target side, which the checks need")
    lines = [dataset[index] for index in spread(len(dataset), LINES)]
    short = [pair for pair in lines if size(pair) <= LONGEST] or [min(lines, key=size)]
    tried = [short[index] for index in spread(len(short), SENTENCES)]
    sample = dataset.collater(tried)
    return Subject(model.eval(), task, dataset, data, trained, latency_weight, lines, tried, sample)


def spread(size: int, count: int) -> List[int]:
    """At most `count` of 0 .. size-1, evenly spaced: corpora are often sorted by origin."""
    count = min(size, count)
    return [index * size // count for index in range(count)]


def size(pair: Dict[str, Any]) -> int:
    return max(len(pair["source"]), len(pair["target"]))
