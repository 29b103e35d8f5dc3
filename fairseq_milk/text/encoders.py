"""Tokenisers and subword models, which turn a word of text into tokens separated by spaces.

Each is built from the content of its file, so that a file is read once.
"""

import contextlib
import io
import threading
from typing import Any, Dict, Protocol

from ..console.errors import UserError, first_line
from .subwords import BPE, SENTENCEPIECE


class Encoder(Protocol):
    def encode(self, text: str) -> str:
        """The tokens of the text, separated by spaces."""


class Tokenizer(Encoder, Protocol):
    def decode(self, text: str) -> str:
        """The text of the tokens: the inverse of `encode`, as far as possible."""


class BoundedCache(Dict[str, Any]):
    """A dictionary that is cleared when it is full, because a stream has any number of different words."""

    room = 10_000

    def __setitem__(self, word: str, value: Any) -> None:
        if len(self) >= self.room:
            self.clear()
        super().__setitem__(word, value)


class SubwordNmt:
    """BPE of subword-nmt, with bounded memory.  codes: the content of its file.  name: of the file, for errors."""

    def __init__(self, codes: str, name: str) -> None:
        from subword_nmt import apply_bpe

        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                self.bpe = apply_bpe.BPE(io.StringIO(codes), separator=BPE)
        except (SystemExit, ValueError, IndexError) as error:  # subword_nmt prints its reason and exits
            reason = said.getvalue().split("\n")[0] or first_line(error)
            raise UserError(f"the file of BPE codes {name} cannot be used: {reason}") from error
        self.bpe.cache = BoundedCache()
        self.lock = threading.Lock()  # subword_nmt looks a word up twice, and another thread may empty the cache

    def encode(self, text: str) -> str:
        with self.lock:
            result: str = self.bpe.process_line(text)
        return result


class SentencePiece:
    """A sentencepiece model that can segment word by word.  model: the content of its file."""

    def __init__(self, model: bytes, name: str) -> None:
        import sentencepiece

        try:
            self.model = sentencepiece.SentencePieceProcessor(model_proto=model)
            size = self.model.get_piece_size()
        except (RuntimeError, ValueError, TypeError) as error:
            raise UserError(f"{name} is not a sentencepiece model: {first_line(error)}") from error
        self._refuse_pieces_across_words([self.model.id_to_piece(index) for index in range(size)], name)

    def _refuse_pieces_across_words(self, pieces: Any, name: str) -> None:
        crossing = next((piece for piece in pieces if SENTENCEPIECE in piece.lstrip(SENTENCEPIECE)), None)
        if crossing is not None:
            raise UserError(
                f"{name} has pieces that cross words ('{crossing}'), so a word cannot be segmented before the next one "
                "is known: train sentencepiece with --split_by_whitespace=true"
            )
        if not self.encode("a").startswith(SENTENCEPIECE):
            raise UserError(
                f"{name} does not begin a word with {SENTENCEPIECE}, so a word by itself is not segmented as in a "
                "sentence: train sentencepiece with --add_dummy_prefix=true and without --treat_whitespace_as_suffix"
            )

    def encode(self, text: str) -> str:
        return " ".join(self.model.encode(text, out_type=str))


class Moses:
    """The Moses tokeniser of the source language and detokeniser of the target language, from sacremoses."""

    def __init__(self, source: str, target: str, no_dash_splits: bool = False, no_escape: bool = False) -> None:
        import sacremoses

        self.tokenizer, self.detokenizer = sacremoses.MosesTokenizer(source), sacremoses.MosesDetokenizer(target)
        self.dash_splits, self.escape = not no_dash_splits, not no_escape

    def encode(self, text: str) -> str:
        options = {"aggressive_dash_splits": self.dash_splits, "escape": self.escape}
        result: str = self.tokenizer.tokenize(text, return_str=True, **options)
        return result

    def decode(self, text: str) -> str:
        result: str = self.detokenizer.detokenize(text.split())
        return result
