"""The dictionary of the task gives the same answers as fairseq's, for valid and invalid input."""

from typing import Any, Dict

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_milk.host.dictionary import QuickDictionary

ARGUMENTS: Dict[str, Dict[str, Any]] = {
    "plain": {},
    "bpe": {"bpe_symbol": "@@ "},
    "unknown": {"escape_unk": True},
    "another unknown": {"unk_string": "?"},
    "ignored": {"extra_symbols_to_ignore": {5}},
    "eos": {"include_eos": True},
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS.keys())
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_text_is_fairseqs(arguments: Dict[str, Any], dtype: torch.dtype) -> None:
    ours, theirs = QuickDictionary(), Dictionary()
    for dictionary in (ours, theirs):
        for word in ("ei@@", "n", "hund", "und"):
            dictionary.add_symbol(word)
    row = torch.tensor([4, 5, 6, 3, 7, 0, 2, 1], dtype=dtype)
    for tensor in (row, row[:0], row.tolist(), torch.stack((row, row.flip(0)))):
        assert ours.string(tensor, **arguments) == theirs.string(tensor, **arguments)
    assert ours == theirs
