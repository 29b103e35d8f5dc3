"""Word alignment with eflomal (Östling and Tiedemann 2016): links that it finds in both directions."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import FrozenSet, List, Sequence, Tuple

from fairseq_milk.console.errors import UserError

Links = FrozenSet[Tuple[int, int]]  # (source word, target word), counted from 0
Pair = Tuple[Sequence[str], Sequence[str]]


def read_links(line: str) -> Links:
    """The links of a line in the format of Pharaoh: 0-0 1-2."""
    numbers = (link.partition("-") for link in line.split())
    return frozenset((int(source), int(target)) for source, _, target in numbers)


def read_bitext(stem: Path, languages: Tuple[str, str], most: int) -> List[Pair]:
    """At most `most` sentence pairs, split into words, from STEM.de and STEM.en, evenly spaced over the text."""
    sides = [Path(f"{stem}.{name}").read_text(encoding="utf-8").split("\n")[:-1] for name in languages]
    step = max(1, len(sides[0]) // most)
    return [(source.split(), target.split()) for source, target in list(zip(*sides))[::step][:most]]


def align(pairs: Sequence[Pair], more: Sequence[Pair]) -> List[Links]:
    """The links of each pair.  more: additional pairs to learn the alignment from."""
    try:
        import eflomal
    except ImportError:
        raise UserError("word alignment needs `pip install eflomal`") from None
    texts = [[" ".join(pair[side]) + "\n" for pair in [*pairs, *more]] for side in (0, 1)]
    with TemporaryDirectory() as folder:
        forward, reverse = (Path(folder) / name for name in ("forward", "reverse"))
        eflomal.Aligner().align(texts[0], texts[1], str(forward), str(reverse), quiet=True)
        found = [path.read_text(encoding="utf-8").split("\n")[: len(pairs)] for path in (forward, reverse)]
    return [read_links(both_ways[0]) & read_links(both_ways[1]) for both_ways in zip(*found)]
