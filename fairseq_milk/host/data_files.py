"""Are the files of `fairseq-preprocess` whole?  fairseq maps them to memory and stumbles over what is damaged."""

import os
import re
import struct
from typing import List, Mapping, Tuple

import numpy as np
from numpy.typing import NDArray

from ..console.errors import UserError

MAGIC = b"MMIDIDX\x00\x00"
OTHER_MAGIC = (b"TNTIDX\x00\x00", b"HUFFIDX\x00\x00")  # of other --dataset-impl, which fairseq checks itself
HEADER = struct.Struct("<9sQBQ")  # magic, version, type of a token, sentences
VERSION = 1
TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2", 9: "<u4", 10: "<u8"}
BLOCK = 1 << 24  # tokens that are looked at at once


def check_data_files(folder: str, split: str, combine: bool, dictionaries: Mapping[str, int] = {}) -> None:
    """UserError for the first index or data file of a split that is not as fairseq-preprocess writes it.

    combine: train, train1, train2, ...  dictionaries: the number of words of each language; where it is given, a token
    beyond it is found too.  A damaged token that is another word of the dictionary cannot be told.
    """
    for prefix in prefixes(folder, split, combine):
        with open(f"{prefix}.idx", "rb") as index:
            content = index.read()
        if content.startswith(OTHER_MAGIC):
            continue
        kind, lengths, places = read_index(f"{prefix}.idx", content)
        tokens = int(lengths.sum(dtype=np.int64))
        if os.path.getsize(f"{prefix}.bin") < tokens * kind.itemsize:
            raise cut(f"{prefix}.bin")
        if os.path.getsize(f"{prefix}.bin") > tokens * kind.itemsize:
            raise damaged(f"{prefix}.bin", f"it has more than {tokens} tokens")
        if lengths.min(initial=0) < 0 or not np.array_equal(places, (lengths.cumsum() - lengths) * kind.itemsize):
            raise damaged(f"{prefix}.idx", "its sentences do not follow one another")
        language = prefix.rpartition(".")[2]
        if language in dictionaries and tokens:
            check_tokens(f"{prefix}.bin", kind, dictionaries[language])


def read_index(path: str, content: bytes) -> Tuple["np.dtype[np.int64]", NDArray[np.int64], NDArray[np.int64]]:
    """The type of the tokens, and the length and the place of each sentence."""
    if not content.startswith(MAGIC):
        raise damaged(path, "it does not begin like an index")
    if len(content) < HEADER.size:
        raise cut(path)
    _, version, kind, sentences = HEADER.unpack_from(content)
    if version != VERSION or kind not in TYPES:
        raise damaged(path, f"version {version}, tokens of type {kind}")
    if len(content) < HEADER.size + 12 * sentences:
        raise cut(path)
    if len(content) > HEADER.size + 12 * sentences:
        raise damaged(path, f"it has more than {sentences} sentences")
    lengths = np.frombuffer(content, "<i4", sentences, HEADER.size).astype(np.int64)
    return np.dtype(TYPES[kind]), lengths, np.frombuffer(content, "<i8", sentences, HEADER.size + 4 * sentences)


def check_tokens(path: str, kind: "np.dtype[np.int64]", words: int) -> None:
    tokens = np.memmap(path, kind, "r")
    for start in range(0, len(tokens), BLOCK):
        block = tokens[start : start + BLOCK]
        if block.min() < 0 or block.max() >= words:
            raise damaged(path, f"it has words beyond the {words} of the dictionary")


def prefixes(folder: str, split: str, combine: bool) -> List[str]:
    """Of both sides: .../test.de-en.de, .../test.de-en.en."""
    name = re.compile(re.escape(split) + (r"\d*" if combine else "") + r"\.[^.]+\.[^.]+\.idx")
    return sorted(os.path.join(folder, file[: -len(".idx")]) for file in os.listdir(folder) if name.fullmatch(file))


def cut(path: str) -> UserError:
    return UserError(f"{path} is only a part of what fairseq-preprocess has written: run it again")


def damaged(path: str, how: str) -> UserError:
    return UserError(f"{path} is not as fairseq-preprocess writes it ({how}): run it again, with these dictionaries")
