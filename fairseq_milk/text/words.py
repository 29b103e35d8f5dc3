"""Words in, words out: online BPE and tokenisation on the way in, whole words, detokenised, on the way out.

A dictionary is fairseq's, or anything else with `symbols`, `index`, `eos`, `unk` and `nspecial`, such as `Vocabulary`.
"""

import copy
from typing import Any, List, Optional

from .encoders import Encoder, Tokenizer
from .subwords import BPE, SENTENCEPIECE, find_marker, join_words

GLUE = "@-@"  # Moses' hyphen within a word: joined to the words on both sides


class SourceWords:
    """The tokens of a word of raw text, each word by itself, since what comes next has not been said yet.

    BPE never looks beyond a word.  Moses does: it leaves a full stop on an unknown abbreviation that is followed by a
    lower-case word, and splits it off here.
    """

    def __init__(self, dictionary: Any, bpe: Optional[Encoder] = None, tokenizer: Optional[Tokenizer] = None) -> None:
        self.dictionary, self.bpe, self.tokenizer = dictionary, bpe, tokenizer

    def tokens(self, word: str) -> List[int]:
        """Words that look like <s>, </s> or <pad> are unknown, not commands."""
        for encoder in (self.tokenizer, self.bpe):
            if encoder is not None:
                word = encoder.encode(word)
        indices = [self.dictionary.index(subword) for subword in word.split()]
        return [index if index >= self.dictionary.nspecial else self.dictionary.unk() for index in indices]


class TargetText:
    """The text of one sentence as it grows, token by token.  A subword waits until its word is complete."""

    def __init__(self, dictionary: Any, tokenizer: Optional[Tokenizer] = None, marker: Optional[str] = None) -> None:
        self.dictionary, self.tokenizer = dictionary, tokenizer
        self.marker = marker or find_marker([dictionary.symbols])
        self._clear()

    def begin(self) -> "TargetText":
        """The empty text of another sentence in the same language; sentences translated at once share nothing."""
        fresh = copy.copy(self)
        fresh._clear()
        return fresh

    def _clear(self) -> None:
        self.subwords: List[str] = []  # of the word under construction
        self.words: List[str] = []  # of the sentence, where a detokeniser has to see them again
        self.text = ""
        self.begun = False

    def add(self, token: int) -> str:
        """What this token adds to the text, with the space in front of it; often nothing."""
        subword = self.dictionary[token]
        if self.marker == SENTENCEPIECE:  # a piece says where a word begins, not where it ends
            text = self.finish() if subword.startswith(SENTENCEPIECE) else ""
            self.subwords.append(subword)
            return text
        self.subwords.append(subword)
        return "" if self.marker == BPE and subword.endswith(BPE) else self._release()

    def finish(self) -> str:
        """What was kept back."""
        text = self._release() if self.subwords else ""
        if self.words[-1:] == [GLUE]:
            text += self._detokenise()
        return text

    def _release(self) -> str:
        words = join_words(self.subwords, self.marker).split()
        self.subwords = []
        if self.tokenizer is None:
            before, self.begun = self.begun, self.begun or bool(words)
            return (" " if before and words else "") + " ".join(words)
        self.words += words
        return "" if self.words[-1:] == [GLUE] else self._detokenise()

    def _detokenise(self) -> str:
        """The difference to the text before.  Should the detokeniser change what is out already, it stays as it is."""
        assert self.tokenizer is not None
        text = self.tokenizer.decode(" ".join(self.words))
        before, self.text = self.text, text
        return text[len(before) :] if text.startswith(before) else " " + self.words[-1]
