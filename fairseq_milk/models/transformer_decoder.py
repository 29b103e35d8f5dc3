"""The Transformer decoder: pre-norm layers with causal self-attention, simultaneous cross-attention and feed-forward.

    x <- x + SelfAttention(LN(x));   x <- x + Attention(LN(x), h);   x <- x + FeedForward(LN(x))
    P(y_i) = softmax(W LN(x) + b)

The queries of all target steps of a layer are known at once; only the scan of alpha runs over them one by one.

With one schedule, the first layer that has a cross-attention decides it and the layers above follow.  The inputs of a
decision must not depend on it, so layers below have no cross-attention.  With a schedule for each head, every layer
decides its own, and a token is written when every head of every layer has stopped (Ma et al. 2020).
"""

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..attention import AttentionOutput, SimultaneousAttention, build_layers
from ..functional.heads import last_stop
from ..functional.product import ProductPrecision
from ..modules.causal_transformer import CausalLayer, KeysValues, sinusoids
from .config import MilkTransformerConfig
from .encoder import EncoderOut
from .output_layer import OutputLayer
from .simultaneous_decoder import SimultaneousDecoder


class TransformerDecoder(SimultaneousDecoder):
    def __init__(
        self, cfg: MilkTransformerConfig, dictionary: Any, embedding: nn.Embedding, products: ProductPrecision
    ) -> None:
        super().__init__(dictionary)
        self.dropout, self.embedding = cfg.dropout, embedding
        seeing = cfg.decoder_layers - cfg.schedule_layer + 1
        attentions = build_layers(str(cfg.attention), cfg.attention_options(products), seeing)
        below: List[Optional[SimultaneousAttention]] = [None] * (cfg.schedule_layer - 1)
        sizes = cfg.embed_dim, cfg.attention_heads, cfg.ffn_dim, cfg.dropout
        self.layers = nn.ModuleList(CausalLayer(*sizes, products, attention) for attention in [*below, *attentions])
        self.norm = nn.LayerNorm(cfg.embed_dim)
        shared = cfg.share_decoder_input_output_embed or cfg.share_all_embeddings
        self.output = OutputLayer(cfg.embed_dim, len(dictionary), embedding if shared else None, products)

    @property
    def attention(self) -> SimultaneousAttention:
        """The first attention to the source; all have its properties."""
        return self.attentions[0]

    @property
    def attentions(self) -> List[SimultaneousAttention]:
        return [layer.attention for layer in self.layers if layer.attention is not None]  # type: ignore[misc]

    # ---- teacher forcing ----------------------------------------------------------------------------------------

    def _all(self, tokens: Tensor, encoder_out: EncoderOut, hard: bool) -> Tuple[Tensor, Dict[str, Tensor]]:
        x = self.embedding(tokens)
        x = F.dropout(x + sinusoids(0, x.size(1), x), self.dropout, self.training)
        outs: List[AttentionOutput] = []
        for layer in self.layers:
            assert isinstance(layer, CausalLayer)
            x, c = layer.to_itself(x)[0], None
            if layer.attention is not None:
                memory = layer.attention.remember(encoder_out.h, encoder_out.lengths)
                alpha = None if layer.attention.decides else outs[0].alpha
                state = layer.attention.begin(memory)
                outs.append(layer.attention.expected(layer.norm(x), memory, state, hard, alpha)[0])
                c = outs[-1].c
            x = layer.finish(x, c)
        return self.norm(x), self._describe(outs, encoder_out.lengths)

    def _describe(self, outs: List[AttentionOutput], lengths: Tensor) -> Dict[str, Tensor]:
        """attn: (B, I, J), beta of the last layer, averaged over its heads; alphas: (B, S, I, J), of each schedule;
        alpha: (B, I, J), of the position at which the last head stops; src_lengths: (B,).
        """
        deciding = [out.alpha for out, attention in zip(outs, self.attentions) if attention.decides]
        alphas = torch.cat(deciding, dim=1)
        return {"attn": outs[-1].beta.mean(1), "alpha": last_stop(alphas), "alphas": alphas, "src_lengths": lengths}

    # ---- fairseq's beam search ----------------------------------------------------------------------------------

    def _next(
        self, tokens: Tensor, encoder_out: EncoderOut, incremental_state: Dict[str, Any]
    ) -> Tuple[Tensor, Dict[str, Tensor]]:
        past = self.get_incremental_state(incremental_state, "decoder") or {}
        after: Dict[str, Optional[Tensor]] = {}
        x = self.embedding(tokens).unsqueeze(1)
        x = x + sinusoids(past["k0"].size(2) if past else 0, 1, x)
        outs: List[AttentionOutput] = []
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, CausalLayer)
            nothing = layer.self_attention.nothing(len(tokens))
            before = KeysValues(past[f"k{index}"], past[f"v{index}"]) if past else nothing
            x, kept = layer.to_itself(x, before)
            after[f"k{index}"], after[f"v{index}"] = kept
            if layer.attention is not None:
                memory = self.whole_source(f"memory{index}", layer.attention, encoder_out, incremental_state)
                outs.append(layer.attention.attend(layer.attention.queries(layer.norm(x)), memory))
            x = layer.finish(x, outs[-1].c if layer.attention is not None else None)
        self.set_incremental_state(incremental_state, "decoder", after)
        lengths = encoder_out.lengths
        beta, alpha = outs[-1].beta.mean(1), outs[0].alpha[:, :1].expand(-1, 1, -1)
        return self.norm(x), {"attn": beta, "alpha": alpha, "alphas": alpha.unsqueeze(1), "src_lengths": lengths}
