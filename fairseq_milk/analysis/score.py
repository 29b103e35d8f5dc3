"""A generation that no sweep made, measured as a sweep measures it."""

import math

import sacrebleu

from ..scoring import PAPER, sentence_latency
from ..scoring.bootstrap import Interval, corpus_sample, interval, mean_sample
from ..sweep.table import Result
from .generate_log import GenerateLog


def score_log(log: GenerateLog, system: str, setting: str = "") -> Result:
    """BLEU with sacreBLEU's defaults, nan without references; latency in the paper's convention, nan without delays."""
    bleu = sacrebleu.BLEU()
    hypotheses, references = log.texts()
    quality = dal = al = ap = Interval(math.nan, math.nan, math.nan)
    if references is not None:
        quality = interval(corpus_sample(bleu, hypotheses, references))
    if log.no_latency is None:
        sentences = sentence_latency(log.records)
        dal, al, ap = (
            interval(mean_sample([None if latency is None else getattr(latency, measure) for latency in sentences]))
            for measure in ("DAL", "AL", "AP")
        )
    return Result(
        system=system,
        setting=setting,
        seed=0,
        bleu=quality.score,
        bleu_low=quality.low,
        bleu_high=quality.high,
        dal=dal.score,
        dal_low=dal.low,
        dal_high=dal.high,
        al=al.score,
        ap=ap.score,
        n_sentences=len(log.records),
        bleu_signature="" if references is None else str(bleu.get_signature()),
        latency_signature="" if log.no_latency is not None else PAPER.signature(),
        train_seconds=math.nan,
        generate_seconds=math.nan,
        warm_start="",
        checkpoint="",
        log=log.path,
        commit="",
        al_low=al.low,
        al_high=al.high,
        ap_low=ap.low,
        ap_high=ap.high,
    )
