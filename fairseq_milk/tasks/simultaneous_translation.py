"""`--task simultaneous_translation`: fairseq's `translation`, with a simultaneous generator and no sentence dropped.

This class is the interface to fairseq; `checked_data`, `generators` and `recording` implement it.
"""

import logging
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import torch
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from ..console.errors import UserError
from ..console.files import require_text
from ..criterions.latency_augmented import NAME as LATENCY_AUGMENTED
from ..criterions.latency_augmented import LatencyAugmentedCriterion
from ..generation import DecodingKnobs, DecodingOptions, attention_of, full_read
from ..generation.knobs import check_knobs
from ..host.allowed_parts import require_our_model
from ..host.batches import call_at_end
from ..host.command_line import replace_default, replace_invalid_input
from ..host.rank_seed import seed_by_rank
from ..host.training_length import length_of_run, tell_length
from ..models.config import FLOAT32
from ..scoring.scorer import SimultaneousScorerConfig
from .checked_data import CheckedTranslationTask
from .generators import OFFLINE_BEAM, UNSET, choose_generator, in_training, with_alignment
from .recording import Recording

logger = logging.getLogger(__name__)
STDIN = "-"  # fairseq-interactive's --input by default
LENGTH, LONGEST = "length", 2**40  # key in the state of the task, which is saved in checkpoints; and a limit
FAIRSEQ_MULTIPLE = 8  # fairseq's default of --required-batch-size-multiple, with which sentences are dropped


@dataclass
class SimultaneousTranslationConfig(TranslationConfig, DecodingKnobs):
    write_attention: bool = field(
        default=False, metadata={"help": "with --results-path: write the soft attention to the JSON lines too"}
    )
    decode_precision: str = field(
        default=FLOAT32,
        metadata={
            "help": "type of the matrix products in decoding, float32 or bf16: bfloat16 with sums in float32, faster "
            "in batches if the processor has instructions for it, with other tokens in some sentences"
        },
    )
    results_path: Optional[str] = II("common_eval.results_path")
    path: Optional[str] = II("common_eval.path")
    post_process: Optional[str] = II("common_eval.post_process")
    gen_subset: str = II("dataset.gen_subset")
    train_subset: str = II("dataset.train_subset")
    input: str = II("interactive.input")
    max_update: int = II("optimization.max_update")
    max_epoch: int = II("optimization.max_epoch")
    update_freq: List[int] = II("optimization.update_freq")


@register_task("simultaneous_translation", dataclass=SimultaneousTranslationConfig)
class SimultaneousTranslationTask(CheckedTranslationTask):
    cfg: SimultaneousTranslationConfig
    learns_schedule = False  # whether the model that was built last has a learned head

    length = 0  # of the training in updates, as far as it is known
    batches = 0  # of an epoch of the training, on this rank
    length_told = False  # whether model and criterion know it

    recording: Optional[Recording] = None  # of the data set that `fairseq-generate` decodes

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the options of the task, and change the defaults of some options of fairseq.

        `fairseq-generate`: our scorer; a beam that depends on the model (1 if it is simultaneous, else fairseq's 5);
        a length limit that grows with the source instead of fairseq's 200 tokens.  `fairseq-train`: batches need not
        have a multiple of eight sentences.
        """
        super().add_args(parser)
        if replace_default(parser, "scoring", "bleu", "simultaneous"):
            gen_parser_from_dataclass(parser, SimultaneousScorerConfig())
        if replace_default(parser, "beam", OFFLINE_BEAM, UNSET):
            parser.set_defaults(max_len_a=DecodingOptions().max_len_a)
        replace_default(parser, "required_batch_size_multiple", FAIRSEQ_MULTIPLE, 1)

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "SimultaneousTranslationTask":
        check_knobs(cfg)
        task: SimultaneousTranslationTask = super().setup_task(cfg, **kwargs)
        return task

    # ---- training ---------------------------------------------------------------------------------------------------

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        require_our_model(cfg)
        model = super().build_model(cfg, from_checkpoint)
        attention = attention_of(model)
        self.learns_schedule = attention is not None and attention.learned
        return model

    def build_criterion(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_independent_copies()
        name = cfg if isinstance(cfg, str) else getattr(cfg, "_name", None)
        if not name:
            raise UserError("no criterion is named, neither by --criterion nor by the checkpoint that is validated")
        criterion = super().build_criterion(cfg, *args, **kwargs)
        if self.learns_schedule and not isinstance(criterion, LatencyAugmentedCriterion):
            logger.warning(
                f"--criterion {name} has no latency term, so the schedule may learn to read the whole source "
                f"before it writes: use --criterion {LATENCY_AUGMENTED} with --latency-weight"
            )
        return criterion

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, *args: Any, **kwargs: Any
    ) -> Any:
        """End a training that has already reached --max-update; fairseq would make one more update."""
        if 0 < self.cfg.max_update <= update_num:
            logger.info(f"nothing to train: {update_num} updates are done and --max-update is {self.cfg.max_update}")
            raise SystemExit(0)
        if not self.length_told:
            self._tell_length(model, criterion, update_num)
        seed_by_rank()
        return super().train_step(sample, model, criterion, optimizer, update_num, *args, **kwargs)

    def _tell_length(self, model: Any, criterion: Any, update_num: int) -> None:
        """Tell the length of the training, which is that of its beginning if it is resumed."""
        if update_num == 0 or self.length == 0:
            self.length = length_of_run(self, self.batches)
        tell_length(self.length, [model, *([criterion] if isinstance(criterion, LatencyAugmentedCriterion) else [])])
        self.length_told = True

    def state_dict(self) -> Dict[str, Any]:
        """The state with the length of the training: a training that is extended keeps its thresholds."""
        return {**super().state_dict(), LENGTH: self.length}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        if not isinstance(state_dict, dict):
            raise UserError("the checkpoint is damaged: the state of its task is not a dictionary")
        length = state_dict.get(LENGTH, 0)
        if type(length) is not int or not 0 <= length < LONGEST:
            raise UserError("the checkpoint is damaged: the length of its training is not a number of updates")
        self.length = length
        super().load_state_dict({name: value for name, value in state_dict.items() if name != LENGTH})

    # ---- decoding ---------------------------------------------------------------------------------------------------

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's iterator; that of the decoded data set tells the recording when it has ended."""
        made_before = self.dataset_to_epoch_iter.get(dataset)
        iterator = super().get_batch_iterator(dataset, *args, **kwargs)
        if dataset is self.datasets.get(self.option("train_subset", "train")):
            self.batches = len(iterator)
        if dataset is self.datasets.get(self.option("gen_subset", "test")):
            recording = self.recording = Recording(self.cfg, self.source_dictionary, self.target_dictionary)
            if iterator is not made_before:
                call_at_end(iterator, recording.end)
        return iterator

    def build_generator(self, models: List[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        if getattr(args, "score_reference", False):
            return super().build_generator(models, args, *rest, **kwargs)
        if not in_training(args):
            self._require_text()
        generator: Any = choose_generator(models, args, self.cfg, self.target_dictionary)
        if generator is None:
            generator = super().build_generator(models, args, *rest, **with_alignment(kwargs, models, args))
        generator.recording = None if in_training(args) else self.recording
        if generator.recording is not None:
            generator.recording.begin(attention_of(models[0]), args)
        return generator

    def _require_text(self) -> None:
        """Check the input of `fairseq-interactive`, which stops at the first line that is not UTF-8.

        A file is refused at the start; in standard input invalid bytes are replaced, as in `fairseq-milk stream`.
        """
        source = self.option("input", STDIN)
        if source == STDIN:
            replace_invalid_input()
        else:
            require_text(source, "--input")

    def build_tokenizer(self, args: Any) -> Any:
        return self._encoder("tokenizer", super().build_tokenizer(args))

    def build_bpe(self, args: Any) -> Any:
        return self._encoder("bpe", super().build_bpe(args))

    def _encoder(self, kind: str, encoder: Any) -> Any:
        if self.recording is not None:
            self.recording.encoders[kind] = encoder
        return encoder

    def inference_step(
        self, generator: Any, models: List[Any], sample: Dict[str, Any], *args: Any, **kwargs: Any
    ) -> List[List[Dict[str, Any]]]:
        """Decode a batch, add the delays to each hypothesis, and record it in a generation."""
        hypos: List[List[Dict[str, Any]]] = super().inference_step(generator, models, sample, *args, **kwargs)
        if isinstance(generator, SequenceScorer):  # nothing is decoded
            return hypos
        src_tokens = sample["net_input"]["src_tokens"]
        for row, nbest in enumerate(hypos):
            for hypo in nbest:
                if "delays" not in hypo:
                    full_read(hypo, src_tokens[row], self.source_dictionary.pad())
        if generator.recording is not None:
            generator.recording.add(sample, hypos)
        return hypos


def refuse_independent_copies() -> None:
    """UserError if torchrun was used without --distributed-world-size: each process would train its own model."""
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    connected = torch.distributed.is_available() and torch.distributed.is_initialized()
    if launched > 1 and not connected:
        raise UserError(
            f"torchrun started {launched} processes but fairseq was told of one, so that each would train its own "
            f"model: add --distributed-world-size {launched} (on CPU as in examples/README.md, 'data parallel')"
        )
