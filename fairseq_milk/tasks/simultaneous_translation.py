"""`--task simultaneous_translation`: fairseq's `translation`, with a simultaneous generator and no sentence dropped."""

import logging
import os
import sys
from argparse import Namespace
from dataclasses import dataclass, field, fields
from io import TextIOWrapper
from typing import Any, Callable, Dict, List, Optional

import torch
from fairseq import utils
from fairseq.data.data_utils import infer_language_pair
from fairseq.data.iterators import CountingIterator
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II, open_dict
from omegaconf.errors import OmegaConfBaseException

from ..attention import name_of
from ..console.errors import UserError, first_line, require
from ..console.files import require_text
from ..generation import (
    AlignedBeamSearch,
    DecodingKnobs,
    DecodingOptions,
    SimultaneousGenerator,
    attention_of,
    full_read,
)
from ..generation.knobs import check_knobs, configure_head, decoding_options
from ..generation.results import remove_old, write_score
from ..host.data_files import check_data_files
from ..host.dictionary import QuickDictionary
from ..host.model_guard import refuse_fairseq_models
from ..host.rank_seed import seed_by_rank
from ..scoring.recorder import Recorder
from ..scoring.records import Record
from ..scoring.scorer import SimultaneousScorerConfig

logger = logging.getLogger(__name__)
OFFLINE_BEAM = 5  # fairseq's default; simultaneous models are greedy
STDIN = "-"  # fairseq-interactive's --input by default
UNSET = 0  # a beam that the user has not given


@dataclass
class SimultaneousTranslationConfig(TranslationConfig, DecodingKnobs):
    write_attention: bool = field(
        default=False, metadata={"help": "with --results-path: write the soft attention to the JSON lines too"}
    )
    results_path: Optional[str] = II("common_eval.results_path")
    path: Optional[str] = II("common_eval.path")
    post_process: Optional[str] = II("common_eval.post_process")
    gen_subset: str = II("dataset.gen_subset")
    input: str = II("interactive.input")
    max_update: int = II("optimization.max_update")


@register_task("simultaneous_translation", dataclass=SimultaneousTranslationConfig)
class SimultaneousTranslationTask(TranslationTask):
    cfg: SimultaneousTranslationConfig

    recorder: Optional[Recorder] = None  # of what `fairseq-generate` is going to decode
    about: Dict[str, Any] = {}  # for the summary of its results
    tokenizer_in_use: Any = None
    bpe_in_use: Any = None

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Also sets what `fairseq-generate` does by default.

        Our scorer; a beam that depends on the model (1 if it is simultaneous, else fairseq's 5); and a length limit
        that grows with the source, which fairseq's fixed 200 tokens do not.
        """
        super().add_args(parser)
        if parser.get_default("scoring") == "bleu":
            parser.set_defaults(scoring="simultaneous")
            gen_parser_from_dataclass(parser, SimultaneousScorerConfig())
        if parser.get_default("beam") == OFFLINE_BEAM:
            parser.set_defaults(beam=UNSET, max_len_a=DecodingOptions().max_len_a)

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "SimultaneousTranslationTask":
        check_knobs(cfg)
        data = utils.split_paths(cfg.data)[0]
        if not os.path.isdir(data):
            raise UserError(f"there is no data directory {data}: run fairseq-preprocess --destdir {data} first")
        if cfg.source_lang is None and infer_language_pair(data)[0] is None:
            raise UserError(f"there is no data set in {data}: run fairseq-preprocess, or give the languages, -s and -t")
        return super().setup_task(cfg, **kwargs)

    @classmethod
    def load_dictionary(cls, filename: str) -> QuickDictionary:
        try:
            dictionary: QuickDictionary = QuickDictionary.load(filename)
        except FileNotFoundError as error:
            raise UserError(f"there is no dictionary {filename}: run fairseq-preprocess first") from error
        except Exception as error:  # fairseq's own, of many kinds
            raise UserError(f"{filename} is no dictionary of fairseq-preprocess: {first_line(error)}") from error
        return dictionary

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        languages = {self.cfg.source_lang: self.source_dictionary, self.cfg.target_lang: self.target_dictionary}
        words = {str(language): len(dictionary) for language, dictionary in languages.items()}
        try:
            for folder in utils.split_paths(self.cfg.data):
                check_data_files(folder, split, combine, words)
            super().load_dataset(split, epoch, combine, **kwargs)
        except UserError:
            raise
        except FileNotFoundError as error:
            raise UserError(f"there is no data set '{split}' in {self.cfg.data}: run fairseq-preprocess") from error
        except (AssertionError, ValueError) as error:  # sides of different lengths; fairseq cannot open an empty one
            raise UserError(f"the data set '{split}' in {self.cfg.data} is empty or broken: {error}") from error
        if len(self.datasets[split]) == 0:
            raise UserError(f"the data set '{split}' in {self.cfg.data} is empty")

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """As fairseq's, but the last sentences are not dropped when they do not fill a multiple of eight.

        And the batches do not depend on the epoch in which they are made: a run that is resumed in its third epoch
        would go on with other batches than one that was never interrupted.
        """
        made_before = self.dataset_to_epoch_iter.get(dataset)
        epoch = kwargs.get("epoch", 1)
        kwargs.update(required_batch_size_multiple=1, epoch=1)
        iterator = super().get_batch_iterator(dataset, *args, **kwargs)
        if dataset is self.datasets.get(self.cfg.gen_subset):
            self.recorder = Recorder()
        if iterator is not made_before:
            iterator.epoch = max(epoch, 1)
            if self.recorder is not None:
                batches = iterator.next_epoch_itr
                iterator.next_epoch_itr = lambda **options: Ending(batches(**options), self._report)
        return iterator

    def filter_indices_by_size(self, indices: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            kept = super().filter_indices_by_size(indices, dataset, *args, **kwargs)
        except Exception as error:  # a sentence that is too long
            raise UserError(str(error)) from error
        if len(kept) == 0:
            raise UserError(
                f"none of the {len(dataset)} sentences is short enough for --max-source-positions and "
                "--max-target-positions"
            )
        return kept

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        refuse_fairseq_models(cfg)
        return super().build_model(cfg, from_checkpoint)

    def build_criterion(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_independent_copies()
        return super().build_criterion(cfg, *args, **kwargs)

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, *args: Any, **kwargs: Any
    ) -> Any:
        """A training that is run again although it has ended stays as it is; fairseq would make one update more."""
        if 0 < self.cfg.max_update <= update_num:
            logger.info(f"the training has ended before: {update_num} updates, --max-update {self.cfg.max_update}")
            raise SystemExit(0)
        seed_by_rank()
        return super().train_step(sample, model, criterion, optimizer, update_num, *args, **kwargs)

    # ---- decoding -----------------------------------------------------------------------------------------------

    def build_generator(self, models: List[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        """Ours where decoding is greedy; fairseq's own for a search, which only an offline model can make."""
        if getattr(args, "score_reference", False):
            return super().build_generator(models, args, *rest, **kwargs)
        attention = attention_of(models[0])
        configure_head(attention, self.cfg)
        streaming = attention is not None and attention.streaming
        in_training = isinstance(args, Namespace)  # --eval-bleu
        if not in_training:
            self._require_text()
            require(args.beam >= UNSET, "beam", args.beam, "must be at least 1")
            with open_dict(args):
                args.print_step = True  # the delays, on fairseq's own step line
                args.beam = args.beam or (1 if streaming else OFFLINE_BEAM)
        search = search_asked(models, args, 1 if streaming else OFFLINE_BEAM)
        if streaming and search:
            raise UserError(search)
        if search or attention is None:
            generator = self._beam_search(models, args, *rest, **kwargs)
        else:
            generator = self._simultaneous_generator(args)
        generator.recorder = None if in_training else self.recorder
        if generator.recorder:
            self._begin_records(generator.recorder, attention, args)
        return generator

    def _require_text(self) -> None:
        """`fairseq-interactive` would stop at the first line that is no UTF-8, after translating those before it.

        From a file it is refused at the start; from a pipe its bytes are replaced, as `fairseq-milk stream` does.
        """
        try:
            source = self.cfg.input
        except OmegaConfBaseException:  # fairseq is used from Python
            source = STDIN
        if source != STDIN:
            require_text(source, "--input")
        elif isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")

    def _beam_search(self, models: List[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        self._options(args)  # refuses limits that fairseq would stumble over
        if attention_of(models[0]) is not None and getattr(args, "print_alignment", None):
            extra = {**(kwargs.get("extra_gen_cls_kwargs") or {}), "print_alignment": args.print_alignment}
            kwargs.update(seq_gen_cls=AlignedBeamSearch, extra_gen_cls_kwargs=extra)
        return super().build_generator(models, args, *rest, **kwargs)

    def _options(self, args: Any) -> DecodingOptions:
        defaults = DecodingOptions()
        return decoding_options(
            self.cfg,
            max_len_a=getattr(args, "max_len_a", defaults.max_len_a),
            max_len_b=getattr(args, "max_len_b", defaults.max_len_b),
            min_len=getattr(args, "min_len", defaults.min_len),
            unk_penalty=getattr(args, "unkpen", defaults.unk_penalty),
        )

    def _simultaneous_generator(self, args: Any) -> SimultaneousGenerator:
        return SimultaneousGenerator(
            self.target_dictionary,
            self._options(args),
            alignment=getattr(args, "print_alignment", None),
            attention=self.cfg.write_attention,
            length_penalty=getattr(args, "lenpen", 1),
            normalise=not getattr(args, "unnormalized", False),
        )

    def inference_step(
        self, generator: Any, models: List[Any], sample: Dict[str, Any], *args: Any, **kwargs: Any
    ) -> List[List[Dict[str, Any]]]:
        hypos = super().inference_step(generator, models, sample, *args, **kwargs)
        if not hasattr(generator, "recorder"):
            return hypos
        src_tokens = sample["net_input"]["src_tokens"]
        for row, nbest in enumerate(hypos):
            for hypo in nbest:
                if "delays" not in hypo:
                    full_read(hypo, src_tokens[row], self.source_dictionary.pad())
        if generator.recorder:
            for row, index in enumerate(sample["id"].tolist()):
                generator.recorder.add(self._record(index, row, sample, hypos[row][0]))
        return hypos

    # ---- what fairseq-generate leaves behind --------------------------------------------------------------------

    def build_tokenizer(self, args: Any) -> Any:
        self.tokenizer_in_use = super().build_tokenizer(args)
        return self.tokenizer_in_use

    def build_bpe(self, args: Any) -> Any:
        self.bpe_in_use = super().build_bpe(args)
        return self.bpe_in_use

    def _begin_records(self, recorder: Recorder, attention: Any, args: Any) -> None:
        names = [knob.name for knob in fields(DecodingKnobs) if not knob.name.startswith("_")]
        options = {name: getattr(self.cfg, name) for name in names}
        limits = ("beam", "lenpen", "unkpen", "max_len_a", "max_len_b", "min_len")
        options.update((name, getattr(args, name)) for name in limits)
        mechanism = None if attention is None else name_of(attention)
        where = {"subset": self.cfg.gen_subset, "checkpoint": self.cfg.path}
        self.about = {**where, "attention": mechanism, "options": options}
        recorder.offer()
        if self.cfg.results_path:
            remove_old(self.cfg.results_path, self.cfg.gen_subset)

    def _report(self) -> None:
        """The last batch has been decoded.  Our scorer prints the score itself, to the file of --results-path if there
        is one, but only where there are references."""
        if self.recorder is None or not self.recorder.records:
            return
        score = self.recorder.score()
        if self.cfg.results_path:
            write_score(score, self.about, self.cfg.results_path, self.cfg.gen_subset)
        if not self.recorder.has_scorer or score.texts.references is None:
            logger.info(f"{self.cfg.gen_subset}: {score.latency_string()}")
        elif self.cfg.results_path:
            logger.info(f"{self.cfg.gen_subset}: {score.format()}")

    def _record(self, index: int, row: int, sample: Dict[str, Any], hypo: Dict[str, Any]) -> Record:
        target = sample.get("target")
        return Record(
            id=index,
            source=self._words(self.source_dictionary, sample["net_input"]["src_tokens"][row]),
            hypothesis=self._words(self.target_dictionary, hypo["tokens"]),
            delays=hypo["delays"],
            reference=None if target is None else self._words(self.target_dictionary, target[row]),
            attention=rounded(hypo.get("soft_attention")) if self.cfg.write_attention else None,
            text=self._text(hypo["tokens"]),
            reference_text=None if target is None else self._text(target[row], escape_unk=True),
        )

    def _text(self, tokens: torch.Tensor, escape_unk: bool = False) -> str:
        """As `fairseq-generate` prints and scores it: --remove-bpe, --bpe and --tokenizer undone."""
        indices = utils.strip_pad(tokens, self.target_dictionary.pad()).tolist()
        text = self.target_dictionary.string(indices, self.cfg.post_process, escape_unk=escape_unk)
        for encoder in (self.bpe_in_use, self.tokenizer_in_use):
            if encoder is not None:
                text = encoder.decode(text)
        return text

    @staticmethod
    def _words(dictionary: Any, tokens: torch.Tensor) -> List[str]:
        """The subwords of a row, without padding and EOS."""
        return [dictionary[t] for t in tokens.tolist() if t not in (dictionary.pad(), dictionary.eos())]


class Ending(CountingIterator):  # type: ignore[misc]
    """The batches of fairseq's iterator; calls `ended` when there is none left."""

    def __init__(self, batches: Any, ended: Callable[[], None]) -> None:
        super().__init__(batches, total=len(batches))
        self.ended = ended

    def __next__(self) -> Any:
        if not self.has_next():
            self.ended()
        return super().__next__()


def rounded(attention: Optional[List[List[float]]]) -> Optional[List[List[float]]]:
    return attention and [[round(weight, 6) for weight in row] for row in attention]


def search_asked(models: List[Any], args: Any, beam: int) -> Optional[str]:
    """None if decoding is greedy, else why that will not do for a simultaneous model.  beam: if none is given."""
    if len(models) > 1:
        return "a simultaneous model cannot be decoded in an ensemble: give one checkpoint to --path"
    beam = getattr(args, "beam", beam)
    if beam > 1:
        return (
            f"--beam {beam} needs the whole source: a simultaneous model cannot take back what it has written and "
            "decodes greedily, use --beam 1"
        )
    for option in ("sampling", "constraints", "match_source_len", "no_repeat_ngram_size", "prefix_size", "lm_path"):
        if getattr(args, option, None):
            return f"--{option.replace('_', '-')} cannot be used with a simultaneous model"
    return None


def refuse_independent_copies() -> None:
    """torchrun without --distributed-world-size would train unconnected copies and exit with success."""
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    connected = torch.distributed.is_available() and torch.distributed.is_initialized()
    if launched > 1 and not connected:
        raise UserError(
            f"torchrun started {launched} processes but fairseq was told of one, so that each would train a model of "
            f"its own: add --distributed-world-size {launched} (on CPU as in examples/README.md, 'data parallel')"
        )
