"""The subject of the checks: a model, its data, and a sample of sentences."""

from typing import Any, Dict, List, NamedTuple, Optional

import torch
from torch import Tensor

from ..attention import SimultaneousAttention
from ..console.errors import UserError
from ..functional import padding_mask

LINES = 1000  # sentences for the checks of the data
LAST_UPDATE = 10**9  # behind --head-after and --noise-ramp, whatever the length of the training
SENTENCES = 32  # sentences for the checks of the model
LONGEST = 80  # tokens in a sentence for the checks of the model, so that they take at most a minute


class Subject(NamedTuple):
    model: Any  # in evaluation mode
    task: Any
    dataset: Any  # fairseq's LanguagePairDataset
    data: str  # the directory of fairseq-preprocess
    trained: bool  # False: just built from training arguments
    latency_weight: Optional[float]  # lambda, if known
    lines: List[Dict[str, Any]]  # sentence pairs, spread over the data set
    tried: List[Dict[str, Any]]  # the sentence pairs for the checks of the model
    sample: Dict[str, Any]  # `tried` as a batch

    @property
    def heads(self) -> List[Any]:
        """The energies of the learned heads, one per attention that decides; empty if the schedule is fixed."""
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
        """True for the target tokens that are not padding.  (B, I)."""
        return ~padding_mask(self.target_lengths, self.sample["target"].size(1))

    @torch.no_grad()
    def schedule(self, hard: bool) -> Dict[str, Tensor]:
        """alpha: (B, I, J), alphas: (B, S, I, J) and src_lengths: (B,) for the references, without noise."""
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
    model.set_num_updates(LAST_UPDATE)
    return Subject(model.eval(), task, dataset, data, trained, latency_weight, lines, tried, sample)


def spread(size: int, count: int) -> List[int]:
    """At most `count` indices of 0 .. size-1, evenly spaced, because corpora are often sorted by origin."""
    count = min(size, count)
    return [index * size // count for index in range(count)]


def size(pair: Dict[str, Any]) -> int:
    return max(len(pair["source"]), len(pair["target"]))
