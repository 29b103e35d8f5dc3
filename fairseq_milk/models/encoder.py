"""Base class of the encoders, and the RNMT+ encoder: a stack of layer-normalised LSTMs over the source."""

from abc import abstractmethod
from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from fairseq.models import FairseqEncoder
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..functional.product import ProductPrecision
from ..modules import LayerNormLSTM, LSTMState
from .config import MilkRNMTConfig

RESIDUAL_FROM = 2  # the third layer and up


class EncoderOut(NamedTuple):
    h: Tensor  # (B, J, hidden_size), always padded on the right
    lengths: Tensor  # (B,), EOS included


class SimultaneousEncoder(FairseqEncoder):
    """Base class of the encoders: a whole source at once, or token by token."""

    incremental = True  # whether it can encode token by token: the states of a prefix never change

    def __init__(self, dictionary: Any, embedding: nn.Embedding, dropout: float) -> None:
        super().__init__(dictionary)
        self.padding_idx, self.dropout, self.embedding = dictionary.pad(), dropout, embedding

    @abstractmethod
    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(B, J, embed_dim) -> (B, J, D).  States at padding are undefined and not used."""

    @abstractmethod
    def step(self, tokens: Tensor, states: Optional[List[Any]]) -> Tuple[Tensor, List[Any]]:
        """One more source token per sentence.  tokens: (B,) -> h_j: (B, D), and the states of the layers after it."""

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **unused: Any) -> EncoderOut:
        """src_tokens: (B, J), padded on either side (fairseq-interactive always pads on the left)."""
        tokens, lengths = right_padded(src_tokens, self.padding_idx)
        return EncoderOut(self.encode(self.embedding(tokens), lengths), lengths)

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        return EncoderOut(encoder_out.h.index_select(0, new_order), encoder_out.lengths.index_select(0, new_order))

    def max_positions(self) -> int:
        return int(1e5)

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class RNMTEncoder(SimultaneousEncoder):
    """x^0 = dropout(embedding);   x^l = dropout(LSTM_l(x^{l-1})) + x^{l-1} from the third layer up."""

    def __init__(
        self, cfg: MilkRNMTConfig, dictionary: Any, embedding: nn.Embedding, products: ProductPrecision
    ) -> None:
        super().__init__(dictionary, embedding, cfg.dropout)
        self.products = products
        self.layers = self.build_stack(cfg, cfg.hidden_size)

    def build_stack(self, cfg: MilkRNMTConfig, fed: int) -> nn.ModuleList:
        """A stack of layers.  fed: what a layer gets from the one below."""
        sizes = [cfg.embed_dim] + [fed] * (cfg.encoder_layers - 1)
        return nn.ModuleList(
            LayerNormLSTM(size, cfg.hidden_size, cfg.output_nonlinearity, cfg.cell_clip, products=self.products)
            for size in sizes
        )

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = self._drop(x)
        for index, layer in enumerate(self.layers):
            y = self._drop(layer(x)[0])
            x = x + y if index >= RESIDUAL_FROM else y
        return x

    def step(self, tokens: Tensor, states: Optional[List[LSTMState]]) -> Tuple[Tensor, List[LSTMState]]:
        x, after = self.embedding(tokens), []
        for index, layer in enumerate(self.layers):
            state = layer.step(x, None if states is None else states[index])  # type: ignore[operator]
            x = x + state.h if index >= RESIDUAL_FROM else state.h
            after.append(state)
        return x, after


class BidirectionalRNMTEncoder(RNMTEncoder):
    """The offline encoder: each layer runs in both directions and feeds both to the next; then a projection 2H -> H."""

    incremental = False

    def __init__(
        self, cfg: MilkRNMTConfig, dictionary: Any, embedding: nn.Embedding, products: ProductPrecision
    ) -> None:
        super().__init__(cfg, dictionary, embedding, products)
        self.layers = self.build_stack(cfg, 2 * cfg.hidden_size)
        self.backward_layers = self.build_stack(cfg, 2 * cfg.hidden_size)
        self.projection = nn.Linear(2 * cfg.hidden_size, cfg.hidden_size)

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = self._drop(x)
        for index, (forwards, backwards) in enumerate(zip(self.layers, self.backward_layers)):
            reverse = reversed_in_length(backwards(reversed_in_length(x, lengths))[0], lengths)
            y = self._drop(torch.cat((forwards(x)[0], reverse), dim=-1))
            x = x + y if index >= RESIDUAL_FROM else y
        return self.products.linear(x, self.projection.weight, self.projection.bias)

    def step(self, tokens: Tensor, states: Optional[List[LSTMState]]) -> Tuple[Tensor, List[LSTMState]]:
        raise NotImplementedError("a bidirectional encoder cannot read token by token")


def right_padded(tokens: Tensor, padding_idx: int) -> Tuple[Tensor, Tensor]:
    """Rows padded on the right, and their lengths, from rows padded on either side; without synchronisation.

    tokens: (B, J) -> (B, J), (B,).
    """
    size = tokens.size(1)
    lengths = tokens.ne(padding_idx).sum(1)
    shift = (size - lengths) * tokens[:, 0].eq(padding_idx)  # tokens of padding on the left
    j = torch.arange(size, device=tokens.device)
    return tokens.gather(1, (j + shift.unsqueeze(1)) % size), lengths


def reversed_in_length(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each sentence, leaving its padding at the end.  (B, J, D), (B,) -> (B, J, D)."""
    j = torch.arange(x.size(1), device=x.device)
    index = (lengths.unsqueeze(1) - 1 - j) % x.size(1)
    return x.gather(1, index.unsqueeze(-1).expand_as(x))
