"""The processing of lines of text: Moses tokenisation, cleaning, joint BPE."""

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

CACHE = 1_000_000  # words whose segmentation a worker caches


# ---- tokens ---------------------------------------------------------------------------------------------------------


@cache
def moses(language: str) -> Any:
    return MosesTokenizer(language)


def tokenise(lines: List[str], language: str, respell: Sequence[Tuple[str, str]] = ()) -> List[str]:
    """Tokenise like tokenizer.perl -no-escape and fairseq's --tokenizer moses --moses-no-dash-splits --moses-no-escape.

    respell: regular expressions and their replacements, applied to each line before tokenisation.
    """
    for pattern, replacement in respell:
        lines = [re.sub(pattern, replacement, line) for line in lines]
    return [moses(language).tokenize(line, return_str=True, escape=False) for line in lines]


# ---- pairs ----------------------------------------------------------------------------------------------------------


def is_clean(source: str, target: str, longest: int, ratio: float) -> bool:
    """Whether a pair passes clean-corpus-n.perl's limits on length and ratio, and was valid UTF-8."""
    short, long = sorted((len(source.split()), len(target.split())))
    return 1 <= short and long <= longest and long <= ratio * short and "\ufffd" not in source + target


# ---- subwords -------------------------------------------------------------------------------------------------------


def count_words(lines: List[str]) -> Counts[str]:
    return Counter(word for line in lines for word in line.split(" ") if word)


def learn(words: Counts[str], merges: int, learn_from: int, codes: TextIO) -> None:
    """Learn BPE operations from word counts.  On a terminal subword-nmt shows its progress."""
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
