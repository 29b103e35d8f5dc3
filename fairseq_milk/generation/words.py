"""Words in, words out: online BPE and tokenisation on the way in, whole words, detokenised, on the way out.

`tokenizer` and `bpe` are fairseq's (`fairseq.data.encoders`), or anything else with encode and decode on strings.
"""

from typing import Any, Dict, List, Optional, Sequence

from ..scoring.records import BPE, SENTENCEPIECE, find_marker, join_words
from .decoding import DecodingOptions
from .session import StreamingSession, Written

GLUE = "@-@"  # Moses' hyphen within a word: joined to the words on both sides


class BoundedCache(Dict[str, Any]):
    """A cache that begins anew when it is full: a stream has no end, and new words never cease."""

    room = 10_000

    def __setitem__(self, word: str, value: Any) -> None:
        if len(self) >= self.room:
            self.clear()
        super().__setitem__(word, value)


class SourceWords:
    """The tokens of a word of raw text, each word by itself, since what comes next has not been said yet.

    BPE never looks beyond a word.  Moses does: it leaves a full stop on an unknown abbreviation that is followed by a
    lower-case word, and splits it off here.
    """

    def __init__(self, dictionary: Any, bpe: Any = None, tokenizer: Any = None) -> None:
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

    def __init__(self, dictionary: Any, tokenizer: Any = None, marker: Optional[str] = None) -> None:
        self.dictionary, self.tokenizer = dictionary, tokenizer
        self.marker = marker or find_marker([dictionary.symbols])
        self.begin()

    def begin(self) -> None:
        """A new sentence."""
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
        text = self.tokenizer.decode(" ".join(self.words))
        before, self.text = self.text, text
        return text[len(before) :] if text.startswith(before) else " " + self.words[-1]


class WordSession:
    """One sentence: words in as they arrive, text out as soon as it is decided.

    >>> session = WordSession(model, SourceWords(source_dictionary), TargetText(target_dictionary))  # doctest: +SKIP
    >>> for word in sentence.split(): print(session.push(word), end="")                             # doctest: +SKIP
    >>> print(session.end())                                                                      # doctest: +SKIP
    """

    def __init__(
        self, model: Any, source: SourceWords, target: TargetText, options: Optional[DecodingOptions] = None
    ) -> None:
        self.session = StreamingSession(model, options)
        self.source, self.target, self.eos = source, target, source.dictionary.eos()
        self.target.begin()
        self.written: List[Written] = []  # tokens, EOS included

    @property
    def done(self) -> bool:
        """The translation has ended, perhaps before the source."""
        return self.session.done

    def push(self, word: str) -> str:
        """One more word has arrived; the text that it completes, to be appended to what came before."""
        return self._push(self.source.tokens(word))

    def end(self) -> str:
        """The source has ended; the rest of the text."""
        return self._push([self.eos])

    def _push(self, tokens: Sequence[int]) -> str:
        text = ""
        for token in tokens:
            for written in self.session.push(token):
                self.written.append(written)
                text += self.target.finish() if written.token == self.eos else self.target.add(written.token)
        return text
