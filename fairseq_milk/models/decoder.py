"""The RNMT+ decoder: the bottom layer and the attention run step by step, everything above over the whole sequence.

    s_i = LSTM_0([y_{i-1}; c_{i-1}], s_{i-1})        the query of step i          s_0 = 0, c_0 = 0
    c_i = Attention(s_i, h)
    x^l = dropout(LSTM_l([x^{l-1}; c_i])) + x^{l-1} from the third layer up        x^0 = s_i
    P(y_i) = softmax(W [x; c_i] + b)

The initial state is zero, because the encoder's last state would have read the whole source.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..attention import SimultaneousAttention, build_attention
from ..functional.product import ProductPrecision
from ..modules import LayerNormLSTM, LSTMState
from .config import MilkRNMTConfig
from .encoder import RESIDUAL_FROM, EncoderOut
from .output_layer import OutputLayer
from .simultaneous_decoder import SimultaneousDecoder


class DecoderState(NamedTuple):
    """The state of the decoder between two target tokens."""

    layers: List[LSTMState]  # bottom first
    c: Tensor  # (B, hidden_size), c_{i-1}

    def select(self, rows: Tensor) -> "DecoderState":
        return DecoderState([s.select(rows) for s in self.layers], self.c.index_select(0, rows))


class RNMTDecoder(SimultaneousDecoder):
    def __init__(
        self, cfg: MilkRNMTConfig, dictionary: Any, embedding: nn.Embedding, products: ProductPrecision
    ) -> None:
        super().__init__(dictionary)
        self.dropout = cfg.dropout
        self.embedding = embedding
        self.attention = build_attention(str(cfg.attention), cfg.attention_options(products))
        sizes = [cfg.embed_dim] + [cfg.hidden_size] * (cfg.decoder_layers - 1)
        self.layers = nn.ModuleList(
            LayerNormLSTM(
                size + cfg.hidden_size, cfg.hidden_size, cfg.output_nonlinearity, cfg.cell_clip, products=products
            )
            for size in sizes
        )
        shared = cfg.share_decoder_input_output_embed or cfg.share_all_embeddings
        self.output = OutputLayer(2 * cfg.hidden_size, len(dictionary), embedding if shared else None, products)

    @property
    def attentions(self) -> List[SimultaneousAttention]:
        return [self.attention]

    # ---- teacher forcing ----------------------------------------------------------------------------------------

    def _all(self, tokens: Tensor, encoder_out: EncoderOut, hard: bool) -> Tuple[Tensor, Dict[str, Tensor]]:
        s, c, beta, alpha = self._schedule(self._drop(self.embedding(tokens)), encoder_out, hard)
        x = s
        for index, layer in enumerate(self.upper, start=1):
            y = self._drop(layer(torch.cat((x, c), dim=-1))[0])
            x = x + y if index >= RESIDUAL_FROM else y
        extra = {"attn": beta, "alpha": alpha, "alphas": alpha.unsqueeze(1), "src_lengths": encoder_out.lengths}
        return torch.cat((x, c), dim=-1), extra

    def _schedule(self, y: Tensor, encoder_out: EncoderOut, hard: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        """The sequential part.  y: (B, I, embed_dim) -> s, c: (B, I, hidden_size) and beta, alpha: (B, I, J)."""
        memory = self.attention.remember(encoder_out.h, encoder_out.lengths)
        attention, loop = self.attention.begin(memory), self.layers[0].loop(y)  # type: ignore[operator]
        state, c = self.layers[0].zero_state(y.size(0)), torch.zeros_like(encoder_out.h[:, 0])  # type: ignore[operator]
        steps = []
        for _ in range(y.size(1)):
            state = loop.step(c, state)
            out, attention = self.attention.expected(state.h, memory, attention, hard)
            c = out.c
            steps.append((state.h, c, out.beta, out.alpha))
        s, c, beta, alpha = (torch.stack(x, dim=1) for x in zip(*steps))
        return s, c, beta, alpha

    # ---- one token at a time ------------------------------------------------------------------------------------

    def begin(self, batch: int) -> DecoderState:
        layers = [layer.zero_state(batch) for layer in self.layers]  # type: ignore[operator]
        return DecoderState(layers, torch.zeros_like(layers[0].h))

    def query(self, tokens: Tensor, state: DecoderState) -> LSTMState:
        """s_i from y_{i-1}: all that a READ/WRITE decision needs.  tokens: (B,)."""
        return self.layers[0].step(torch.cat((self.embedding(tokens), state.c), dim=-1), state.layers[0])  # type: ignore

    def write(self, s: LSTMState, c: Tensor, state: DecoderState) -> Tuple[Tensor, DecoderState]:
        """The features of y_i from s_i and c_i, and the state after it.  -> (B, 2 hidden_size)."""
        x, after = s.h, [s]
        for index, layer in enumerate(self.upper, start=1):
            new = layer.step(torch.cat((x, c), dim=-1), state.layers[index])  # type: ignore[operator]
            x = x + new.h if index >= RESIDUAL_FROM else new.h
            after.append(new)
        return torch.cat((x, c), dim=-1), DecoderState(after, c)

    def _next(
        self, tokens: Tensor, encoder_out: EncoderOut, incremental_state: Dict[str, Any]
    ) -> Tuple[Tensor, Dict[str, Tensor]]:
        saved = self.get_incremental_state(incremental_state, "decoder")
        state = unpack(saved) if saved else self.begin(tokens.size(0))
        memory = self.whole_source("memory", self.attention, encoder_out, incremental_state)
        s = self.query(tokens, state)
        out = self.attention.attend(self.attention.queries(s.h), memory)
        features, state = self.write(s, out.c, state)
        self.set_incremental_state(incremental_state, "decoder", pack(state))
        extra = {"attn": out.beta.unsqueeze(1), "alpha": out.alpha.unsqueeze(1), "src_lengths": encoder_out.lengths}
        return features.unsqueeze(1), extra

    @property
    def upper(self) -> List[nn.Module]:
        return list(self.layers)[1:]

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


def pack(state: DecoderState) -> Dict[str, Optional[Tensor]]:
    """As fairseq's incremental state wants it: names and tensors."""
    saved: Dict[str, Optional[Tensor]] = {"context": state.c}
    for index, layer in enumerate(state.layers):
        saved[f"h{index}"], saved[f"c{index}"] = layer.h, layer.c
    return saved


def unpack(saved: Dict[str, Any]) -> DecoderState:
    layers = [LSTMState(saved[f"h{index}"], saved[f"c{index}"]) for index in range(len(saved) // 2)]
    return DecoderState(layers, saved["context"])
