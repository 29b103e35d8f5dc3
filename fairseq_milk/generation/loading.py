"""A trained model, its dictionaries and its text processing, for Python and for the live commands."""

import glob
import os
from argparse import Namespace
from typing import Any, Optional, Tuple

from fairseq import checkpoint_utils
from fairseq.data import encoders

from ..errors import UserError
from ..scoring.records import BPE, find_marker
from .words import SourceWords, TargetText


def load_model(checkpoint: str, data: str) -> Tuple[Any, Any]:
    """The model of a checkpoint, ready to decode, and the task with its dictionaries from the data directory.

    UserError, in one sentence, for anything that is not a checkpoint of this plugin or does not fit the data.
    """
    if not os.path.isfile(checkpoint):
        raise UserError(f"there is no checkpoint {checkpoint}")
    try:
        models, _, task = checkpoint_utils.load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    except UserError:
        raise
    except Exception as error:  # torch, pickle and zipfile each have their own
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(f"{checkpoint} cannot be loaded with the dictionaries of {data}: {reason[0]}") from error
    model = models[0]
    if not hasattr(getattr(model, "decoder", None), "attention"):
        raise UserError(f"{checkpoint} is a {type(model).__name__}, not a model of fairseq_milk (--arch milk_rnmt)")
    return model.eval(), task


def load_words(
    task: Any, data: str, bpe_codes: Optional[str] = None, tokenizer: Any = None, detokenise: bool = True
) -> Tuple[SourceWords, TargetText]:
    """Both sides' text processing.

    bpe_codes: by default the only file of the data directory with "codes" in its name, if the source has subwords.
    tokenizer: for the source, and to detokenise the target if asked.
    """
    subwords = find_marker([task.source_dictionary.symbols]) == BPE
    codes = bpe_codes or (find_codes(data) if subwords else None)
    bpe = None if codes is None else build_bpe(codes)
    source = SourceWords(task.source_dictionary, bpe, tokenizer)
    return source, TargetText(task.target_dictionary, tokenizer if detokenise else None)


def find_codes(data: str) -> str:
    found = sorted(path for path in glob.glob(os.path.join(glob.escape(data), "*codes*")) if os.path.isfile(path))
    if len(found) != 1:
        many = f"there are {len(found)} files of BPE codes in {data}" if found else f"there are no BPE codes in {data}"
        raise UserError(f"the source dictionary has subwords (@@) and {many}: name the file with --bpe-codes")
    return found[0]


def build_bpe(codes: str) -> Any:
    """fairseq's subword_nmt."""
    if not os.path.isfile(codes):
        raise UserError(f"there is no file of BPE codes {codes}")
    return encoders.build_bpe(Namespace(bpe="subword_nmt", bpe_codes=codes, bpe_separator=BPE))


def build_moses(task: Any, no_dash_splits: bool = False, no_escape: bool = False) -> Any:
    """fairseq's moses, for the languages of the task."""
    languages = {"source_lang": task.cfg.source_lang, "target_lang": task.cfg.target_lang}
    flags = {"moses_no_dash_splits": no_dash_splits, "moses_no_escape": no_escape}
    return encoders.build_tokenizer(Namespace(tokenizer="moses", **languages, **flags))
