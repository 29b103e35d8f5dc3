"""A trained model, its dictionaries and its text processing, for Python and for the live commands."""

import contextlib
import glob
import io
import os
from argparse import Namespace
from typing import Any, Optional, Tuple

from fairseq import checkpoint_utils
from fairseq.data import encoders

from ..attention import SimultaneousAttention
from ..console.errors import UserError, first_line
from ..console.files import require_text
from ..host.registration import register
from ..scoring.records import BPE, SENTENCEPIECE, find_marker
from .words import BoundedCache, SourceWords, TargetText


def load_model(checkpoint: str, data: str) -> Tuple[Any, Any]:
    """The model of a checkpoint, ready to decode, and the task with its dictionaries from the data directory.

    UserError, in one sentence, for anything that is not a checkpoint of this plugin or does not fit the data.
    """
    return load_with_configuration(checkpoint, data)[:2]


def load_with_configuration(checkpoint: str, data: str) -> Tuple[Any, Any, Any]:
    """The same, and the configuration that the model was trained with."""
    if not os.path.isfile(checkpoint):
        raise UserError(f"there is no checkpoint {checkpoint}")
    register()
    models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([checkpoint], {"data": data})
    model = models[0]
    if not isinstance(attention_of(model), SimultaneousAttention):
        raise UserError(f"{checkpoint} is a {type(model).__name__}, not a model of fairseq_milk (--arch milk_rnmt)")
    return model.eval(), task, cfg


def attention_of(model: Any) -> Any:
    return getattr(getattr(model, "decoder", None), "attention", None)


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
    require_text(codes, "the file of BPE codes")
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            bpe = encoders.build_bpe(Namespace(bpe="subword_nmt", bpe_codes=codes, bpe_separator=BPE))
    except (SystemExit, ValueError) as error:  # subword_nmt prints its reason and leaves
        reason = said.getvalue().split("\n")[0] or first_line(error)
        raise UserError(f"the file of BPE codes {codes} cannot be used: {reason}") from error
    bpe.bpe.cache = BoundedCache()
    return bpe


def build_moses(task: Any, no_dash_splits: bool = False, no_escape: bool = False) -> Any:
    """fairseq's moses, for the languages of the task."""
    languages = {"source_lang": task.cfg.source_lang, "target_lang": task.cfg.target_lang}
    flags = {"moses_no_dash_splits": no_dash_splits, "moses_no_escape": no_escape}
    return encoders.build_tokenizer(Namespace(tokenizer="moses", **languages, **flags))
