"""Temporary plain version (the chunked one is being written)."""

from typing import NamedTuple, Optional

import torch
from torch import Tensor


class OutputLoss(NamedTuple):
    loss: Tensor
    nll: Tensor
    correct: Tensor


def label_smoothed_nll(
    features: Tensor, weight: Tensor, bias: Optional[Tensor], target: Tensor, eps: float, ignore_index: int
) -> OutputLoss:
    lprobs = torch.log_softmax(torch.nn.functional.linear(features, weight, bias).float(), -1)
    keep = target.ne(ignore_index)
    nll = -(lprobs.gather(1, target.unsqueeze(1)).squeeze(1) * keep).sum()
    smooth = -(lprobs.sum(-1) * keep).sum()
    eps_i = eps / (lprobs.size(-1) - 1)
    return OutputLoss((1 - eps - eps_i) * nll + eps_i * smooth, nll.detach(), (lprobs.argmax(-1).eq(target) & keep).sum())
