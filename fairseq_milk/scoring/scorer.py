"""The fairseq scorer `--scoring simultaneous`: sacreBLEU and latency on one line, each with its signature."""

from dataclasses import dataclass, field
from typing import Any

import sacrebleu
from fairseq.dataclass import ChoiceEnum
from fairseq.scoring import register_scorer
from fairseq.scoring.bleu import SacrebleuConfig, SacrebleuScorer

from .latency import LENGTHS, UNITS, Convention, corpus_latency
from .records import LATENCY


@dataclass
class SimultaneousScorerConfig(SacrebleuConfig):
    latency_unit: ChoiceEnum(UNITS) = field(  # type: ignore[valid-type]
        default="subword", metadata={"help": "what latency is counted in"}
    )
    latency_eos: ChoiceEnum(("yes", "no")) = field(  # type: ignore[valid-type]
        default="yes", metadata={"help": "whether EOS is a token in latency, on both sides"}
    )
    latency_length: ChoiceEnum(LENGTHS) = field(  # type: ignore[valid-type]
        default="hypothesis", metadata={"help": "the |y| of AP and AL (DAL: always the hypothesis)"}
    )


@register_scorer("simultaneous", dataclass=SimultaneousScorerConfig)
class SimultaneousScorer(SacrebleuScorer):
    """BLEU of the strings that fairseq-generate adds, latency of the records that the task adds to `LATENCY`.

    Building one starts a new generation: `LATENCY` is cleared, and this scorer keeps the list that is filled next.
    """

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        # fairseq's scorer tokenises beforehand, which leaves "tok:none" in the signature; here sacreBLEU does it.
        tokenizer = "char" if cfg.sacrebleu_char_level else str(cfg.sacrebleu_tokenizer)
        self.bleu = sacrebleu.BLEU(tokenize=tokenizer, lowercase=cfg.sacrebleu_lowercase)
        self.convention = Convention(str(cfg.latency_unit), str(cfg.latency_eos) == "yes", str(cfg.latency_length))
        LATENCY.clear(scoring=self)
        self.records = LATENCY.records

    def add_string(self, ref: str, pred: str) -> None:
        self.ref.append(ref)
        self.pred.append(pred)

    def _score(self, order: int = 4) -> Any:
        if order != 4:
            raise NotImplementedError("sacreBLEU is of order 4")
        return self.bleu.corpus_score(self.pred, [self.ref])

    def result_string(self, order: int = 4) -> str:
        """BLEU = 30.1 ... (sacreBLEU's signature) | AP 0.71 AL 6.00 DAL 8.50 (latency signature)."""
        if not self.pred:
            return "no sentence was scored"
        return f"{self._score(order).format()} ({self.bleu.get_signature()}) | {self._latency_string()}"

    def _latency_string(self) -> str:
        try:
            return corpus_latency(self.records, self.convention).format()
        except ValueError as error:
            return f"no latency: {error}"
