"""The causal Transformer encoder: token j sees 1 .. j, so that the states of a prefix never change."""

from typing import Any, List, Optional, Tuple

from torch import Tensor, nn

from ..functional.product import ProductPrecision
from ..modules.causal_transformer import CausalLayer, KeysValues, sinusoids
from .config import MilkTransformerConfig
from .encoder import SimultaneousEncoder


class TransformerEncoder(SimultaneousEncoder):
    def __init__(
        self, cfg: MilkTransformerConfig, dictionary: Any, embedding: nn.Embedding, products: ProductPrecision
    ) -> None:
        super().__init__(dictionary, embedding, cfg.dropout)
        sizes = cfg.embed_dim, cfg.attention_heads, cfg.ffn_dim, cfg.dropout
        self.layers = nn.ModuleList(CausalLayer(*sizes, products) for _ in range(cfg.encoder_layers))
        self.norm = nn.LayerNorm(cfg.embed_dim)

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = self._drop(x + sinusoids(0, x.size(1), x))
        for layer in self.layers:
            x = layer(x)[0]
        normed: Tensor = self.norm(x)
        return normed

    def step(self, tokens: Tensor, states: Optional[List[KeysValues]]) -> Tuple[Tensor, List[KeysValues]]:
        if states is None:
            states = [layer.self_attention.nothing(len(tokens)) for layer in self.layers]  # type: ignore[operator, union-attr]
        x, after = self.embedding(tokens).unsqueeze(1), []
        x = x + sinusoids(states[0].k.size(2), 1, x)
        for layer, past in zip(self.layers, states):
            x, kept = layer(x, past)
            after.append(kept)
        return self.norm(x).squeeze(1), after
