"""From source words to tokens, and from target tokens to words, one at a time.

A dictionary is fairseq's, or another object with `symbols`, `index`, `eos`, `unk` and `nspecial`, such as `Vocabulary`.
"""

import copy
from typing import Any, List, Optional

from .encoders import Encoder, Tokenizer
from .subwords import BPE, SENTENCEPIECE, find_marker, join_words

GLUE = "@-@"  # Moses' token for a hyphen within a word, which is joined to both sides


class SourceWords:
    """Converts a word of raw text to tokens without knowing the next word.

    BPE does not depend on the next word.  Moses does: in a whole sentence it leaves the full stop on an unknown
    abbreviation that is followed by a lower-case word; here it is split off.
    """

    def __init__(self, dictionary: Any, bpe: Optional[Encoder] = None, tokenizer: Optional[Tokenizer] = None) -> None:
        self.dictionary, self.bpe, self.tokenizer = dictionary, bpe, tokenizer

    def tokens(self, word: str) -> List[int]:
        """The tokens of a word.  Words that look like <s>, </s> or <pad> become UNK."""
        for encoder in (self.tokenizer, self.bpe):
            if encoder is not None:
                word = encoder.encode(word)
        indices = [self.dictionary.index(subword) for subword in word.split()]
        return [index if index >= self.dictionary.nspecial else self.dictionary.unk() for index in indices]


class TargetText:
    """Builds the text of one sentence token by token.  Subwords are kept back until their word is complete."""

    def __init__(self, dictionary: Any, tokenizer: Optional[Tokenizer] = None, marker: Optional[str] = None) -> None:
        self.dictionary, self.tokenizer = dictionary, tokenizer
        self.marker = marker or find_marker([dictionary.symbols])
        self._clear()

    def begin(self) -> "TargetText":
        """An empty text for another sentence in the same language, independent of this one."""
        fresh = copy.copy(self)
        fresh._clear()
        return fresh

    def _clear(self) -> None:
        self.subwords: List[str] = []  # of the incomplete word
        self.words: List[str] = []  # of the sentence, for the detokeniser
        self.text = ""
        self.begun = False

    def add(self, token: int) -> str:
        """The text that this token completes, with the space before it; empty if its word is not complete."""
        subword = self.dictionary[token]
        if self.marker == SENTENCEPIECE:  # a piece marks the beginning of a word, not its end
            text = self.finish() if subword.startswith(SENTENCEPIECE) else ""
            self.subwords.append(subword)
            return text
        self.subwords.append(subword)
        return "" if self.marker == BPE and subword.endswith(BPE) else self._release()

    def finish(self) -> str:
        """The text that was kept back, at the end of the sentence."""
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
        """The text added since the last call.  If the detokeniser changes earlier text, the last word."""
        assert self.tokenizer is not None
        text = self.tokenizer.decode(" ".join(self.words))
        before, self.text = self.text, text
        return text[len(before) :] if text.startswith(before) else " " + self.words[-1]
