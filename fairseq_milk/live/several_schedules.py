"""A sentence that is translated by the graphs of an exported Transformer with a schedule for each head."""

from typing import TYPE_CHECKING, Dict, Optional, Sequence

import numpy as np

from ..generation.schedule import Written, must_read
from .exported_session import Array, ExportedSession
from .knobs import Settings

if TYPE_CHECKING:
    from .exported import ExportedModel


class SeveralSchedules(ExportedSession):
    """Each head stands at a place of its own, and a token is written when all of them have stopped.

    A token that has to wait is computed again after each READ.  The graphs are given all that was read, since they
    know where each head stands.
    """

    def __init__(self, model: "ExportedModel", settings: Settings) -> None:
        self.forced = False  # whether the next READ is required by a knob
        self.after: Optional[Dict[str, Array]] = None  # of the token under way, if all that was read has been seen
        super().__init__(model, settings)
        self.lookback = None
        self.state["position"] = np.zeros((1, model.manifest.schedules), dtype=np.int64)
        self.state["limit"] = np.array([self.limit], dtype=np.float32)

    def _remember(self) -> None:
        super()._remember()
        self.after = None
        if self.forced:
            self.state["position"] = np.full_like(self.state["position"], self.source_read - 1)
            self.forced = False

    def wants_to_read(self) -> bool:
        if self.source_ended:
            return False
        due = must_read(self.options, self.i, False, self.source_read, self.writes, self.retracted)
        self.forced = bool(due)
        return self.forced or bool(self._seek()["waiting"].any())

    def _seek(self) -> Dict[str, Array]:
        """Move the heads on, layer by layer as far as they need not wait."""
        if self.after is None:
            self.state["token"] = np.array([self.previous], dtype=np.int64)
            self.after = self.model.graphs["query"].run(self.inputs("query"))
            waiting, found = self.after["waiting"][0], self.after.pop("position")
            layers = len(waiting) if self.source_ended or not waiting.any() else int(waiting.argmax()) + 1
            heads = layers * found.shape[1] // len(waiting)
            self.state["position"] = np.concatenate((found[:, :heads], self.state["position"][:, heads:]), axis=1)
        return self.after

    def inputs(self, graph: str) -> Dict[str, Array]:
        if graph == "write":
            self.state["features"] = self._seek()["features"]
        return super().inputs(graph)

    def _take(self, after: Dict[str, Array]) -> Optional[Written]:
        return super()._take({**self._seek(), **after})

    @classmethod
    def _ask(cls, sessions: Sequence[ExportedSession], tokens: Sequence[int]) -> None:
        for one, token in zip(sessions, tokens):
            assert isinstance(one, SeveralSchedules)
            one._begin(token)

    def _begin(self, token: int) -> None:
        """The next target token, after this one: each head looks again at the token on which it stands."""
        self.previous, self.after = token, None
        if self.i > 1:
            self.state["position"] = np.minimum(self.state["position"], self.source_read - 1)
