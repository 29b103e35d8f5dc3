"""The corpus: sentences of the language, and what fairseq-preprocess makes of them."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import List, Mapping

from examples.verb_final import language, recipe
from fairseq_milk.sweep.commands import RunError, check, command, digest, start, stop, undisturbed
from fairseq_milk.sweep.progress import Line


def prepare_data(out: Path, sizes: Mapping[str, int], line: Line, seed: int = recipe.DATA_SEED) -> Path:
    """OUT/data-<hash of its text>, with text/ and bin/; made under another name and renamed when it is complete."""
    out.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".data-", dir=out))
    try:
        language.write_corpus(building / "text", sizes, seed)
        files = sorted((building / "text").iterdir())
        contents = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        data = out / f"data-{digest([contents, recipe.arguments(recipe.PREPROCESS)])}"
        if not data.is_dir():
            line.say(f"data: {', '.join(f'{size} {split}' for split, size in sizes.items())} sentences")
            _preprocess(building)
            building.chmod(0o755)
            _rename(building, data)
        return data
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _preprocess(folder: Path) -> None:
    words = [command("fairseq-preprocess"), "--destdir", str(folder / "bin")]
    for split, option in (("train", "--trainpref"), ("valid", "--validpref"), ("test", "--testpref")):
        words += [option, str(folder / "text" / split)]
    words += recipe.arguments(recipe.PREPROCESS)
    process = None
    try:
        with undisturbed():
            process = start(words, folder / "preprocess.log", threads=1)
        code = process.wait()
    finally:
        if process is not None:
            stop(process)
    check(words, code, folder / "preprocess.log")


def _rename(building: Path, data: Path) -> None:
    try:
        os.rename(building, data)
    except OSError:
        if not data.is_dir():  # else somebody made the same at the same time
            raise


def read_test_set(data: Path) -> List[language.Sentence]:
    """The sentences of the test set with their oracle delays, in the order of fairseq's ids."""
    columns = [
        (data / "text" / f"test.{name}").read_text(encoding="utf-8").splitlines()
        for name in (language.SOURCE, language.TARGET, "delays", "kind")
    ]
    if len({len(lines) for lines in columns}) != 1:
        raise RunError(f"the files of the test set in {data} are not of one length: remove the folder")
    return [
        language.Sentence(tuple(x.split()), tuple(y.split()), tuple(map(int, g.split())), kind)
        for x, y, g, kind in zip(*columns)
    ]
