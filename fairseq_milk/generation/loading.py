"""Loads a trained model, its dictionaries and its text processing."""

import glob
import os
from pathlib import Path
from typing import Any, Optional, Tuple

from fairseq import checkpoint_utils

from ..attention import SimultaneousAttention
from ..console.errors import UserError
from ..console.files import require_text
from ..host.registration import register
from ..models.base import SimultaneousModel
from ..text.encoders import Encoder, SentencePiece, SubwordNmt, Tokenizer
from ..text.subwords import BPE, SENTENCEPIECE, find_marker
from ..text.words import SourceWords, TargetText


def load_model(checkpoint: str, data: str) -> Tuple[Any, Any]:
    """The model of a checkpoint, ready to decode, and the task with the dictionaries of the data directory.

    UserError if it is not a checkpoint of this plugin or does not fit the data.
    """
    return load_with_configuration(checkpoint, data)[:2]


def load_with_configuration(checkpoint: str, data: str) -> Tuple[Any, Any, Any]:
    """`load_model`, and the configuration with which the model was trained."""
    if not os.path.isfile(checkpoint):
        raise UserError(f"there is no checkpoint {checkpoint}")
    register()
    models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([checkpoint], {"data": data})
    model = models[0]
    if attention_of(model) is None:
        raise UserError(f"{checkpoint} is a {type(model).__name__}, not a model of fairseq_milk (--arch milk_rnmt)")
    return model.eval(), task, cfg


def attention_of(model: Any) -> Optional[SimultaneousAttention]:
    """The attention of a model; None if it is not a model of this plugin."""
    return model.decoder.attentions[0] if isinstance(model, SimultaneousModel) else None


def load_words(
    task: Any,
    data: str,
    bpe_codes: Optional[str] = None,
    tokenizer: Optional[Tokenizer] = None,
    sentencepiece_model: Optional[str] = None,
) -> Tuple[SourceWords, TargetText]:
    """The text processing of both sides.

    bpe_codes, sentencepiece_model: by default the file in the data directory, if the source has such subwords.
    tokenizer: for the source, and to detokenise the target.
    """
    codes, pieces = subword_files(task, data, bpe_codes, sentencepiece_model)
    subwords: Optional[Encoder] = None
    if codes is not None:
        subwords = build_bpe(codes)
    elif pieces is not None:
        subwords = SentencePiece(read_model(pieces), pieces)
    return SourceWords(task.source_dictionary, subwords, tokenizer), TargetText(task.target_dictionary, tokenizer)


def subword_files(
    task: Any, data: str, bpe_codes: Optional[str], sentencepiece_model: Optional[str]
) -> Tuple[Optional[str], Optional[str]]:
    """The file of BPE codes and the sentencepiece model of the source, at most one of them."""
    marker = find_marker([task.source_dictionary.symbols])
    if bpe_codes is not None and sentencepiece_model is not None:
        raise UserError("--bpe-codes and --sentencepiece-model exclude each other")
    if bpe_codes is not None or sentencepiece_model is not None:
        return bpe_codes, sentencepiece_model
    if marker == SENTENCEPIECE:
        return None, find_pieces(data)
    return (find_codes(data) if marker == BPE else None), None


def find_pieces(data: str) -> str:
    found = sorted(path for path in glob.glob(os.path.join(glob.escape(data), "*.model")) if os.path.isfile(path))
    if len(found) != 1:
        many = f"there are {len(found)} files *.model in {data}" if found else f"there is no file *.model in {data}"
        raise UserError(
            f"the source dictionary has pieces of sentencepiece ({SENTENCEPIECE}) and {many}: name the file with "
            "--sentencepiece-model"
        )
    return found[0]


def read_model(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"the sentencepiece model {path} cannot be read: {error.strerror}") from error


def find_codes(data: str) -> str:
    found = sorted(path for path in glob.glob(os.path.join(glob.escape(data), "*codes*")) if os.path.isfile(path))
    if len(found) != 1:
        many = f"there are {len(found)} files of BPE codes in {data}" if found else f"there are no BPE codes in {data}"
        raise UserError(f"the source dictionary has subwords (@@) and {many}: name the file with --bpe-codes")
    return found[0]


def build_bpe(codes: str) -> SubwordNmt:
    if not os.path.isfile(codes):
        raise UserError(f"there is no file of BPE codes {codes}")
    require_text(codes, "the file of BPE codes")
    return SubwordNmt(Path(codes).read_text(encoding="utf-8"), codes)
