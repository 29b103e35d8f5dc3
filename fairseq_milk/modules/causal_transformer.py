"""Causal pre-norm Transformer layers that run over a whole sequence or one token at a time.

    x <- x + dropout(SelfAttention(LN(x)))         token t sees 1 .. t
    x <- x + dropout(FeedForward(LN(x)))

A sequence that is padded on the right needs no mask, because no token attends to later ones.  The state of a layer is a
pair of tensors: keys and values of the tokens so far.
"""

import math
from typing import Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..attention import SimultaneousAttention
from ..functional.heads import join_heads, split_heads
from ..functional.product import ProductPrecision


class KeysValues(NamedTuple):
    """The keys and values of T tokens."""

    k: Tensor  # (B, H, T, D/H)
    v: Tensor  # (B, H, T, D/H)

    def select(self, rows: Tensor) -> "KeysValues":
        return KeysValues(self.k.index_select(0, rows), self.v.index_select(0, rows))


class ProductLinear(nn.Linear):
    """y = W x + b in the precision of the model's products."""

    def __init__(self, inputs: int, outputs: int, products: ProductPrecision, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias)
        self.products = products
        nn.init.xavier_uniform_(self.weight)
        if bias:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.products.linear(x, self.weight, self.bias)


class CausalSelfAttention(nn.Module):
    """Scaled dot-product attention over the tokens so far (Vaswani et al. 2017)."""

    def __init__(self, dim: int, heads: int, dropout: float, products: ProductPrecision) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = ProductLinear(dim, 3 * dim, products)
        nn.init.xavier_uniform_(self.qkv.weight, gain=1 / math.sqrt(2))  # as three matrices of dim x dim
        self.out = ProductLinear(dim, dim, products)

    def nothing(self, batch: int) -> KeysValues:
        """Keys and values before the first token (T = 0)."""
        weight = self.out.weight
        empty = weight.new_zeros(batch, self.heads, 0, weight.size(0) // self.heads)
        return KeysValues(empty, empty)

    def forward(self, x: Tensor, past: Optional[KeysValues] = None) -> Tuple[Tensor, KeysValues]:
        """x: (B, T, D), all tokens without `past`, else the one after it -> (B, T, D), and what is remembered then."""
        assert past is None or x.size(1) == 1
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            k, v = torch.cat((past.k, k), dim=2), torch.cat((past.v, v), dim=2)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=past is None)
        return self.out(join_heads(y)), KeysValues(k, v)


class FeedForward(nn.Module):
    """W_2 dropout(relu(W_1 x))."""

    def __init__(self, dim: int, hidden: int, dropout: float, products: ProductPrecision) -> None:
        super().__init__()
        self.dropout = dropout
        self.inner = ProductLinear(dim, hidden, products)
        self.outer = ProductLinear(hidden, dim, products)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.outer(F.dropout(F.relu(self.inner(x)), self.dropout, self.training))
        return y


class CausalLayer(nn.Module):
    """A layer of the encoder, or of the decoder: with an attention to the source between its two halves.

    attention: None in the encoder, and in the decoder below the layer that decides.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        hidden: int,
        dropout: float,
        products: ProductPrecision,
        attention: Optional[SimultaneousAttention] = None,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.self_attention = CausalSelfAttention(dim, heads, dropout, products)
        self.self_norm = nn.LayerNorm(dim)
        self.attention = attention
        asks = attention is not None and bool(attention.energies())
        self.norm = nn.LayerNorm(dim) if asks else nn.Identity()  # norm before the cross-attention
        self.feed_forward = FeedForward(dim, hidden, dropout, products)
        self.feed_norm = nn.LayerNorm(dim)

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Adapt the checkpoint of another mechanism: it may lack this norm, or have one that is not used."""
        keys = {key for key in state_dict if key.startswith(f"{name}.norm.")}
        own = self.norm.state_dict(prefix=f"{name}.norm.")
        if not own or not keys:
            for key in keys:
                del state_dict[key]
            state_dict.update(own)

    def forward(self, x: Tensor, past: Optional[KeysValues] = None) -> Tuple[Tensor, KeysValues]:
        """A layer without an attention to the source.  x: (B, T, D)."""
        x, after = self.to_itself(x, past)
        return self.finish(x, None), after

    def to_itself(self, x: Tensor, past: Optional[KeysValues] = None) -> Tuple[Tensor, KeysValues]:
        """Self-attention.  x: (B, T, D)."""
        y, after = self.self_attention(self.self_norm(x), past)
        return x + self._drop(y), after

    def finish(self, x: Tensor, c: Optional[Tensor]) -> Tensor:
        """What has been seen of the source, and feed-forward.  x, c: (..., D)."""
        x = x if c is None else x + self._drop(c)
        return x + self._drop(self.feed_forward(self.feed_norm(x)))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


def sinusoids(first: int, count: int, like: Tensor) -> Tensor:
    """Sinusoidal positions first .. first + count - 1 (Vaswani et al. 2017).  like: (..., D) -> (count, D)."""
    half = like.size(-1) // 2
    rates = torch.exp(torch.arange(half, device=like.device) * (-math.log(10000.0) / max(half - 1, 1)))
    angles = (torch.arange(count, device=like.device) + first).unsqueeze(1) * rates
    positions = torch.cat((angles.sin(), angles.cos()), dim=1)
    return (F.pad(positions, (0, 1)) if like.size(-1) % 2 else positions).to(like.dtype)
