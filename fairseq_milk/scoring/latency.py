"""Latency under a stated convention: AP, AL, DAL, LAAL, CW and the initial delay, by sentence and by corpus.

The formulas are those of `fairseq_milk.functional.latency`; this module computes their arguments.  Figures can only be
compared under the same convention, so every `Convention` has a signature in the manner of sacreBLEU.
"""

from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence

import torch
from torch import Tensor

from ..console.errors import UserError
from ..functional.latency import average_lagging, average_proportion, differentiable_average_lagging
from ..functional.masking import padding_mask
from ..text.subwords import word_ends, words_begun
from ..version import __version__
from .records import Markers, Record, find_markers

UNITS = ("subword", "word")
LENGTHS = ("hypothesis", "reference")
BATCH = 1024  # sentences of similar length that are computed at once


@dataclass(frozen=True)
class Convention:
    """How tokens are counted.  The default is the paper's convention.

    unit: 'subword', the tokens of the model, or 'word'.  A target word is written when its last subword is; a delay in
        words is the number of source words of which at least one subword has been read.
    eos: whether EOS counts as a token on both sides: in |x|, in |y| and with a delay.  Otherwise delays end at |x|.
    length: the |y| of AP and of AL's gamma, 'hypothesis' or 'reference'.  DAL always uses the hypothesis and LAAL the
        longer of the two.
    """

    unit: str = "subword"
    eos: bool = True
    length: str = "hypothesis"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"the unit of latency must be one of {', '.join(UNITS)}, got {self.unit!r}")
        if self.length not in LENGTHS:
            raise ValueError(f"the length of latency must be one of {', '.join(LENGTHS)}, got {self.length!r}")

    def signature(self) -> str:
        """For example unit:subword|eos:yes|len:hyp|version:0.1.0."""
        return f"unit:{self.unit}|eos:{'yes' if self.eos else 'no'}|len:{self.length[:3]}|version:{__version__}"

    @classmethod
    def from_signature(cls, signature: str) -> "Convention":
        """The convention with this signature; its version is ignored.  UserError if it is not a signature."""
        choices, version, _ = signature.partition("|version:")
        for unit, eos, length in product(UNITS, (True, False), LENGTHS):
            convention = cls(unit, eos, length)
            if convention.signature().startswith(choices + version) and version:
                return convention
        raise UserError(f"'{signature:.100}' is not a signature of latency")


# The paper's tokens are those of its BPE.  It forces the head to stop "when it reaches the EOS token, p_{i,|x|} = 1":
# |x| counts the source EOS.  The paper leaves three points open.  Chosen here: |y| counts EOS, as in the training loss;
# y is the hypothesis, since only it has delays; tau = |y| if the source is never read to its end.
PAPER = Convention()
SIMULEVAL = Convention("word", eos=False, length="reference")  # SimulEval 1.1, text input, its defaults
SIMULEVAL_1_0 = Convention("word", eos=True, length="hypothesis")  # SimulEval 1.0, text input
CONVENTIONS: Dict[str, Convention] = {"paper": PAPER, "simuleval": SIMULEVAL, "simuleval-1.0": SIMULEVAL_1_0}


class Schedule(NamedTuple):
    """A record under a convention: delays g_i, |x| and the length of the reference (None without a reference)."""

    delays: Sequence[int]
    src_length: int
    ref_length: Optional[int] = None


class Latency(NamedTuple):
    """The metrics of a sentence, or their means over a corpus."""

    AP: float  # average proportion (Cho and Esipova 2016)
    AL: float  # average lagging (Ma et al. 2018)
    DAL: float  # differentiable average lagging (the paper)
    LAAL: float  # length-adaptive average lagging (Papi et al. 2022): AL with the longer |y| in gamma
    CW: float  # consecutive wait (Gu et al. 2017): mean length of a run of READs
    initial: float  # initial delay: g_1


class CorpusLatency(NamedTuple):
    """mean: unweighted mean over `measured` sentences.  skipped: sentences with an empty hypothesis or source."""

    mean: Latency
    measured: int
    skipped: int
    convention: Convention

    def format(self) -> str:
        """For example AP 0.710 AL 6.00 DAL 8.50 (unit:...)."""
        figures = f"AP {self.mean.AP:.3f} AL {self.mean.AL:.2f} DAL {self.mean.DAL:.2f}"
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{figures} ({self.convention.signature()}{skipped})"


def to_convention(record: Record, convention: Convention, markers: Optional[Markers] = None) -> Schedule:
    """Delays and lengths of a record under a convention.  markers: taken from the record itself if None."""
    if convention.unit == "word":
        markers = markers or find_markers([record])
    else:
        markers = Markers()  # every subword is a unit
    read = words_begun(record.source, markers.source)  # indexed by the number of subwords
    src_length = read[-1]
    read.append(src_length + 1)  # with EOS
    delays = [read[record.delays[i]] for i in word_ends(record.hypothesis, markers.target)]
    ref_length = None if record.reference is None else words_begun(record.reference, markers.target)[-1]
    if not convention.eos:
        return Schedule([min(g, src_length) for g in delays], src_length, ref_length)
    if record.eos_written:
        delays.append(read[record.delays[-1]])
    return Schedule(delays, src_length + 1, None if ref_length is None else ref_length + 1)


def schedule_latency(schedules: Sequence[Schedule], length: str = "hypothesis") -> List[Optional[Latency]]:
    """The metrics of each schedule; None for an empty hypothesis or source.  length: see `Convention`."""
    if length == "reference" and any(s.ref_length is None for s in schedules):
        raise ValueError("|y| cannot be taken from the reference: there are sentences without one")
    results: List[Optional[Latency]] = [None] * len(schedules)
    order = [b for b, schedule in enumerate(schedules) if len(schedule.delays) > 0 and schedule.src_length > 0]
    order.sort(key=lambda b: len(schedules[b].delays))
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        for b, values in zip(batch, _batch_latency([schedules[b] for b in batch], length)):
            results[b] = Latency(*values)
    return results


def _batch_latency(schedules: Sequence[Schedule], length: str) -> List[List[float]]:
    """All metrics of non-empty schedules, one row per sentence.  An empty reference has |y| = 1, as in SimulEval."""
    size = max(len(s.delays) for s in schedules)
    g = torch.tensor([[*s.delays, *[0] * (size - len(s.delays))] for s in schedules], dtype=torch.float64)
    src = torch.tensor([s.src_length for s in schedules])
    hyp = torch.tensor([len(s.delays) for s in schedules])
    ref = torch.tensor([len(s.delays) if s.ref_length is None else max(s.ref_length, 1) for s in schedules])
    y = hyp if length == "hypothesis" else ref
    metrics = (
        average_proportion(g, src, hyp) * hyp / y,
        _average_lagging_against(y, g, src, hyp),
        differentiable_average_lagging(g, src, hyp),
        _average_lagging_against(torch.maximum(hyp, ref), g, src, hyp),
        _consecutive_wait(g, hyp),
        g[:, 0],
    )
    rows: List[List[float]] = torch.stack(metrics, dim=-1).tolist()
    return rows


def _average_lagging_against(y: Tensor, g: Tensor, src: Tensor, hyp: Tensor) -> Tensor:
    """AL with gamma = y / |x|: AL + (tau-1)/2 (|x|/|hypothesis| - |x|/y), since mean_{i <= tau} (i-1) = (tau-1)/2."""
    complete = (g >= src.unsqueeze(1)) & ~padding_mask(hyp, g.size(1))
    tau = torch.minimum((complete.cumsum(-1) == 0).sum(-1) + 1, hyp)
    x = src.to(g.dtype)
    return average_lagging(g, src, hyp) + (tau - 1) / 2 * (x / hyp - x / y)


def _consecutive_wait(g: Tensor, hyp: Tensor) -> Tensor:
    """CW = number of READs before the last WRITE / number of runs of READs; 0 if nothing was read."""
    reads = torch.diff(g.cummax(-1).values, prepend=g.new_zeros(g.size(0), 1))
    reads = reads.masked_fill(padding_mask(hyp, g.size(1)), 0.0)
    return reads.sum(-1) / (reads > 0).sum(-1).clamp(min=1)


def sentence_latency(
    records: Sequence[Record], convention: Convention = PAPER, markers: Optional[Markers] = None
) -> List[Optional[Latency]]:
    """The metrics of each record; None if hypothesis or source is empty under the convention."""
    if markers is None and convention.unit == "word":
        markers = find_markers(records)
    return schedule_latency([to_convention(r, convention, markers) for r in records], convention.length)


def corpus_latency(
    records: Sequence[Record], convention: Convention = PAPER, markers: Optional[Markers] = None
) -> CorpusLatency:
    """Unweighted means over the sentences.  Sentences without latency are skipped and counted, as in SimulEval."""
    return summarise(sentence_latency(records, convention, markers), convention)


def summarise(sentences: Iterable[Optional[Latency]], convention: Convention) -> CorpusLatency:
    """`corpus_latency` from the metrics of the sentences; ValueError if no sentence has a latency."""
    sentences = list(sentences)
    measured = [latency for latency in sentences if latency is not None]
    if not measured:
        raise ValueError("no sentence has both a source and a hypothesis: there is no latency to report")
    mean = Latency(*map(fmean, zip(*measured)))
    return CorpusLatency(mean, len(measured), len(sentences) - len(measured), convention)
