"""Are the files of `fairseq-preprocess` whole?  fairseq maps them to memory and stumbles over what is not there."""

import os
import re
import struct
from typing import List

from ..console.errors import UserError

MAGIC = b"MMIDIDX\x00\x00"
HEADER = struct.Struct("<9sQBQ")  # magic, version, type of a token, sentences
ITEM_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8}  # bytes of each type of whole numbers


def check_data_files(folder: str, split: str, combine: bool) -> None:
    """UserError for the first index or data file of a split that has been cut.  combine: train, train1, train2, ..."""
    for prefix in prefixes(folder, split, combine):
        with open(f"{prefix}.idx", "rb") as index:
            header = index.read(HEADER.size)
            if not header.startswith(MAGIC):
                continue  # of another --dataset-impl, or none: fairseq says so
            if len(header) < HEADER.size:
                raise cut(f"{prefix}.idx")
            _, _, kind, sentences = HEADER.unpack(header)
            if index.seek(0, os.SEEK_END) < HEADER.size + 12 * sentences:
                raise cut(f"{prefix}.idx")
            if sentences == 0 or kind not in ITEM_SIZES:
                continue
            index.seek(HEADER.size + 4 * (sentences - 1))  # lengths of 4 bytes, then places of 8
            (length,) = struct.unpack("<i", index.read(4))
            index.seek(HEADER.size + 12 * sentences - 8)
            (place,) = struct.unpack("<q", index.read(8))
        if os.path.getsize(f"{prefix}.bin") < place + length * ITEM_SIZES[kind]:
            raise cut(f"{prefix}.bin")


def prefixes(folder: str, split: str, combine: bool) -> List[str]:
    """Of both sides: .../test.de-en.de, .../test.de-en.en."""
    name = re.compile(re.escape(split) + (r"\d*" if combine else "") + r"\.[^.]+\.[^.]+\.idx")
    return sorted(os.path.join(folder, file[: -len(".idx")]) for file in os.listdir(folder) if name.fullmatch(file))


def cut(path: str) -> UserError:
    return UserError(f"{path} is only a part of what fairseq-preprocess has written: run it again")
