"""Files of fairseq-preprocess: sound files pass, damaged ones are refused by name or do no harm."""

import os
import re
from pathlib import Path
from typing import Callable, Dict, List

import numpy as np
import pytest
import torch
from fairseq.data import indexed_dataset
from hypothesis import given
from hypothesis import strategies as st

from fairseq_milk.console.errors import UserError
from fairseq_milk.host.checkpoint_file import read_checkpoint
from fairseq_milk.host.data_files import check_data_files
from fairseq_milk.tasks.checked_data import CheckedTranslationTask
from tests.support.fuzzing import watched

WORDS = 50
SENTENCES = [[5, 6, 7, 2], [2], [49, 8, 2], [10, 11, 12, 13, 14, 15, 2]]


def write(folder: Path, sentences: List[List[int]] = SENTENCES) -> List[Path]:
    prefix = str(folder / "train.de-en.de")
    builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", vocab_size=WORDS)
    for sentence in sentences:
        builder.add_item(torch.tensor(sentence))
    builder.finalize(f"{prefix}.idx")
    return [Path(f"{prefix}.idx"), Path(f"{prefix}.bin")]


def check(folder: Path) -> None:
    check_data_files(str(folder), "train", False, {"de": WORDS, "en": WORDS})


def read(folder: Path) -> List[List[int]]:
    data = indexed_dataset.make_dataset(str(folder / "train.de-en.de"), "mmap")
    return [data[n].tolist() for n in range(len(data))]


def test_what_was_written_is_whole(tmp_path: Path) -> None:
    of_any_kind: List[List[List[int]]] = [SENTENCES, [], [[]], [[2]] * 3]
    for sentences in of_any_kind:
        write(tmp_path, sentences)
        check(tmp_path)


@given(where=st.data())
def test_a_flipped_bit_is_noticed_or_does_no_harm(
    tmp_path_factory: pytest.TempPathFactory, where: st.DataObject
) -> None:
    """Data that pass can be read: as many sentences, of the same lengths, with words of the dictionary."""
    folder = tmp_path_factory.getbasetemp() / "flips"
    folder.mkdir(exist_ok=True)
    path = where.draw(st.sampled_from(write(folder)))
    content = bytearray(path.read_bytes())
    bit = where.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    try:
        check(folder)
    except UserError as error:
        assert str(path) in str(error) or (path.suffix == ".idx" and str(path.with_suffix(".bin")) in str(error))
        return
    assert path.suffix == ".bin", "nothing of an index can be changed unnoticed"
    found = read(folder)
    assert [len(sentence) for sentence in found] == [len(sentence) for sentence in SENTENCES]
    assert all(0 <= token < WORDS for sentence in found for token in sentence)


@pytest.mark.parametrize("ending", ["idx", "bin"])
def test_a_file_cut_anywhere_is_noticed(tmp_path: Path, ending: str) -> None:
    path = next(path for path in write(tmp_path) if path.suffix == f".{ending}")
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(UserError, match=re.escape(str(path))):
            check(tmp_path)


def test_other_dictionaries_are_noticed(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(UserError, match=r"de\.bin .*beyond the 40 of the dictionary"):
        check_data_files(str(tmp_path), "train", False, {"de": 40})
    check_data_files(str(tmp_path), "train", False)


def test_large_files_are_looked_at_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_milk.host.data_files.BLOCK", 2)
    paths = write(tmp_path)
    check(tmp_path)
    tokens = np.fromfile(paths[1], np.uint16)
    tokens[-2] = WORDS
    tokens.tofile(paths[1])
    with pytest.raises(UserError, match="beyond the 50"):
        check(tmp_path)


@pytest.mark.parametrize("name", ["dict.de.txt", "train.de-en.de.idx", "train.de-en.de.bin", "model.pt"])
def test_a_link_to_what_never_ends_is_not_read(name: str, tmp_path: Path) -> None:
    """A folder of a stranger may hold links.  Here they lead to a pipe, which does less harm than /dev/zero if read."""
    write(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "pipe")
    readers: Dict[str, Callable[[], object]] = {
        "dict.de.txt": lambda: CheckedTranslationTask.load_dictionary(str(tmp_path / name)),
        "model.pt": lambda: read_checkpoint(str(tmp_path / name)),
    }
    with watched(), pytest.raises(UserError, match=f"{name} is not a regular file"):
        readers.get(name, lambda: check(tmp_path))()
