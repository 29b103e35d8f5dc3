"""`--task simultaneous_translation`: fairseq's `translation`, with a simultaneous generator and no sentence dropped."""

import os
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import torch
from fairseq import utils
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II, open_dict

from ..errors import UserError
from ..generation import DecodingOptions, SimultaneousGenerator, full_read
from ..scoring import LATENCY, Record


@dataclass
class SimultaneousTranslationConfig(TranslationConfig):
    head_threshold: float = field(
        default=0.5, metadata={"help": "probability above which the learned head stops (writes) in decoding"}
    )
    min_wait: int = field(default=1, metadata={"help": "source tokens to read before the first target token"})
    max_consecutive_writes: int = field(
        default=0, metadata={"help": "target tokens in a row while there is something to read; 0: any number"}
    )
    decode_k: Optional[int] = field(default=None, metadata={"help": "decode wait-k with this k instead of its own"})
    no_early_eos: bool = field(
        default=False, metadata={"help": "read on when EOS would be written before the whole source has been read"}
    )
    write_attention: bool = field(
        default=False, metadata={"help": "with --results-path: write the soft attention to the JSON lines too"}
    )
    results_path: Optional[str] = II("common_eval.results_path")
    gen_subset: str = II("dataset.gen_subset")
    distributed_world_size: int = II("distributed_training.distributed_world_size")


@register_task("simultaneous_translation", dataclass=SimultaneousTranslationConfig)
class SimultaneousTranslationTask(TranslationTask):
    cfg: SimultaneousTranslationConfig

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Also makes our scorer the default of `fairseq-generate`."""
        super().add_args(parser)
        if parser.get_default("scoring") == "bleu":
            parser.set_defaults(scoring="simultaneous")

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "SimultaneousTranslationTask":
        check_options(cfg)
        paths = utils.split_paths(cfg.data)
        if not os.path.isdir(paths[0]):
            raise UserError(f"there is no data directory {paths[0]}: run fairseq-preprocess --destdir {paths[0]} first")
        try:
            return super().setup_task(cfg, **kwargs)
        except FileNotFoundError as error:
            raise UserError(
                f"there is no dictionary {error.filename or error} in the data directory: run fairseq-preprocess first"
            ) from error

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """As fairseq's, without dropping what does not fill a multiple of eight sentences (fairseq issue 0.1)."""
        if len(dataset) == 0:
            raise UserError("the data set is empty: there is nothing to train on or to translate")
        kwargs["required_batch_size_multiple"] = 1
        return super().get_batch_iterator(dataset, *args, **kwargs)

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        refuse_independent_copies(self.cfg.distributed_world_size)
        return super().build_criterion(cfg, from_checkpoint)

    # ---- decoding -----------------------------------------------------------------------------------------------

    def build_generator(self, models: List[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        streaming = any(getattr(attention_of(model), "streaming", False) for model in models)
        if getattr(args, "score_reference", False):
            return super().build_generator(models, args, *rest, **kwargs)
        in_training = isinstance(args, Namespace)  # --eval-bleu
        if not in_training:
            with open_dict(args):
                args.print_step = True  # the delays, on fairseq's own step line
        if streaming:
            generator = self._simultaneous_generator(models, args)
        else:
            generator = super().build_generator(models, args, *rest, **kwargs)
        generator.records = not in_training
        return generator

    def _simultaneous_generator(self, models: List[Any], args: Any) -> SimultaneousGenerator:
        refuse_search(models, args)
        configure_head(attention_of(models[0]), self.cfg)
        options = DecodingOptions(
            min_wait=self.cfg.min_wait,
            max_writes=self.cfg.max_consecutive_writes,
            early_eos=not self.cfg.no_early_eos,
            max_len_a=getattr(args, "max_len_a", 0) or DecodingOptions().max_len_a,
            max_len_b=getattr(args, "max_len_b", 200),
            min_len=getattr(args, "min_len", 1),
            unk_penalty=getattr(args, "unkpen", 0),
        )
        return SimultaneousGenerator(
            self.target_dictionary,
            options,
            alignment=getattr(args, "print_alignment", None),
            attention=self.cfg.write_attention,
            length_penalty=getattr(args, "lenpen", 1),
            normalise=not getattr(args, "unnormalized", False),
        )

    def inference_step(
        self, generator: Any, models: List[Any], sample: Dict[str, Any], prefix_tokens: Any = None, constraints: Any = None
    ) -> List[List[Dict[str, Any]]]:
        hypos = super().inference_step(generator, models, sample, prefix_tokens, constraints)
        src_tokens = sample["net_input"]["src_tokens"]
        for row, nbest in enumerate(hypos):
            for hypo in nbest:
                if "delays" not in hypo:
                    full_read(hypo, src_tokens[row], self.source_dictionary.pad())
        if getattr(generator, "records", False) and "id" in sample:
            for row, index in enumerate(sample["id"].tolist()):
                LATENCY.add(self._record(index, row, sample, hypos[row][0]))
        return hypos

    def _record(self, index: int, row: int, sample: Dict[str, Any], hypo: Dict[str, Any]) -> Record:
        target = sample.get("target")
        return Record(
            id=index,
            source=self._words(self.source_dictionary, sample["net_input"]["src_tokens"][row]),
            hypothesis=self._words(self.target_dictionary, hypo["tokens"]),
            delays=hypo["delays"],
            reference=None if target is None else self._words(self.target_dictionary, target[row]),
            attention=hypo.get("soft_attention") if self.cfg.write_attention else None,
        )

    @staticmethod
    def _words(dictionary: Any, tokens: torch.Tensor) -> List[str]:
        """The subwords of a row, without padding and EOS."""
        return [dictionary[t] for t in tokens.tolist() if t not in (dictionary.pad(), dictionary.eos())]


def attention_of(model: Any) -> Any:
    return getattr(getattr(model, "decoder", None), "attention", None)


def check_options(cfg: Any) -> None:
    """Refuse decoding options that cannot work, before anything is loaded."""
    if not 0 < cfg.head_threshold < 1:
        raise UserError(f"--head-threshold must lie between 0 and 1, got {cfg.head_threshold}")
    if cfg.min_wait < 1:
        raise UserError(f"--min-wait must be at least 1, got {cfg.min_wait}")
    if cfg.max_consecutive_writes < 0:
        raise UserError(f"--max-consecutive-writes must be 0 or a positive number, got {cfg.max_consecutive_writes}")
    if cfg.decode_k is not None and cfg.decode_k < 1:
        raise UserError(f"--decode-k must be at least 1, got {cfg.decode_k}")


def configure_head(attention: Any, cfg: SimultaneousTranslationConfig) -> None:
    """Set the decode-time knobs of the mechanism, refusing those that it does not have."""
    if cfg.decode_k is not None:
        if not hasattr(attention, "k"):
            raise UserError("--decode-k is for models trained with --attention waitk")
        attention.k = cfg.decode_k
    if hasattr(attention, "head"):
        attention.head.threshold = cfg.head_threshold
    elif cfg.head_threshold != 0.5:
        raise UserError("--head-threshold is for models with a learned head: monotonic, mocha and milk")


def refuse_search(models: List[Any], args: Any) -> None:
    """What is written cannot be taken back, so a simultaneous model decodes greedily."""
    if len(models) > 1:
        raise UserError("a simultaneous model cannot be decoded in an ensemble: give one checkpoint to --path")
    if getattr(args, "beam", 1) > 1:
        raise UserError(
            f"--beam {args.beam} needs the whole source: a simultaneous model writes greedily, use --beam 1"
        )
    for option in ("sampling", "constraints", "match_source_len", "no_repeat_ngram_size", "prefix_size"):
        if getattr(args, option, None):
            raise UserError(f"--{option.replace('_', '-')} cannot be used with a simultaneous model")


def refuse_independent_copies(world_size: int) -> None:
    """torchrun without --distributed-world-size would train unconnected copies and exit with success."""
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    if launched > 1 and world_size == 1:
        raise UserError(
            f"torchrun started {launched} processes but fairseq was told of one, so that each would train a model of "
            f"its own: add --distributed-world-size {launched} (on CPU as in examples/README.md, 'data parallel')"
        )
