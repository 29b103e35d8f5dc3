"""The declarations of a recipe: its archives, the files in them, and the preparation of the text."""

from pathlib import PurePosixPath
from typing import Dict, Mapping, NamedTuple, Optional, Tuple


class Archive(NamedTuple):
    """A file to download.  path: relative to the base address.  size: in bytes.  digest: sha256:... or md5:..."""

    path: str
    size: Optional[int] = None
    digest: str = ""


class Bitext(NamedTuple):
    """Two files: line n of one is the translation of line n of the other.

    name: of the extracted text files.  source, target: ARCHIVE, or ARCHIVE!MEMBER of a tar archive; a member may be
    compressed (.gz) or marked up (.sgm).  lines: number of lines in the public release; 0: not known.
    """

    name: str
    source: str
    target: str
    lines: int

    def archives(self) -> Tuple[str, ...]:
        return tuple(dict.fromkeys(address.partition("!")[0] for address in (self.source, self.target)))


class Corpus(NamedTuple):
    """A parallel corpus and its preparation.

    merges:     joint BPE operations, learned on both sides of the training set
    learn_from: only words that occur at least this often are used to learn them
    joined:     one dictionary for both languages
    types:      size of the dictionary, which keeps the most frequent types; 0: all
    longest, ratio: limits of cleaning: words per side, and quotient of the lengths of both sides
    more_tests: further test sets, one bitext each; fairseq calls them test1, test2 and so on
    respell:    by language, regular expressions and their replacements in the training text
    pairs:      number of pairs in the paper after cleaning; 0: not stated
    full_read:  the paper's DAL of a system that reads everything first, by split: the mean length of its sources
    """

    name: str
    source: str
    target: str
    base_url: str
    archives: Tuple[Archive, ...]
    train: Tuple[Bitext, ...]
    valid: Tuple[Bitext, ...]
    test: Tuple[Bitext, ...]
    merges: int
    joined: bool
    more_tests: Tuple[Bitext, ...] = ()
    types: int = 0
    learn_from: int = 1
    longest: int = 250
    ratio: float = 9.0
    respell: Mapping[str, Tuple[Tuple[str, str], ...]] = {}
    pairs: int = 0
    full_read: Mapping[str, float] = {}

    @property
    def pair(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def languages(self) -> Tuple[str, str]:
        return self.source, self.target

    def splits(self) -> Dict[str, Tuple[Bitext, ...]]:
        more = {f"test{number}": (bitext,) for number, bitext in enumerate(self.more_tests, start=1)}
        return {"train": self.train, "valid": self.valid, "test": self.test, **more}

    def bitexts(self) -> Tuple[Bitext, ...]:
        return self.train + self.valid + self.test + self.more_tests


def both(archive: str, member: str, lines: int) -> Bitext:
    """A bitext whose file names differ only in the language: both("a.tgz", "news.de-en.{de,en}", 3)."""
    stem, _, languages = member.rstrip("}").partition("{")
    source, target = languages.split(",")
    suffix = PurePosixPath(stem.rstrip(".")).name
    return Bitext(suffix, f"{archive}!{stem}{source}", f"{archive}!{stem}{target}", lines)
