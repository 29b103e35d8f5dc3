"""The corpus: sentences of the language, and their binary data from fairseq-preprocess.

OUT/data-<hash of its text>/ has text/ and bin/.  It is written under another name and renamed when it is complete.
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import List, Mapping

from examples.verb_final import recipe, text
from examples.verb_final.language import Sentence
from fairseq_milk.console.errors import RunError
from fairseq_milk.console.files import digest
from fairseq_milk.console.locks import locked
from fairseq_milk.console.processes import check, command, signals_deferred, start, stop
from fairseq_milk.console.progress import Line


def prepare_data(out: Path, sizes: Mapping[str, int], line: Line, seed: int = recipe.DATA_SEED) -> Path:
    """The folder of the corpus, which is written if it does not exist."""
    files = draw_files(sizes, seed)
    data = folder_of(out, files)
    out.mkdir(parents=True, exist_ok=True)
    with locked(out / ".lock"):
        for stale in out.glob(".data-*"):  # left by an interrupted process
            shutil.rmtree(stale)
        if not data.is_dir():
            line.say(f"data: {', '.join(f'{size} {split}' for split, size in sizes.items())} sentences")
            _build(data, files)
    return data


def draw_files(sizes: Mapping[str, int], seed: int = recipe.DATA_SEED) -> Mapping[str, str]:
    return text.as_files(text.draw_corpus(sizes, seed))


def folder_of(out: Path, files: Mapping[str, str]) -> Path:
    """Where the corpus is, or would be."""
    contents = {name: hashlib.sha256(content.encode()).hexdigest() for name, content in files.items()}
    return out / f"data-{digest([contents, recipe.arguments(recipe.PREPROCESS)])}"


def _build(data: Path, files: Mapping[str, str]) -> None:
    building = data.with_name(f".{data.name}")
    try:
        text.write_files(building / "text", files)
        _preprocess(building)
        os.rename(building, data)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _preprocess(folder: Path) -> None:
    words = [command("fairseq-preprocess"), "--destdir", str(folder / "bin")]
    for split, option in (("train", "--trainpref"), ("valid", "--validpref"), ("test", "--testpref")):
        words += [option, str(folder / "text" / split)]
    words += recipe.arguments(recipe.PREPROCESS)
    process = None
    try:
        with signals_deferred():
            process = start(words, folder / "preprocess.log", threads=1)
        code = process.wait()
    finally:
        if process is not None:
            stop(process)
    check(words, code, folder / "preprocess.log")


def read_test_set(data: Path) -> List[Sentence]:
    """The sentences of the test set with their oracle delays, in the order of fairseq's ids."""
    columns = [
        (data / "text" / f"test.{name}").read_text(encoding="utf-8").splitlines()
        for name in (text.SOURCE, text.TARGET, "delays", "kind")
    ]
    if len({len(lines) for lines in columns}) != 1:
        raise RunError(f"the files of the test set in {data} have different numbers of lines: remove the folder")
    return [
        Sentence(tuple(x.split()), tuple(y.split()), tuple(map(int, g.split())), kind)
        for x, y, g, kind in zip(*columns)
    ]
