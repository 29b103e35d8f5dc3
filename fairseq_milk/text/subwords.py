"""Joining subwords to words by the markers of subword-nmt and sentencepiece."""

from itertools import accumulate
from typing import Iterable, List, Optional, Sequence

BPE = "@@"  # subword-nmt: at the end of every subword of a word except the last
SENTENCEPIECE = "▁"  # sentencepiece: at the start of the first piece of a word


def find_marker(sentences: Iterable[Sequence[str]]) -> Optional[str]:
    """The subword marker of these tokens, None if they are words.

    At most one marked token per thousand does not count as a marker.
    """
    bpe = pieces = total = 0
    for tokens in sentences:
        bpe += sum(token.endswith(BPE) for token in tokens)
        pieces += sum(token.startswith(SENTENCEPIECE) for token in tokens)
        total += len(tokens)
    if max(bpe, pieces) <= total / 1000:
        return None
    return BPE if bpe > pieces else SENTENCEPIECE


def word_starts(tokens: Sequence[str], marker: Optional[str]) -> List[bool]:
    """Whether each subword begins a word, so that sum(word_starts(...)) is the number of words.

    A sentencepiece marker by itself begins a word only if the next piece continues it.
    """
    if marker is None:
        return [True] * len(tokens)
    if marker == BPE:
        return [i == 0 or not tokens[i - 1].endswith(BPE) for i in range(len(tokens))]
    starts = []
    for i, token in enumerate(tokens):
        if token == SENTENCEPIECE:
            starts.append(i + 1 < len(tokens) and not tokens[i + 1].startswith(SENTENCEPIECE))
        else:
            starts.append(token.startswith(SENTENCEPIECE) or i == 0)
    return starts


def words_begun(tokens: Sequence[str], marker: Optional[str]) -> List[int]:
    """The number of words to which the first d subwords belong, for d = 0 .. len(tokens)."""
    return [0, *accumulate(map(int, word_starts(tokens, marker)))]


def word_ends(tokens: Sequence[str], marker: Optional[str]) -> List[int]:
    """The position of the last subword of each word."""
    starts = [i for i, begins in enumerate(word_starts(tokens, marker)) if begins]
    return [i - 1 for i in starts[1:]] + ([len(tokens) - 1] if starts else [])


def join_words(tokens: Sequence[str], marker: Optional[str]) -> str:
    """The text of the words, as with fairseq's --remove-bpe."""
    if marker == BPE:
        return (" ".join(tokens) + " ").replace(BPE + " ", "").rstrip()
    if marker == SENTENCEPIECE:
        return " ".join("".join(tokens).replace(SENTENCEPIECE, " ").split())
    return " ".join(tokens)
