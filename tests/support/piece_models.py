"""Sentencepiece models of a small text."""

import io
from typing import Any

TEXT = ["the dog and the cat ran home", "a large house at the old station", "the cat saw a dog at home"] * 20


def pieces(**options: Any) -> bytes:
    """A sentencepiece model of the text."""
    import sentencepiece

    model = io.BytesIO()
    limits = {"vocab_size": 48, "hard_vocab_limit": False, "minloglevel": 2}  # a text as small as this has fewer pieces
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT), model_writer=model, **limits, **options)  # type: ignore[arg-type]
    return model.getvalue()
