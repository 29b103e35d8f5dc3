"""The fairseq scorer `--scoring simultaneous`: sacreBLEU and latency on one line, each with its signature."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum
from fairseq.scoring import BaseScorer, register_scorer
from fairseq.scoring.bleu import SacrebleuConfig

from .latency import LENGTHS, UNITS, Convention
from .recorder import Recorder
from .records import Record
from .score import Metrics, Score, score_records


@dataclass
class SimultaneousScorerConfig(SacrebleuConfig):
    latency_unit: ChoiceEnum(UNITS) = field(  # type: ignore[valid-type]
        default="subword", metadata={"help": "the unit of latency"}
    )
    latency_eos: ChoiceEnum(("yes", "no")) = field(  # type: ignore[valid-type]
        default="yes", metadata={"help": "whether EOS counts as a token in latency, on both sides"}
    )
    latency_length: ChoiceEnum(LENGTHS) = field(  # type: ignore[valid-type]
        default="hypothesis", metadata={"help": "the |y| of AP and AL (DAL always uses the hypothesis)"}
    )


@register_scorer("simultaneous", dataclass=SimultaneousScorerConfig)
class SimultaneousScorer(BaseScorer):
    """Prints the score of the records of our task; for another task, BLEU of the strings only."""

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        tokenizer = "char" if cfg.sacrebleu_char_level else str(cfg.sacrebleu_tokenizer)
        convention = Convention(str(cfg.latency_unit), str(cfg.latency_eos) == "yes", str(cfg.latency_length))
        self.recorder = Recorder.taken_by_scorer(Metrics(convention, tokenizer, bool(cfg.sacrebleu_lowercase)))

    def score(self, order: int = 4) -> float:
        """BLEU."""
        if order != 4:
            raise NotImplementedError("sacreBLEU is of order 4")
        return self._result().figure("BLEU")

    def result_string(self, order: int = 4) -> str:
        """BLEU = 30.1 ... (sacreBLEU's signature) | AP 0.71 AL 6.00 DAL 8.50 (latency signature)."""
        return self._result().format() if self.pred else "no sentence was scored"

    def _result(self) -> Score:
        if self.recorder.records:
            return self.recorder.score()
        strings = enumerate(zip(self.pred, self.ref))
        records = [Record(n, [], pred.split(), [], ref.split(), None, pred, ref) for n, (pred, ref) in strings]
        return score_records(records, metrics=self.recorder.metrics, no_latency="no delays were recorded")
