"""The recording of the task: collects the sentences that `fairseq-generate` decodes and writes their results."""

import logging
from dataclasses import fields
from typing import Any, Dict, List, Optional

import torch
from fairseq import utils

from ..attention import name_of
from ..generation import DecodingKnobs
from ..generation.results import remove_old, write_score
from ..scoring.recorder import Recorder
from ..scoring.records import Record

logger = logging.getLogger(__name__)
LIMITS = ("beam", "lenpen", "unkpen", "max_len_a", "max_len_b", "min_len")


class Recording:
    """Records one generation and scores it when the last batch has been decoded.

    cfg: the options of the task.  encoders: --bpe and --tokenizer, in the order in which they are undone.
    """

    def __init__(self, cfg: Any, source_dictionary: Any, target_dictionary: Any) -> None:
        self.cfg, self.source, self.target = cfg, source_dictionary, target_dictionary
        self.recorder = Recorder()
        self.about: Dict[str, Any] = {}  # for the summary of the results
        self.post_process: Optional[str] = None  # --remove-bpe
        self.attention = False  # whether it is recorded
        self.encoders: Dict[str, Any] = {"bpe": None, "tokenizer": None}

    def begin(self, attention: Any, args: Any) -> None:
        """Called when the generator has been built; removes the results of an earlier generation.

        Reads the options that every sentence needs once, because look-ups in the configuration are slow.
        """
        self.post_process, self.attention = self.cfg.post_process, self.cfg.write_attention
        names = [knob.name for knob in fields(DecodingKnobs) if not knob.name.startswith("_")]
        options = {name: getattr(self.cfg, name) for name in [*names, "decode_precision"]}
        options.update((name, getattr(args, name)) for name in LIMITS)
        mechanism = None if attention is None else name_of(attention)
        where = {"subset": self.cfg.gen_subset, "checkpoint": self.cfg.path}
        self.about = {**where, "attention": mechanism, "options": options}
        self.recorder.offer()
        if self.cfg.results_path:
            remove_old(self.cfg.results_path, self.cfg.gen_subset)

    def add(self, sample: Dict[str, Any], hypos: List[List[Dict[str, Any]]]) -> None:
        """Record the best hypothesis of each sentence of a batch."""
        for row, index in enumerate(sample["id"].tolist()):
            self.recorder.add(self._record(index, row, sample, hypos[row][0]))

    def end(self) -> None:
        """Called when the last batch has been decoded; writes and logs the score.

        Our scorer prints the score itself, to the file of --results-path if there is one, but only with references.
        """
        self.recorder.withdraw()
        if not self.recorder.records:
            return
        score, subset = self.recorder.score(), self.cfg.gen_subset
        if self.cfg.results_path:
            write_score(score, self.about, self.cfg.results_path, subset)
        if not self.recorder.has_scorer or score.texts.references is None:
            logger.info(f"{subset}: {score.latency_string()}")
        elif self.cfg.results_path:
            logger.info(f"{subset}: {score.format()}")

    def _record(self, index: int, row: int, sample: Dict[str, Any], hypo: Dict[str, Any]) -> Record:
        target = sample.get("target")
        return Record(
            id=index,
            source=_words(self.source, sample["net_input"]["src_tokens"][row]),
            hypothesis=_words(self.target, hypo["tokens"]),
            delays=hypo["delays"],
            reference=None if target is None else _words(self.target, target[row]),
            attention=_rounded(hypo.get("soft_attention")) if self.attention else None,
            text=self._text(hypo["tokens"]),
            reference_text=None if target is None else self._text(target[row], escape_unk=True),
        )

    def _text(self, tokens: torch.Tensor, escape_unk: bool = False) -> str:
        """The text that `fairseq-generate` prints and scores: with --remove-bpe, --bpe and --tokenizer undone."""
        indices = utils.strip_pad(tokens, self.target.pad()).tolist()
        text: str = self.target.string(indices, self.post_process, escape_unk=escape_unk)
        for encoder in self.encoders.values():
            if encoder is not None:
                text = encoder.decode(text)
        return text


def _words(dictionary: Any, tokens: torch.Tensor) -> List[str]:
    """The subwords of a row, without padding and EOS."""
    unwritten = (dictionary.pad(), dictionary.eos())
    return [dictionary[t] for t in tokens.tolist() if t not in unwritten]


def _rounded(attention: Optional[List[List[float]]]) -> Optional[List[List[float]]]:
    return attention and [[round(weight, 6) for weight in row] for row in attention]
