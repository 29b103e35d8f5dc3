"""A sentence that is translated by the graphs of an exported model: numpy alone."""

import math
from typing import TYPE_CHECKING, Any, Dict, Hashable, List, Optional, Sequence

import numpy as np

from ..generation.schedule import TokenSession, Turn, Written, must_read, too_long
from .knobs import Settings

if TYPE_CHECKING:
    from .exported import ExportedModel

Array = Any  # np.ndarray


class Buffer:
    """A growing array of rows, (1, n, D), whose room is doubled when it is full."""

    def __init__(self, row: Array) -> None:
        self.rows = np.zeros((1, 16, row.shape[1]), dtype=row.dtype)
        self.size = 0

    def append(self, row: Array) -> None:
        if self.size == self.rows.shape[1]:
            self.rows = np.concatenate((self.rows, np.zeros_like(self.rows)), axis=1)
        self.rows[0, self.size] = row[0]
        self.size += 1

    def last(self, count: Optional[int]) -> Array:
        """The last `count` rows, or all."""
        return self.rows[:, 0 if count is None else max(0, self.size - count) : self.size]


class ExportedSession(TokenSession):
    """One sentence.

    `state` holds the tensors passed between graphs by name; tensors are never modified.  `grown` holds what grows by a
    row per token: the memory of the source, and the keys and values of self-attentions.
    """

    def __init__(self, model: "ExportedModel", settings: Settings) -> None:
        self.model, self.options, self.lookback = model, settings.options, model.manifest.lookback
        self.eos = model.target.eos()
        self.k = settings.k
        threshold = settings.threshold
        self.limit = None if threshold is None else math.log(threshold / (1 - threshold))
        self.state: Dict[str, Array] = dict(model.zeros)
        self.grown: Dict[str, Buffer] = {}
        self.i, self.source_read, self.writes, self.retracted = 1, 0, 0, False
        self._ask([self], [self.eos])

    @property
    def batch(self) -> Hashable:
        return id(self.model if self.model.batches else self)

    @classmethod
    def turns(cls, sessions: Sequence["ExportedSession"], tokens: Sequence[Optional[int]]) -> List[Turn]:
        """One source token in and one target token out of each, as a batch."""
        arriving = [(one, token) for one, token in zip(sessions, tokens) if token is not None and one.arrives(token)]
        if arriving:
            cls._read([one for one, _ in arriving], [token for _, token in arriving])
        writing = [one for one in sessions if one.wants_to_write()]
        steps = dict(zip(map(id, writing), cls._write(writing))) if writing else {}
        written = [one.note(steps.get(id(one))) for one in sessions]
        return [Turn(new, one.wants_to_write()) for one, new in zip(sessions, written)]

    def read(self, token: int) -> None:
        self._read([self], [token])

    def write(self) -> Optional[Written]:
        return self._write([self])[0]

    @classmethod
    def _read(cls, sessions: Sequence["ExportedSession"], tokens: Sequence[int]) -> None:
        cls._run("read", sessions, tokens)
        for one in sessions:
            one._remember()

    def _remember(self) -> None:
        self.source_read, self.writes, self.retracted = self.source_read + 1, 0, False
        self.state["mask"] = np.zeros((1, min(self.source_read, self.lookback or self.source_read)), dtype=np.float32)

    def wants_to_read(self) -> bool:
        if self.source_ended:
            return False
        waits = not self._stops()
        return bool(must_read(self.options, self.i, waits, self.source_read, self.writes, self.retracted))

    def _stops(self) -> bool:
        """Whether the mechanism stops: by its energy, by counting, or only at the end of the source."""
        if self.limit is not None:
            return bool(self.state["energy"][0] > self.limit)
        if self.k is not None:
            rate = self.model.rate
            return self.source_read >= self.k + (self.i - 1) * rate.denominator // rate.numerator
        return False

    @classmethod
    def _write(cls, sessions: Sequence["ExportedSession"]) -> List[Optional[Written]]:
        results = sessions[0].model.graphs["write"].run_batch([one.inputs("write") for one in sessions])
        written = [one._take(result) for one, result in zip(sessions, results)]
        going_on = [(one, step.token) for one, step in zip(sessions, written) if step is not None]
        if going_on:
            cls._ask([one for one, _ in going_on], [token for _, token in going_on])
        return written

    def _take(self, after: Dict[str, Array]) -> Optional[Written]:
        """The token that the write step chose, None if it is an EOS too early."""
        scores = after.pop("scores")[0]
        token = self._choose(scores)
        if token == self.eos and not self.options.early_eos and not self.source_ended:
            self.retracted = True
            return None
        self.keep(after)
        self.i, self.writes = self.i + 1, self.writes + 1
        return Written(token, self.source_read, float(scores[token]))

    def _choose(self, scores: Array) -> int:
        """The most probable token: never padding; EOS between min_len and max_len."""
        if too_long(self.options, self.i, self.source_read) and self.i > self.options.min_len:
            return self.eos
        allowed = scores.copy()
        allowed[self.model.target.pad()] = -np.inf
        allowed[self.model.target.unk()] -= self.options.unk_penalty
        if self.i <= self.options.min_len:
            allowed[self.eos] = -np.inf
        return int(allowed.argmax())

    @classmethod
    def _ask(cls, sessions: Sequence["ExportedSession"], tokens: Sequence[int]) -> None:
        """Compute s_i and its queries."""
        cls._run("query", sessions, tokens)

    @staticmethod
    def _run(graph: str, sessions: Sequence["ExportedSession"], tokens: Sequence[int]) -> None:
        for one, token in zip(sessions, tokens):
            one.state["token"] = np.array([token], dtype=np.int64)
        results = sessions[0].model.graphs[graph].run_batch([one.inputs(graph) for one in sessions])
        for one, after in zip(sessions, results):
            one.keep(after)

    def inputs(self, graph: str) -> Dict[str, Array]:
        """The inputs of a graph: state tensors, and of growing tensors all rows or those within the lookback."""
        return {name: self._rows(name) if name in self.grown else self.state[name] for name in self.model.inputs[graph]}

    def _rows(self, name: str) -> Array:
        return self.grown[name].last(self.lookback if name in self.model.memory else None)

    def keep(self, outputs: Dict[str, Array]) -> None:
        """Append the rows of what grows; every output replaces the tensor of its name."""
        for name, x in outputs.items():
            if name in self.model.rows:
                self.grown.setdefault(self.model.rows[name], Buffer(x)).append(x)
        self.state.update(outputs)
