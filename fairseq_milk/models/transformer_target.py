"""Target sentences of the Transformer during decoding: layer by layer, reading when the heads of a layer need it."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from ..attention import Heads, Memory, Queries
from ..modules.causal_transformer import CausalLayer, KeysValues, sinusoids
from .target import Target
from .transformer_decoder import TransformerDecoder


class TransformerTarget(Target):
    """Its state is keys and values of the target tokens in each layer, the memory of each attention to the source, and
    the positions of the heads of each layer that decides.

    All sentences are in the same layer, the last of `after`, whose self-attention is computed.  After a READ of the
    schedule computation continues there; after one required by a knob, token i starts again.
    """

    def __init__(self, decoder: TransformerDecoder, batch: int, room: int) -> None:
        self.decoder = decoder
        self.layers: List[CausalLayer] = list(decoder.layers)  # type: ignore[arg-type]
        self.past = [layer.self_attention.nothing(batch) for layer in self.layers]
        like = decoder.norm.weight
        self.memories: List[Optional[Memory]] = [
            None if layer.attention is None else layer.attention.nothing_read(batch, like, room)
            for layer in self.layers
        ]
        self.heads: Dict[int, Heads] = {  # one per layer that decides
            index: layer.attention.begin_heads(memory)
            for index, (layer, memory) in enumerate(zip(self.layers, self.memories))
            if layer.attention is not None and memory is not None and layer.attention.decides
        }
        self.read_tokens = torch.zeros(batch, dtype=torch.long, device=like.device)
        self.after: List[KeysValues] = []
        self.queries: Queries = {}
        self.tokens, self.x, self.beta = self.read_tokens, like.detach(), like.detach()
        self.entered = False

    @property
    def read_so_far(self) -> Tensor:
        return self.read_tokens

    def ask(self, tokens: Tensor) -> None:
        self.i += 1
        self.tokens = tokens
        self._restart()

    def _restart(self) -> None:
        x = self.decoder.embedding(self.tokens).unsqueeze(1)
        self.x, self.after = x + sinusoids(self.i - 1, 1, x), []
        self._enter()

    def _enter(self) -> None:
        """Compute the self-attention of the next layer, and its query to the source."""
        index = len(self.after)
        if index == len(self.layers):
            return
        layer = self.layers[index]
        self.x, kept = layer.to_itself(self.x, self.past[index])
        self.after.append(kept)
        self.queries = {} if layer.attention is None else layer.attention.queries(layer.norm(self.x).squeeze(1))
        self.entered = True

    def waiting(self, exhausted: Tensor) -> Tensor:
        while self.entered:
            index = len(self.after) - 1
            layer, memory, c = self.layers[index], self.memories[index], None
            if layer.attention is not None and memory is not None:
                if index in self.heads:
                    self.heads[index] = layer.attention.seek(self.queries, memory, self.heads[index], self.i)
                    waits = ~self.heads[index].ready & ~exhausted
                    if bool(waits.any()):
                        return waits
                heads = self.heads.get(index) or self.heads[min(self.heads)]  # its own, or those that it follows
                out = layer.attention.attend(self.queries, memory.filled().seen_by(heads))
                c, self.beta = out.c.unsqueeze(1), out.beta.mean(1)
            self.x = layer.finish(self.x, c)
            self.entered = False
            self._enter()
        return torch.zeros_like(exhausted)

    def read(self, h: Tensor, rows: Tensor, forced: Tensor) -> None:
        for index, (layer, memory) in enumerate(zip(self.layers, self.memories)):
            if layer.attention is not None and memory is not None:
                self.memories[index] = layer.attention.read(memory, h, rows)
        self.read_tokens = self.read_tokens.index_add(0, rows, torch.ones_like(rows))
        if bool(forced.any()):
            self.send(self.read_tokens - 1, forced)

    def know(self, h: Tensor, lengths: Tensor) -> None:
        self.memories = [None if x.attention is None else x.attention.remember(h, lengths) for x in self.layers]
        self.read_tokens = lengths

    def furthest(self) -> Tensor:
        self.waiting(torch.ones_like(self.read_tokens, dtype=torch.bool))
        return torch.stack([heads.furthest(self.read_tokens) for heads in self.heads.values()]).amax(0)

    def send(self, position: Tensor, rows: Tensor) -> None:
        self.heads = {index: heads.sent_to(position, rows) for index, heads in self.heads.items()}
        self._restart()

    def write(self) -> Tuple[Tensor, Tensor]:
        return self.decoder.norm(self.x).squeeze(1), self.beta

    def accept(self) -> None:
        self.past = self.after
        self.heads = {index: heads.after_write(self.read_tokens) for index, heads in self.heads.items()}

    def select(self, rows: Tensor) -> None:
        self.past = [x.select(rows) for x in self.past]
        self.after = [x.select(rows) for x in self.after]
        self.memories = [None if x is None else x.select(rows) for x in self.memories]
        self.heads = {index: heads.select(rows) for index, heads in self.heads.items()}
        self.queries = {name: x.index_select(0, rows) for name, x in self.queries.items()}
        self.tokens, self.x, self.read_tokens = self.tokens[rows], self.x[rows], self.read_tokens[rows]
