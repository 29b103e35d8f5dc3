"""Lengths and masks: defines the padding convention of the plugin.

Inside the plugin every batch is padded on the right; `True` in a mask means padding.
"""

from typing import Optional

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, size: int) -> Tensor:
    """mask_bj = [j >= lengths_b].  lengths: (B,), or (B, ...) -> (B, ..., size) bool, True = padding."""
    return torch.arange(size, device=lengths.device) >= lengths.unsqueeze(-1)


def last_position(lengths: Optional[Tensor], like: Tensor) -> Tensor:
    """One-hot of each sentence's own last token (EOS).  lengths: (B, ...), like: (B, ..., J) -> (B, ..., J) bool."""
    size = like.size(-1)
    j = torch.arange(size, device=like.device)
    if lengths is None:
        return (j == size - 1).expand_as(like)
    return j == lengths.unsqueeze(-1) - 1


def spread(x: Tensor, like: Tensor) -> Tensor:
    """x with dimensions of size 1 inserted after the batch, until it has as many dimensions as `like`."""
    while x.dim() < like.dim():
        x = x.unsqueeze(1)
    return x


def at_least_float32(x: Tensor) -> Tensor:
    """Half-precision tensors as float32, other tensors unchanged."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
