"""Collects the records of one generation and scores them."""

from typing import ClassVar, List, Optional

from .records import Record
from .score import Metrics, Score, score_records


class Recorder:
    """Belongs to a task: `add` takes one sentence at a time, `score` returns the score of all of them.

    fairseq builds the scorer of a generation after its generator and does not pass the task to it.  Therefore the task
    calls `offer` when it builds the generator, and the next scorer takes the offered recorder.  From then on the task
    and this scorer share it.

    metrics: settings of the metrics, set by the scorer.  has_scorer: whether a scorer of ours prints the score.
    """

    _offered: ClassVar[Optional["Recorder"]] = None

    def __init__(self) -> None:
        self.records: List[Record] = []
        self.metrics = Metrics()
        self.has_scorer = False
        self._score: Optional[Score] = None

    def add(self, record: Record) -> None:
        self.records.append(record)
        self._score = None

    def score(self) -> Score:
        """The score of all records so far, computed once."""
        if self._score is None:
            self._score = score_records(self.records, metrics=self.metrics)
        return self._score

    def offer(self) -> None:
        """Offer this recorder to the scorer that is built next."""
        Recorder._offered = self

    def withdraw(self) -> None:
        """Withdraw the offer at the end of the generation, in case that its scorer was not ours."""
        if Recorder._offered is self:
            Recorder._offered = None

    @classmethod
    def taken_by_scorer(cls, metrics: Metrics) -> "Recorder":
        """The offered recorder, or a new one if the generation belongs to a task of fairseq."""
        recorder, cls._offered = cls._offered or cls(), None
        recorder.metrics, recorder.has_scorer = metrics, True
        return recorder
