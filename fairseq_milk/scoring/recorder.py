"""The records of one generation as they are decoded, and their score when it has ended."""

from typing import ClassVar, List, Optional

from .records import Record
from .score import Metrics, Score, score_records


class Recorder:
    """Belongs to a task: `add` takes one sentence at a time, `score` gives the score of all of them.

    fairseq builds the scorer of a generation after its generator and tells it nothing of the task.  So the task makes
    its recorder known with `offer` when it builds the generator, and the scorer that is built next takes it: from then
    on both have the same recorder, and nobody else has.

    metrics: how to count; set by the scorer.  has_scorer: whether a scorer of ours prints the score.
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
        """Of all records so far, computed once."""
        if self._score is None:
            self._score = score_records(self.records, metrics=self.metrics)
        return self._score

    def offer(self) -> None:
        """To the scorer that is built next."""
        Recorder._offered = self

    @classmethod
    def taken_by_scorer(cls, metrics: Metrics) -> "Recorder":
        """The recorder on offer, or a new one if the generation is another task's."""
        recorder, cls._offered = cls._offered or cls(), None
        recorder.metrics, recorder.has_scorer = metrics, True
        return recorder
