"""The three steps of a live translation by the Transformer as modules of torch, from which the graphs are traced.

With one schedule:

    read     one source token in: its keys and values, and the energy of the query under way at it
    query    one target token in: the decoder up to the query of the deciding attention, with its energy at the last
             token read
    write    the attention over the tokens that it is given, the layers above and the log-probabilities of y_i

With a schedule for each head, a layer cannot go on before its heads have stopped:

    read     one source token in: its keys and values
    query    one target token in: each head moves to its next stop in what has been read, `waiting` says in which
             layers one found none; where all have stopped, what the output layer takes
    write    the log-probabilities of y_i

Keys and values of all self-attentions are part of the state, so that no token is encoded twice.
"""

from typing import Any, Dict, List, Sequence, Tuple

import torch
from torch import Tensor, nn

from ..attention import Memory, SimultaneousAttention
from ..functional.heads import join_heads, split_heads
from ..modules.causal_transformer import CausalLayer, KeysValues, sinusoids
from .graph import HEAD, SOFT, Graph, all_of
from .manifest import collected


class Step(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.encoder, self.decoder = model.encoder, model.decoder
        self.first = sum(layer.attention is None for layer in self.layers)  # the layer that decides

    @property
    def layers(self) -> List[CausalLayer]:
        return list(self.decoder.layers)

    def embed(self, token: Tensor, cache: Sequence[Tensor]) -> Tensor:
        """The target token after those in the cache.  (B,) -> (B, 1, D)."""
        x: Tensor = self.decoder.embedding(token).unsqueeze(1)
        return x + sinusoids(cache[0].size(1), 1, x)

    def past(self, cache: Sequence[Tensor]) -> List[KeysValues]:
        """Rows as self-attentions take them: keys and values of one layer after the other.  (B, n, D) each."""
        parts = [split_heads(rows, self.layers[0].self_attention.heads) for rows in cache]
        return [KeysValues(*parts[index : index + 2]) for index in range(0, len(parts), 2)]

    def energy(self, key: Tensor, query: Tensor) -> Tensor:
        """e of one source token under one schedule.  (B, D), (B, D) -> (B,)."""
        head = self.decoder.attention.head
        e: Tensor = head(key[:, None, None], query[:, None], head.weights(key))
        return e[:, 0, 0]


class ReadStep(Step):
    def forward(self, token: Tensor, cache: List[Tensor], query: List[Tensor]) -> Tuple[Tensor, ...]:
        h, after = self.encoder.step(token, self.past(cache))
        rows = [row for attention in self.decoder.attentions for row in memory_rows(attention, h).values()]
        decision = [self.energy(memory_rows(self.decoder.attention, h)[HEAD], one) for one in query]
        return (*rows, *decision, *added(after))


class QueryStep(Step):
    """The decoder up to the self-attention of the layer that decides."""

    def forward(self, token: Tensor, cache: List[Tensor], key: List[Tensor]) -> Tuple[Tensor, ...]:
        x, kept = self.embed(token, cache), []
        for index, (layer, past) in enumerate(zip(self.layers, self.past(cache))):
            x = x if index == 0 else self.layers[index - 1].finish(x, None)
            x, after = layer.to_itself(x, past)
            kept.append(after)
        asked = [self.ask(x) for _ in key]
        decision = [self.energy(one, query) for one, query in zip(key, asked)]
        return (x.squeeze(1), *asked, *decision, *added(kept))

    def ask(self, x: Tensor) -> Tensor:
        s = self.layers[self.first].norm(x).squeeze(1)
        query: Tensor = join_heads(self.decoder.attention.head.query(s))
        return query


class WriteStep(Step):
    """What that layer sees of the source, the layers above and the output."""

    def forward(self, x: Tensor, cache: List[Tensor], memory: List[Tensor]) -> Tuple[Tensor, ...]:
        x, kept, seen = x.unsqueeze(1), [], list(memory)
        pasts = self.past(cache)
        for index, layer in enumerate(self.layers[self.first :]):
            if index > 0:
                x, after = layer.to_itself(x, pasts[index - 1])
                kept.append(after)
            assert layer.attention is not None
            parts = 2 if layer.attention.lookback.soft else 1
            c = look_back(layer.attention, layer.norm(x).squeeze(1), *seen[:parts])
            x, seen = layer.finish(x, c.unsqueeze(1)), seen[parts:]
        features = self.decoder.norm(x).squeeze(1)
        return (self.decoder.output(features).log_softmax(-1), *added(kept))


class SeekStep(Step):
    """The whole decoder with a schedule for each head."""

    def forward(
        self, token: Tensor, position: Tensor, limit: Tensor, cache: List[Tensor], memory: List[Tensor]
    ) -> Tuple[Tensor, ...]:
        """position: (B, S), where each head looks next; limit: (B,), the energy above which it stops."""
        x, kept, waiting, rows = self.embed(token, cache), [], [], list(memory)
        positions: List[Tensor] = []
        for layer, past in zip(self.layers, self.past(cache)):
            x, after = layer.to_itself(x, past)
            kept.append(after)
            if layer.attention is None:
                x = layer.finish(x, None)
                continue
            heads = layer.attention.head.heads
            known, rows = remembered(layer.attention, rows), rows[len(memory_names(layer.attention)) :]
            begin = len(positions) * heads
            queries = layer.attention.queries(layer.norm(x).squeeze(1))
            e = layer.attention.e(queries, known)
            positions.append(first_stop(e > limit[:, None, None], position[:, begin : begin + heads]))
            none = positions[-1] == known.size  # it stands on the last token if that is the end of the source
            waiting.append(none.any(1))
            seen = Memory(known.h, known.keys, positions[-1] + 1 - none.long(), known.weights)
            out = layer.attention.attend(queries, seen)
            x = layer.finish(x, out.c.unsqueeze(1))
        features = self.decoder.norm(x).squeeze(1)
        return (features, torch.cat(positions, dim=1), torch.stack(waiting, dim=1), *added(kept))


class OutputStep(Step):
    def forward(self, features: Tensor) -> Tensor:
        scores: Tensor = self.decoder.output(features).log_softmax(-1)
        return scores


def look_back(attention: SimultaneousAttention, s: Tensor, values: Tensor, *keys: Tensor) -> Tensor:
    """The context of what is given.  s: (B, D), values and keys: (B, J, D) -> (B, D)."""
    assert attention.values is not None
    h, *projected = (split_heads(x, attention.values.heads) for x in (values, *keys))
    queries = {SOFT: attention.soft_energy.query(s)} if keys else {}
    return attention.attend(queries, Memory(h, dict(zip([SOFT], projected)), all_of(h), {SOFT: None}, exact=True)).c


def first_stop(stops: Tensor, position: Tensor) -> Tensor:
    """The first stop at `position` or behind it, J if there is none.  stops: (B, H, J) bool, position: (B, H)."""
    size = stops.size(-1)
    j = torch.arange(size, device=stops.device)
    ahead = stops & (j >= position.unsqueeze(-1))
    return size - (ahead * (size - j)).amax(-1)


# ---- rows of what grows ---------------------------------------------------------------------------------------------


def memory_names(attention: SimultaneousAttention) -> List[str]:
    """What an attention remembers of a source token, in order."""
    return ["value", *attention.energies()]


def memory_rows(attention: SimultaneousAttention, h: Tensor) -> Dict[str, Tensor]:
    """The same by name.  h: (B, D) -> (B, D) each, heads side by side."""
    assert attention.values is not None
    rows = {"value": attention.values.project(h)}
    rows.update({name: energy.project(h) for name, energy in attention.energies().items()})
    return {name: join_heads(row) for name, row in rows.items()}


def remembered(attention: SimultaneousAttention, rows: Sequence[Tensor]) -> Memory:
    """All source tokens that were read, of which an attention has these rows.  (B, J, D) each."""
    assert attention.values is not None
    values, *keys = (split_heads(x, attention.values.heads) for x in rows[: len(memory_names(attention))])
    return attention.packed(values, dict(zip(attention.energies(), keys)), all_of(rows[0]))


def added(kept: Sequence[KeysValues]) -> List[Tensor]:
    """The rows of the last token: keys and values of one layer after the other.  (B, D) each."""
    return [join_heads(x[:, :, -1]) for layer in kept for x in layer]


def row_name(index: int, part: str) -> str:
    return f"value_{index}" if part == "value" else f"key_{index}_{part}"


def cache_names(side: str, layers: Sequence[int]) -> List[str]:
    """Of the rows of self-attentions."""
    return [f"{part}_{side}_{index}" for index in layers for part in ("key", "value")]


# ---- the graphs -----------------------------------------------------------------------------------------------------


def graphs(model: Any) -> Dict[str, Graph]:
    """The graphs of a model, with examples of a batch of two and of three source tokens read."""
    return _Examples(model).graphs()


class _Examples:
    """Names and examples of what passes between the steps."""

    def __init__(self, model: Any) -> None:
        self.model, self.step = model, Step(model)
        self.attentions: List[SimultaneousAttention] = model.decoder.attentions
        self.token = torch.tensor([4, 5])
        self.rows = [row_name(n, part) for n, one in enumerate(self.attentions) for part in memory_names(one)]
        self.encoder = cache_names("encoder", range(len(model.encoder.layers)))

    def row(self) -> Tensor:
        """A tensor of its own each time, since one that is given twice is traced as one."""
        return torch.randn(2, self.model.decoder.norm.weight.numel())

    def grown(self, names: Sequence[str]) -> Dict[str, Tensor]:
        return {collected(name): torch.stack([self.row() for _ in range(3)], dim=1) for name in names}

    def graphs(self) -> Dict[str, Graph]:
        if schedules(self.attentions) > 1:
            return self.several_schedules()
        return self.one_schedule(self.attentions[0].learned)

    def read(self, decision: Sequence[str], asked: Dict[str, Tensor]) -> Graph:
        inputs = {"token": self.token, **self.grown(self.encoder), **asked}
        lists = (len(self.encoder), len(asked))
        return Graph(ReadStep(self.model), inputs, lists, [*self.rows, *decision, *self.encoder])

    def one_schedule(self, learned: bool) -> Dict[str, Graph]:
        decision = ["energy"] if learned else []
        key, asked = ({name: self.row()} if learned else {} for name in (row_name(0, HEAD), f"query_{HEAD}"))
        layers = range(len(self.step.layers))
        lower = cache_names("decoder", layers[: self.step.first + 1])
        upper = cache_names("decoder", layers[self.step.first + 1 :])
        seen = self.grown([name for name in self.rows if not name.endswith(HEAD)])
        return {
            "read": self.read(decision, asked),
            "query": Graph(
                QueryStep(self.model),
                {"token": self.token, **self.grown(lower), **key},
                (len(lower), len(key)),
                ["x", *asked, *decision, *lower],
            ),
            "write": Graph(
                WriteStep(self.model),
                {"x": self.row(), **self.grown(upper), **seen},
                (len(upper), len(seen)),
                ["scores", *upper],
            ),
        }

    def several_schedules(self) -> Dict[str, Graph]:
        cache = cache_names("decoder", range(len(self.step.layers)))
        heads = {"position": torch.zeros(2, schedules(self.attentions), dtype=torch.long), "limit": torch.zeros(2)}
        seek = {"token": self.token, **heads, **self.grown(cache), **self.grown(self.rows)}
        return {
            "read": self.read([], {}),
            "query": Graph(
                SeekStep(self.model),
                seek,
                (len(cache), len(self.rows)),
                ["features", "position", "waiting", *cache],
            ),
            "write": Graph(OutputStep(self.model), {"features": self.row()}, (), ["scores"]),
        }


def schedules(attentions: Sequence[SimultaneousAttention]) -> int:
    """Heads that decide, of all layers."""
    return sum(one.schedules or 1 for one in attentions if one.decides)
