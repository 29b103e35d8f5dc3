"""The corpus, from a clone of github.com/UDS-SFB-B6-Datasets/Multilingual-Parallel-Direct-Europarl.

    python -m examples.europarl_de_en.corpus CLONE [--out FOLDER] [--workers N]

1. Speeches held in German, by the language that both files of a sitting name for every paragraph (speeches.py).
2. Paragraph by paragraph where both sides have as many, else as a whole, cut into sentences (sentence-splitter).
3. Sentences are aligned by length and shared words (sentence_alignment.py); those that translate one sentence by one
   are pairs.
4. Pairs are left out that have fewer than 3 or more than 100 words on a side, or lengths that differ by more than a
   factor of 2.5 in characters, or that are equal on both sides, or have been seen before.
5. October 2000 is dev, November and December 2000 are test, the first 2,000 pairs of each; everything else is train,
   but for pairs whose German sentence is in dev or test.

The same clone gives the same files.  Needs `pip install sentence-splitter`.
"""

import argparse
import gzip
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from examples.europarl_de_en.sentence_alignment import align
from examples.europarl_de_en.speeches import sittings, speeches
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.exit_codes import exit_code

HERE = Path(__file__).resolve().parent
Pair = Tuple[str, str]
DEV, TEST = ("200010",), ("200011", "200012")  # the months that are held out
HELD_OUT = 2000  # pairs of each
WORDS = range(3, 101)
FACTOR = 2.5
RATIO = 0.95  # English characters per German one, in the whole corpus


@cache
def splitter(language: str) -> Any:
    try:
        from sentence_splitter import SentenceSplitter
    except ImportError:
        raise UserError("the corpus needs `pip install sentence-splitter`, which cuts text into sentences") from None
    return SentenceSplitter(language=language)


def sentence_pairs(clone: Path, day: str) -> List[Pair]:
    """All of a sitting, before anything is left out for its length."""
    pairs = []
    for speech in speeches(clone, day):
        for part in speech.parts():
            source, target = (splitter(language).split(text) for language, text in zip(("de", "en"), part))
            for bead in align(source, target, RATIO):
                if len(bead.source) == len(bead.target) == 1:
                    pairs.append((source[bead.source[0]], target[bead.target[0]]))
    return pairs


def is_pair(source: str, target: str) -> bool:
    """Not too short, not too long, not too different in length, and not the same on both sides."""
    fits = len(source.split()) in WORDS and len(target.split()) in WORDS
    return fits and source != target and 1 / FACTOR <= len(source) / len(target) <= FACTOR


def split_of(day: str) -> str:
    return "dev" if day.startswith(DEV) else "test" if day.startswith(TEST) else "train"


def divide(days: Iterable[Tuple[str, List[Pair]]]) -> Dict[str, List[Pair]]:
    """train, dev and test, each in the order of the debates and without repetitions."""
    found: Dict[str, Dict[Pair, None]] = {"train": {}, "dev": {}, "test": {}}
    for day, pairs in days:
        found[split_of(day)].update(dict.fromkeys(pair for pair in pairs if is_pair(*pair)))
    splits = {name: list(pairs) if name == "train" else list(pairs)[:HELD_OUT] for name, pairs in found.items()}
    held_out = {source for name in ("dev", "test") for source, _ in splits[name]}
    splits["train"] = [pair for pair in splits["train"] if pair[0] not in held_out]
    return splits


def aligned_days(clone: Path, workers: int) -> Iterator[Tuple[str, List[Pair]]]:
    days = sittings(clone)
    with ProcessPoolExecutor(workers) as pool:
        yield from zip(days, pool.map(partial(sentence_pairs, clone), days))


def write(splits: Dict[str, List[Pair]], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits.items():
        for side, language in enumerate(("de", "en")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (out / f"{name}.{language}.gz").write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Make the corpus from a clone of the repository.")
    parser.add_argument("clone", type=Path, help="the folder that has proceedings/xml")
    parser.add_argument("--out", type=Path, default=HERE / "corpus", help="where {train,dev,test}.{de,en}.gz go")
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    args = parser.parse_args(argv)

    def body() -> int:
        if args.workers < 1:
            raise UserError(f"--workers must be at least 1, got {args.workers}")
        splits = divide(aligned_days(args.clone, args.workers))
        write(splits, args.out)
        for name, pairs in splits.items():
            print(f"{name}: {len(pairs):,} pairs")
        return 0

    return exit_code("corpus", body)


if __name__ == "__main__":
    sys.exit(main())
