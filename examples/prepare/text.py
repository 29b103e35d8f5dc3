"""What is done to the text: Moses tokenisation, cleaning, joint BPE.  Each a function of lines."""

import io
import re
import sys
from collections import Counter
from contextlib import nullcontext, redirect_stderr
from functools import cache
from pathlib import Path
from typing import Any, List, Sequence, TextIO, Tuple
from typing import Counter as Counts

from sacremoses import MosesTokenizer
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

CACHE = 1_000_000  # words whose segmentation a worker remembers


# ---- tokens ---------------------------------------------------------------------------------------------------------


@cache
def moses(language: str) -> Any:
    return MosesTokenizer(language)


def tokenise(lines: List[str], language: str, respell: Sequence[Tuple[str, str]] = ()) -> List[str]:
    """As tokenizer.perl -no-escape, and fairseq's --tokenizer moses --moses-no-dash-splits --moses-no-escape.

    respell: regular expressions and what replaces them, applied to each line before it is cut up.
    """
    for pattern, replacement in respell:
        lines = [re.sub(pattern, replacement, line) for line in lines]
    return [moses(language).tokenize(line, return_str=True, escape=False) for line in lines]


# ---- pairs ----------------------------------------------------------------------------------------------------------


def is_clean(source: str, target: str, longest: int, ratio: float) -> bool:
    """As clean-corpus-n.perl: lengths within bounds and not too different.  And all of it must have been UTF-8."""
    short, long = sorted((len(source.split()), len(target.split())))
    return 1 <= short and long <= longest and long <= ratio * short and "\ufffd" not in source + target


# ---- subwords -------------------------------------------------------------------------------------------------------


def count_words(lines: List[str]) -> Counts[str]:
    return Counter(word for line in lines for word in line.split(" ") if word)


def learn(words: Counts[str], merges: int, learn_from: int, codes: TextIO) -> None:
    """BPE operations from the words' counts.  On a terminal subword-nmt shows how far it is."""
    entries = (f"{word} {count}" for word, count in sorted(words.items()) if count >= learn_from)
    with nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO()):
        learn_bpe(entries, codes, merges, is_dict=True)


@cache
def load_bpe(codes: Path) -> BPE:
    with open(codes, encoding="utf-8") as file:
        return BPE(file)


def segment(lines: List[str], codes: Path) -> List[str]:
    bpe = load_bpe(codes)
    if len(bpe.cache) > CACHE:
        bpe.cache.clear()
    return [bpe.process_line(line) for line in lines]
