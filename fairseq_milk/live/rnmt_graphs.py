"""The three steps of a live translation by RNMT+ as modules of torch, from which the ONNX graphs are traced.

    read     one source token in: the encoder's state h_j, its keys, and the energy of the query under way at it
    query    one target token in: the decoder state s_i, its queries, and their energy at the last token read
    write    the attention over the tokens that it is given, the upper layers and the log-probabilities of y_i

`energy` decides: a learned head stops where it is above log(threshold / (1 - threshold)).  What
the write step is given decides how far back the attention looks; `mask` is 0 for a source token and -inf for padding,
so that sentences of different lengths can be written in one batch.
"""

from typing import Any, Dict, List, Sequence, Tuple

import torch
from torch import Tensor, nn

from ..attention import Memory, context
from ..models.decoder import DecoderState
from ..modules import LSTMState
from .graph import HEAD, SOFT, Graph, all_of


class Step(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.encoder, self.decoder, self.attention = model.encoder, model.decoder, model.decoder.attention

    def energy(self, key: Tensor, query: Tensor) -> Tensor:
        """e of one source token.  (B, A), (B, A) -> (B,)."""
        e: Tensor = self.attention.head(key.unsqueeze(1), query, self.attention.head.weights(key))
        return e.squeeze(1)


class ReadStep(Step):
    def forward(self, token: Tensor, states: List[Tensor], query: List[Tensor]) -> Tuple[Tensor, ...]:
        h, after = self.encoder.step(token, unpack(states))
        keys = {name: energy.project(h) for name, energy in self.attention.energies().items()}
        decision = [self.energy(keys[HEAD], one) for one in query]
        return (h, *keys.values(), *decision, *pack(after))


class QueryStep(Step):
    def forward(self, token: Tensor, c: Tensor, bottom: List[Tensor], key: List[Tensor]) -> Tuple[Tensor, ...]:
        s = self.decoder.query(token, DecoderState(unpack(bottom), c))
        queries = self.attention.queries(s.h)
        decision = [self.energy(one, queries[HEAD]) for one in key]
        return (*s, *queries.values(), *decision)


class WriteStep(Step):
    def forward(self, memory: Tensor, s: List[Tensor], soft: List[Tensor], upper: List[Tensor]) -> Tuple[Tensor, ...]:
        c = self.look_back(memory, *soft)
        (bottom,) = unpack(s)
        features, after = self.decoder.write(bottom, c, DecoderState([bottom, *unpack(upper)], c))
        return (self.decoder.output(features).log_softmax(-1), c, *pack(after.layers[1:]))

    def look_back(self, memory: Tensor, *soft: Tensor) -> Tensor:
        """The context of what is given.  (B, J, D) -> (B, D); soft: (B, J, A), (B, A), (B, J), keys, query and mask."""
        u = None
        if soft:
            keys, query, mask = soft
            u = self.attention.soft_energy(keys, query, self.attention.soft_energy.weights(keys)) + mask
        seen = Memory(memory, {}, all_of(memory), {}, exact=True)
        return context(self.attention.lookback.certain(u, seen), seen)


def graphs(model: Any) -> Dict[str, Graph]:
    """The graphs of a model, with examples of a batch of two and of three source tokens read."""
    examples = _Examples(model)
    return {"read": examples.read(), "query": examples.query(), "write": examples.write()}


class _Examples:
    """Names and examples of what passes between the steps."""

    def __init__(self, model: Any) -> None:
        self.model, attention = model, model.decoder.attention
        self.token = torch.tensor([4, 5])
        with torch.no_grad():
            self.h, encoder = model.encoder.step(self.token, None)
            begun = model.decoder.begin(2)
            s = model.decoder.query(self.token, begun)
            self.keys = {f"key_{name}": energy.project(self.h) for name, energy in attention.energies().items()}
            self.queries = {f"query_{name}": x for name, x in attention.queries(s.h).items()}
        self.c, self.s = begun.c.clone(), {"s_h": s.h, "s_c": s.c}
        self.encoder, self.upper = named("encoder", encoder), named("decoder", begun.layers[1:])
        self.decision = ["energy"] if attention.learned else []

    def read(self) -> Graph:
        asked = {name: x for name, x in self.queries.items() if name == f"query_{HEAD}"}
        inputs = {"token": self.token, **self.encoder, **asked}
        outputs = ["h", *self.keys, *self.decision, *self.encoder]
        return Graph(ReadStep(self.model), inputs, (len(self.encoder), len(asked)), outputs)

    def query(self) -> Graph:
        last = {name: x for name, x in self.keys.items() if name == f"key_{HEAD}"}
        inputs = {"token": self.token, "context": self.c, **self.s, **last}
        return Graph(QueryStep(self.model), inputs, (2, len(last)), [*self.s, *self.queries, *self.decision])

    def write(self) -> Graph:
        soft = self.looking_back() if f"key_{SOFT}" in self.keys else {}
        inputs = {"memory": grown(self.h), **self.s, **soft, **self.upper}
        return Graph(WriteStep(self.model), inputs, (2, len(soft), len(self.upper)), ["scores", "context", *self.upper])

    def looking_back(self) -> Dict[str, Tensor]:
        query = f"query_{SOFT}"
        return {f"keys_{SOFT}": grown(self.keys[f"key_{SOFT}"]), query: self.queries[query], "mask": torch.zeros(2, 3)}


def grown(row: Tensor) -> Tensor:
    """As if three tokens had been read.  (B, D) -> (B, 3, D)."""
    return torch.stack((row, row, row), dim=1)


def named(prefix: str, states: Sequence[LSTMState]) -> Dict[str, Tensor]:
    """The tensors by name; copies, since a tensor that is given twice is traced as one."""
    return {f"{prefix}_{index // 2}_{'hc'[index % 2]}": tensor.clone() for index, tensor in enumerate(pack(states))}


def pack(states: Sequence[LSTMState]) -> List[Tensor]:
    return [tensor for state in states for tensor in state]


def unpack(tensors: Sequence[Tensor]) -> List[LSTMState]:
    return [LSTMState(*tensors[index : index + 2]) for index in range(0, len(tensors), 2)]
