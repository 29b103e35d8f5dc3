"""Writes a corpus of the verb-final language as text files, with the oracle delays of its test set.

    python -m examples.verb_final.text --out FOLDER [--train 20000] [--valid 500] [--test 500] [--seed 1]

The files are {train,valid,test}.{de,en}, test.delays and test.kind.
"""

import argparse
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from examples.verb_final.language import Sentence, sample
from examples.verb_final.lexicon import Lexicon

if TYPE_CHECKING:
    from fairseq_milk.scoring.score import Score

SPLITS = ("train", "valid", "test")
SOURCE, TARGET = "de", "en"


def draw_corpus(sizes: Mapping[str, int], seed: int) -> Dict[str, List[Sentence]]:
    """The sentences of each split, without duplicate sources; the test set depends on its size and the seed only."""
    if set(sizes) != set(SPLITS) or min(sizes.values()) < 1:
        raise ValueError("The sizes of train, valid and test must each be at least 1.")
    lexicon = Lexicon.default()
    seen: Dict[Tuple[str, ...], str] = {}  # source -> split
    corpus: Dict[str, List[Sentence]] = {}
    for split in reversed(SPLITS):
        rng = random.Random(f"{seed} {split}")
        corpus[split] = []
        while len(corpus[split]) < sizes[split]:
            sentence = sample(rng, lexicon)
            if sentence.source not in seen:
                seen[sentence.source] = split
                corpus[split].append(sentence)
    return corpus


def as_files(corpus: Mapping[str, Sequence[Sentence]]) -> Dict[str, str]:
    """The text of each file by name."""
    files: Dict[str, Iterable[str]] = {}
    for split, sentences in corpus.items():
        files[f"{split}.{SOURCE}"] = (" ".join(sentence.source) for sentence in sentences)
        files[f"{split}.{TARGET}"] = (" ".join(sentence.target) for sentence in sentences)
    files["test.delays"] = (" ".join(map(str, sentence.delays)) for sentence in corpus["test"])
    files["test.kind"] = (sentence.kind for sentence in corpus["test"])
    return {name: "".join(line + "\n" for line in lines) for name, lines in files.items()}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write each file atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        partial = folder / f"{name}.partial"
        try:
            partial.write_text(text, encoding="utf-8")
            os.replace(partial, folder / name)
        finally:
            if partial.exists():
                partial.unlink()


def oracle_score(sentences: Sequence[Sentence]) -> "Score":
    """The score of the oracle, whose hypotheses are the references.  Its tokens are words."""
    from fairseq_milk.scoring.records import Record  # needs torch, which writing the corpus does not
    from fairseq_milk.scoring.score import score_records

    return score_records([Record(n, s.source, s.target, s.delays, s.target) for n, s in enumerate(sentences)])


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(description="Write a corpus of the verb-final language.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    for split, size in zip(SPLITS, (20000, 500, 500)):
        parser.add_argument(f"--{split}", type=int, default=size, help="number of sentences (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        corpus = draw_corpus({split: getattr(options, split) for split in SPLITS}, options.seed)
        write_files(options.out, as_files(corpus))
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"Cannot write to {options.out}: {error.strerror}.")
    sizes = ", ".join(f"{len(corpus[split])} {split}" for split in SPLITS)
    print(f"{options.out}: {sizes} sentences.")
    try:
        score = oracle_score(corpus["test"])
    except ImportError as error:
        sys.exit(f"The corpus is complete, but its oracle latency needs fairseq_milk and torch installed ({error}).")
    figures = "  ".join(f"{name} {score.figure(name):.3f}" for name in ("DAL", "AL", "AP"))
    print(f"Oracle of the test set: {figures}  (unit: word, EOS counted on both sides, |y| of the reference)")


if __name__ == "__main__":
    main()
