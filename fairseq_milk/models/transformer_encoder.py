"""The causal Transformer encoder: token j sees 1 .. j, so that the states of a prefix never change."""

from typing import Any, List, Optional, Tuple

from fairseq.models import FairseqEncoder
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..functional.product import ProductPrecision
from ..modules.causal_transformer import CausalEncoderLayer, KeysValues, sinusoids
from .config import MilkTransformerConfig
from .encoder import EncoderOut, right_padded


class TransformerEncoder(FairseqEncoder):
    incremental = True

    def __init__(
        self, cfg: MilkTransformerConfig, dictionary: Any, embedding: nn.Embedding, products: ProductPrecision
    ) -> None:
        super().__init__(dictionary)
        self.padding_idx, self.dropout, self.embedding = dictionary.pad(), cfg.dropout, embedding
        sizes = cfg.embed_dim, cfg.attention_heads, cfg.ffn_dim, cfg.dropout
        self.layers = nn.ModuleList(CausalEncoderLayer(*sizes, products) for _ in range(cfg.encoder_layers))
        self.norm = nn.LayerNorm(cfg.embed_dim)

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **unused: Any) -> EncoderOut:
        """src_tokens: (B, J), padded on either side (fairseq-interactive always pads on the left)."""
        tokens, lengths = right_padded(src_tokens, self.padding_idx)
        return EncoderOut(self.encode(self.embedding(tokens), lengths), lengths)

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(B, J, D) -> (B, J, D).  States at padding are undefined and not used."""
        x = F.dropout(x + sinusoids(0, x.size(1), x), self.dropout, self.training)
        for layer in self.layers:
            x = layer(x)[0]
        normed: Tensor = self.norm(x)
        return normed

    def step(self, tokens: Tensor, states: Optional[List[KeysValues]]) -> Tuple[Tensor, List[KeysValues]]:
        """One more source token per sentence.  tokens: (B,) -> h_j: (B, D), and keys and values of each layer."""
        if states is None:
            states = [layer.self_attention.nothing(len(tokens)) for layer in self.layers]  # type: ignore[operator, union-attr]
        x, after = self.embedding(tokens).unsqueeze(1), []
        x = x + sinusoids(states[0].k.size(2), 1, x)
        for layer, past in zip(self.layers, states):
            x, kept = layer(x, past)
            after.append(kept)
        return self.norm(x).squeeze(1), after

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        return EncoderOut(encoder_out.h.index_select(0, new_order), encoder_out.lengths.index_select(0, new_order))

    def max_positions(self) -> int:
        return int(1e5)
