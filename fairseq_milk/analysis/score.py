"""A generation that no sweep made, measured as a sweep measures it."""

import math

import sacrebleu

from ..scoring import PAPER, sentence_latency, summarise
from ..scoring.bootstrap import Interval, bleu_sample, interval, mean_sample
from ..sweep.table import Result
from .generate_log import GenerateLog


def score_log(log: GenerateLog, system: str, setting: str = "") -> Result:
    """BLEU with sacreBLEU's defaults, nan without references; latency in the paper's convention, nan without delays."""
    bleu = sacrebleu.BLEU()
    hypotheses, references = log.texts()
    quality = lag = Interval(math.nan, math.nan, math.nan)
    al = ap = math.nan
    if references is not None:
        quality = interval(bleu_sample(bleu, hypotheses, references))
    if log.no_latency is None:
        sentences = sentence_latency(log.records)
        mean = summarise(sentences, PAPER).mean
        lag = interval(mean_sample([None if latency is None else latency.DAL for latency in sentences]))
        al, ap = mean.AL, mean.AP
    return Result(
        system=system,
        setting=setting,
        seed=0,
        bleu=quality.score,
        bleu_low=quality.low,
        bleu_high=quality.high,
        dal=lag.score,
        dal_low=lag.low,
        dal_high=lag.high,
        al=al,
        ap=ap,
        n_sentences=len(log.records),
        bleu_signature="" if references is None else str(bleu.get_signature()),
        latency_signature="" if log.no_latency is not None else PAPER.signature(),
        train_seconds=math.nan,
        generate_seconds=math.nan,
        warm_start="",
        checkpoint="",
        log=log.path,
        commit="",
    )
