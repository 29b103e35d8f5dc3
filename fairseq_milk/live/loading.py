"""`load`: a translator from a checkpoint with its data, or from an exported folder."""

import os
from typing import NamedTuple, Optional, Union

from ..console.errors import UserError
from .translator import Translator


class TextOptions(NamedTuple):
    """The text processing of a checkpoint.  An exported folder contains it."""

    bpe_codes: Optional[str] = None  # None: the *codes* file in the data directory, if there are @@ subwords
    sentencepiece_model: Optional[str] = None  # None: the *.model file in the data directory, if there are ▁ pieces
    tokenizer: Optional[str] = None  # "moses" or None
    moses_no_dash_splits: bool = False
    moses_no_escape: bool = False


def load(
    path: Union[str, "os.PathLike[str]"],
    data: Union[str, "os.PathLike[str]", None] = None,
    text: Optional[TextOptions] = None,
    device: str = "cpu",
) -> Translator:
    """A translator from a folder of `fairseq-milk export`, or from a checkpoint and the directory of its data.

    data, text and device are for a checkpoint, which needs torch and fairseq.  UserError if it cannot be loaded.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return load_folder(path, device)
    if not os.path.exists(path):
        raise UserError(f"there is no {'exported model or ' if data is None else ''}checkpoint {path}")
    if data is None:
        raise UserError(f"{path} is a checkpoint: give the directory of its data too (--data)")
    from .checkpoint import load_checkpoint  # torch and fairseq

    return load_checkpoint(path, os.fspath(data), text or TextOptions(), device)


def load_folder(path: str, device: str) -> Translator:
    """Load an exported model, which runs on the CPU."""
    if device != "cpu":
        raise UserError(f"an exported model runs on the CPU, not on {device}: --device is for a checkpoint")
    try:
        from .exported import load_exported
    except ImportError as error:
        raise UserError(f"an exported model needs numpy and onnxruntime: {error}") from error
    return load_exported(path)
