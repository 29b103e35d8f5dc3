"""Binary data for fairseq: Multi30k German to English with 8k joint subwords, or random words with similar statistics.

One dictionary for both languages, as in the benchmark's table (V = 8k); `examples/multi30k` has one for each.
"""

import contextlib
import gzip
import io
import os
import random
from itertools import accumulate
from pathlib import Path
from typing import Callable, Dict, List, Sequence, Tuple

from fairseq import options
from fairseq_cli import preprocess

from benchmarks.harness import ROOT, Size
from examples.prepare.pipeline import log_files_closed

MULTI30K = Path(os.environ.get("MULTI30K", ROOT.parent / "shared" / "data" / "multi30k"))
FILES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
LANGUAGES = ("de", "en")
MERGES = 8000
FEW, MANY = 20, 2000  # sentences of the synthetic valid and test sets


def corpus(size: Size) -> Tuple[Path, str]:
    """A data directory for training and a description of its data."""
    make: Callable[[Path], Tuple[Path, str]] = size.pick(multi30k, lambda out: (synthetic(out, 400, 500), "synthetic"))
    return make(size.out)


def multi30k(out: Path) -> Tuple[Path, str]:
    """Return the data directory under `out`, which is made if it does not exist."""
    if not MULTI30K.is_dir():
        return synthetic(out, 20000), "words with the lengths and vocabulary of Multi30k"
    folder = out / "multi30k"
    if not (folder / "bin" / "dict.en.txt").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _split(folder)
        _binarise(folder, "--joined-dictionary")
    return folder / "bin", f"Multi30k de-en, {MERGES} joint subwords"


def _split(folder: Path) -> None:
    """Moses tokens, then subwords learned on both languages of the training set."""
    from sacremoses import MosesTokenizer
    from subword_nmt import apply_bpe, learn_bpe

    tokens: Dict[Tuple[str, str], List[str]] = {}
    for language in LANGUAGES:
        moses = MosesTokenizer(language)
        for split, name in FILES.items():
            with gzip.open(MULTI30K / f"{name}.{language}.gz", "rt", encoding="utf-8") as lines:
                tokens[split, language] = [moses.tokenize(line.strip(), return_str=True) for line in lines]
    codes = folder / "codes"
    with open(codes, "w", encoding="utf-8") as file, contextlib.redirect_stderr(io.StringIO()):  # its progress bar
        learn_bpe.learn_bpe([line for language in LANGUAGES for line in tokens["train", language]], file, MERGES)
    with open(codes, encoding="utf-8") as file:
        bpe = apply_bpe.BPE(file)
    for (split, language), tokenised in tokens.items():
        _write(folder / f"{split}.{language}", [bpe.process_line(line) for line in tokenised])


def synthetic(out: Path, sentences: int, words: int = MERGES) -> Path:
    """Sentences of about 14 tokens, at least 4, whose words follow Zipf's law; both languages alike."""
    folder = out / f"synthetic-{sentences}-{words}-{MANY}"
    if (folder / "bin" / "dict.en.txt").exists():
        return folder / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    names = [f"w{word}" for word in range(words)]
    weights = list(accumulate(1 / (rank + 3) for rank in range(words)))
    for split, size in {"train": sentences, "valid": FEW, "test": MANY}.items():
        lengths = [max(4, round(draw.lognormvariate(2.6, 0.3))) for _ in range(size)]
        for language in LANGUAGES:
            lines = [" ".join(draw.choices(names, cum_weights=weights, k=n)) for n in lengths]
            _write(folder / f"{split}.{language}", lines)
    _binarise(folder)
    return folder / "bin"


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _binarise(folder: Path, *more: str) -> None:
    prefixes = [f"--{split}pref={folder / split}" for split in FILES]
    arguments = ["-s", "de", "-t", "en", *prefixes, "--destdir", str(folder / "bin"), *more]
    with log_files_closed(preprocess.__name__):
        preprocess.main(options.get_preprocessing_parser().parse_args(arguments))
