"""Builds the corpus from a clone of github.com/UDS-SFB-B6-Datasets/Multilingual-Parallel-Direct-Europarl.

    python -m examples.europarl_de_en.corpus CLONE [--out FOLDER] [--workers N]

1. Select the speeches held in German, by the language that both files of a sitting give for every paragraph
   (speeches.py).
2. Split them into sentences (sentence-splitter): by paragraph if both sides have the same number, else as a whole.
3. Align the sentences by length and shared words (sentence_alignment.py) and keep the 1-1 alignments as pairs.
4. Remove pairs with fewer than 3 or more than 100 words on a side, with lengths in characters that differ by more than
   a factor of 2.5, with equal sides, and duplicates.
5. October 2000 is dev, November and December 2000 are test, the first 2,000 pairs of each; everything else is train,
   except pairs whose German sentence is in dev or test.

The result is deterministic.  Needs `pip install sentence-splitter`.
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
DEV, TEST = ("200010",), ("200011", "200012")  # held-out months
HELD_OUT = 2000  # pairs in dev and in test
WORDS = range(3, 101)
FACTOR = 2.5
RATIO = 0.95  # English characters per German one, in the whole corpus


@cache
def splitter(language: str) -> Any:
    try:
        from sentence_splitter import SentenceSplitter
    except ImportError:
        raise UserError("the corpus needs `pip install sentence-splitter`, which splits text into sentences") from None
    return SentenceSplitter(language=language)


def sentence_pairs(clone: Path, day: str) -> List[Pair]:
    """The sentence pairs of a sitting, before they are filtered."""
    pairs = []
    for speech in speeches(clone, day):
        for part in speech.parts():
            source, target = (splitter(language).split(text) for language, text in zip(("de", "en"), part))
            for bead in align(source, target, RATIO):
                if len(bead.source) == len(bead.target) == 1:
                    pairs.append((source[bead.source[0]], target[bead.target[0]]))
    return pairs


def is_pair(source: str, target: str) -> bool:
    """Whether a pair passes the limits on length and ratio and its sides differ."""
    fits = len(source.split()) in WORDS and len(target.split()) in WORDS
    return fits and source != target and 1 / FACTOR <= len(source) / len(target) <= FACTOR


def split_of(day: str) -> str:
    return "dev" if day.startswith(DEV) else "test" if day.startswith(TEST) else "train"


def divide(days: Iterable[Tuple[str, List[Pair]]]) -> Dict[str, List[Pair]]:
    """Divide the pairs into train, dev and test, in the order of the debates and without duplicates."""
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
    parser.add_argument(
        "--out", type=Path, default=HERE / "corpus", help="output folder for {train,dev,test}.{de,en}.gz"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    args = parser.parse_args(argv)

    def body() -> None:
        if args.workers < 1:
            raise UserError(f"--workers must be at least 1, got {args.workers}")
        splits = divide(aligned_days(args.clone, args.workers))
        write(splits, args.out)
        for name, pairs in splits.items():
            print(f"{name}: {len(pairs):,} pairs")

    return exit_code("corpus", body)


if __name__ == "__main__":
    sys.exit(main())
