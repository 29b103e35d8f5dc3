"""A trained model, its dictionaries and its text processing, for Python and for the live commands."""

import glob
import os
from argparse import Namespace
from typing import Any, Optional, Tuple

from fairseq import checkpoint_utils
from fairseq.data import encoders
from fairseq.models import ARCH_MODEL_REGISTRY
from omegaconf import OmegaConf

from ..attention import SimultaneousAttention
from ..checkpoints import first_line
from ..errors import UserError
from ..scoring.records import BPE, SENTENCEPIECE, find_marker
from .words import Forgetful, SourceWords, TargetText

TASKS = ("simultaneous_translation", "translation")


def load_model(checkpoint: str, data: str) -> Tuple[Any, Any]:
    """The model of a checkpoint, ready to decode, and the task with its dictionaries from the data directory.

    UserError, in one sentence, for anything that is not a checkpoint of this plugin or does not fit the data.
    """
    if not os.path.isfile(checkpoint):
        raise UserError(f"there is no checkpoint {checkpoint}")
    overrides = {"data": data}
    try:
        state = checkpoint_utils.load_checkpoint_to_cpu(checkpoint, overrides)
        refuse_fairseq_models(state["cfg"]["model"])
        refuse_other_tasks(state["cfg"]["task"])
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([checkpoint], overrides, state=state)
    except UserError:
        raise
    except Exception as error:  # fairseq's own, of many kinds
        raise UserError(
            f"{checkpoint} cannot be loaded with the dictionaries of {data}: {first_line(error)}"
        ) from error
    model = models[0]
    if not isinstance(attention_of(model), SimultaneousAttention):
        raise UserError(f"{checkpoint} is a {type(model).__name__}, not a model of fairseq_milk (--arch milk_rnmt)")
    return model.eval(), task


def attention_of(model: Any) -> Any:
    return getattr(getattr(model, "decoder", None), "attention", None)


def refuse_fairseq_models(cfg: Any) -> None:
    """Before one is built: some evaluate their options as Python, which a checkpoint may have brought along."""
    architecture = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
    if architecture is None and OmegaConf.is_config(cfg) and len(cfg) == 1:
        architecture = next(iter(cfg))  # of a folder of fairseq-hydra-train
    kind = ARCH_MODEL_REGISTRY.get(architecture)
    if kind is None or kind.__module__.split(".")[0] == "fairseq":
        raise UserError(
            f"'{architecture}' is not a model of fairseq_milk (--arch milk_rnmt and its sizes): "
            "use --task translation for fairseq's own"
        )


def refuse_other_tasks(cfg: Any) -> None:
    """The task of a checkpoint is built before its model, and fairseq has many."""
    name = getattr(cfg, "_name", None) or getattr(cfg, "task", None)
    if name not in TASKS:
        raise UserError(f"the task of the checkpoint is '{name}', not {' or '.join(TASKS)}")


def load_words(
    task: Any, data: str, bpe_codes: Optional[str] = None, tokenizer: Any = None
) -> Tuple[SourceWords, TargetText]:
    """Both sides' text processing.

    bpe_codes: by default the only file of the data directory with "codes" in its name, if the source has subwords.
    tokenizer: for the source, and to detokenise the target.
    """
    marker = find_marker([task.source_dictionary.symbols])
    if marker == SENTENCEPIECE:
        raise UserError(
            f"the source dictionary has pieces of sentencepiece ({marker}), which a stream cannot make of words: it "
            f"takes models of whole words or of subword-nmt's subwords ({BPE})"
        )
    codes = bpe_codes or (find_codes(data) if marker == BPE else None)
    bpe = None if codes is None else build_bpe(codes)
    source = SourceWords(task.source_dictionary, bpe, tokenizer)
    return source, TargetText(task.target_dictionary, tokenizer)


def find_codes(data: str) -> str:
    found = sorted(path for path in glob.glob(os.path.join(glob.escape(data), "*codes*")) if os.path.isfile(path))
    if len(found) != 1:
        many = f"there are {len(found)} files of BPE codes in {data}" if found else f"there are no BPE codes in {data}"
        raise UserError(f"the source dictionary has subwords (@@) and {many}: name the file with --bpe-codes")
    return found[0]


def build_bpe(codes: str) -> Any:
    """fairseq's subword_nmt, which would remember every word that it has seen."""
    if not os.path.isfile(codes):
        raise UserError(f"there is no file of BPE codes {codes}")
    bpe = encoders.build_bpe(Namespace(bpe="subword_nmt", bpe_codes=codes, bpe_separator=BPE))
    bpe.bpe.cache = Forgetful()
    return bpe


def build_moses(task: Any, no_dash_splits: bool = False, no_escape: bool = False) -> Any:
    """fairseq's moses, for the languages of the task."""
    languages = {"source_lang": task.cfg.source_lang, "target_lang": task.cfg.target_lang}
    flags = {"moses_no_dash_splits": no_dash_splits, "moses_no_escape": no_escape}
    return encoders.build_tokenizer(Namespace(tokenizer="moses", **languages, **flags))
