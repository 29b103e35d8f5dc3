"""Checks that the files of `fairseq-preprocess` are complete; fairseq maps them to memory without checks."""

import os
import re
import struct
from typing import List, Mapping, Tuple

import numpy as np
from numpy.typing import NDArray

from ..console.errors import UserError
from ..console.files import refuse_endless

MAGIC = b"MMIDIDX\x00\x00"
OTHER_MAGIC = (b"TNTIDX\x00\x00", b"HUFFIDX\x00\x00")  # formats of other --dataset-impl, which fairseq checks itself
HEADER = struct.Struct("<9sQBQ")  # magic, version, token type, number of sentences
VERSION = 1
TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2", 9: "<u4", 10: "<u8"}
BLOCK = 1 << 24  # tokens checked at a time


def check_data_files(folder: str, split: str, combine: bool, dictionaries: Mapping[str, int] = {}) -> None:
    """Raise a UserError for the first index or data file of a split that is damaged or incomplete.

    combine: also check train1, train2, ...  dictionaries: the number of words of each language, to find tokens beyond
    it.  A damaged token that is a word of the dictionary cannot be detected.
    """
    for prefix in prefixes(folder, split, combine):
        for ending in ("idx", "bin"):
            refuse_endless(f"{prefix}.{ending}")
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
            raise damaged(f"{prefix}.idx", "its sentences are not contiguous")
        language = prefix.rpartition(".")[2]
        if language in dictionaries and tokens:
            check_tokens(f"{prefix}.bin", kind, dictionaries[language])


def read_index(path: str, content: bytes) -> Tuple["np.dtype[np.int64]", NDArray[np.int64], NDArray[np.int64]]:
    """The token type, and the length and position of each sentence."""
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
    """The paths of both sides without suffix: .../test.de-en.de, .../test.de-en.en."""
    name = re.compile(re.escape(split) + (r"\d*" if combine else "") + r"\.[^.]+\.[^.]+\.idx")
    return sorted(os.path.join(folder, file[: -len(".idx")]) for file in os.listdir(folder) if name.fullmatch(file))


def cut(path: str) -> UserError:
    return UserError(f"{path} is only a part of what fairseq-preprocess has written: run it again")


def damaged(path: str, how: str) -> UserError:
    return UserError(f"{path} is not as fairseq-preprocess writes it ({how}): run it again, with these dictionaries")
