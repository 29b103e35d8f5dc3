"""Tables and a figure of how long systems wait for late German words; waiting.py defines the measures.

    python -m examples.europarl_de_en.waiting_report 'MILk=milk/generate-valid.jsonl' \\
        'wait-k=wait-k/generate-valid.jsonl' --bitext examples/europarl_de_en/data/de-en/clean/train --out waiting.png

With --text STEM --wait-k 3 7 the sentences of STEM.en are used as hypotheses that were written under wait-3 and wait-7,
which shows how many words a fixed schedule must guess.  Needs `pip install HanTa eflomal`.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from matplotlib.figure import Figure

from examples.europarl_de_en import verbs, word_alignment
from examples.europarl_de_en.waiting import MEASURES, Sentences, measure, sample, word_pairs
from examples.europarl_de_en.word_alignment import Pair
from fairseq_milk.analysis import drawing
from fairseq_milk.analysis.looks import style_of
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.console.tables import difference_with_bounds, markdown_table
from fairseq_milk.scoring.bootstrap import interval
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.records import Record

FEWEST = 30  # fewest words of a part of speech in the second table
MOST = 50000  # pairs of the bitext


def waiting_table(systems: Mapping[str, Sentences]) -> List[List[str]]:
    rows = [["system", "measure", "late words", "other words", "late - other (95 %)"]]
    for name, sentences in systems.items():
        for what in MEASURES:
            late, other = (interval(sample(sentences, what, group)) for group in (True, False))
            difference = difference_with_bounds(*interval(sample(sentences, what, None)))
            rows.append([name, what, f"{late.score:.2f}", f"{other.score:.2f}", difference])
    return rows


def early_table(systems: Mapping[str, Sentences]) -> List[List[str]]:
    """Share of words written too early, by the part of speech of their last source word."""
    shares: Dict[str, Dict[str, List[float]]] = {name: defaultdict(list) for name in systems}
    for name, sentences in systems.items():
        for word in (word for words in sentences for word in words if "early" in word.values):
            shares[name][word.tag].append(word.values["early"])
    tags = {tag for found in shares.values() for tag, values in found.items() if len(values) >= FEWEST}
    first = next(iter(shares.values()))
    order = sorted(tags, key=lambda tag: (-float(np.mean(first.get(tag, [0.0]))), tag))
    rows = [["part of speech", *(f"{name}: early" for name in systems), "words"]]
    for tag in order:
        figures = [f"{np.mean(found.get(tag, [np.nan])):.1%}" for found in shares.values()]
        rows.append([tag, *figures, str(len(first.get(tag, [])))])
    return rows


def figure(systems: Mapping[str, Sentences]) -> Figure:
    """Lag of late and other words, one pair of bars per system, with 95 % intervals."""
    with drawing.house_style():
        drawn = Figure(figsize=(5.6, 3.6), layout="constrained")
        axes: Any = drawn.add_subplot()
        for x, (name, (colour, _)) in enumerate(style_of(systems).items()):
            for offset, late in ((-0.2, True), (0.2, False)):
                found = interval(sample(systems[name], "lag", late))
                spread = [[max(0.0, found.score - found.low)], [max(0.0, found.high - found.score)]]
                look = {"color": colour, "alpha": 1.0 if late else 0.45, "capsize": 3}
                axes.bar(x + offset, found.score, 0.38, yerr=spread, **look)
                axes.text(x + offset, found.high, f"{found.score:.1f}", ha="center", va="bottom")
        axes.set_xticks(range(len(systems)), [drawing.literal(name) for name in systems])
        axes.set_ylabel("lag when the word is written (tokens)")
        axes.set_title("left: late verbs and particles, right: other words", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    return drawn


def named(argument: str) -> Tuple[str, str]:
    name, equals, path = argument.partition("=")  # the paths of a sweep have more of them
    if not equals:
        raise UserError(f"'{argument}' must be NAME=FILE, a name for the system and its generate-SUBSET.jsonl")
    return name, path


def under_wait_k(pairs: Sequence[Pair], k: int) -> List[Record]:
    """Records of a parallel text as if wait-k had written its target side."""
    return [
        Record(number, source, target, [min(k + i, len(source) + 1) for i in range(len(target) + 1)])
        for number, (source, target) in enumerate(pairs)
    ]


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="How long systems wait for German words that come late.")
    parser.add_argument("systems", nargs="*", metavar="NAME=FILE", help="generations of the same sentences")
    parser.add_argument(
        "--bitext", type=Path, required=True, help="STEM of tokenised STEM.de and STEM.en, to learn the alignment from"
    )
    parser.add_argument("--text", type=Path, help="STEM of tokenised STEM.de and STEM.en, used with --wait-k")
    parser.add_argument("--wait-k", type=int, nargs="+", default=[], metavar="K", help="values of k for --text")
    parser.add_argument("--out", type=Path, help="a picture (.png, .svg or .pdf)")
    args = parser.parse_args(argv)

    def body() -> None:
        logs = {name: read_generate_log(path).records for name, path in map(named, args.systems)}
        if args.wait_k and args.text:
            pairs = word_alignment.read_bitext(args.text, ("de", "en"), MOST)
            logs.update({f"wait-{k}": under_wait_k(pairs, k) for k in args.wait_k})
        if not logs:
            raise UserError("there is nothing to measure: give NAME=FILE, or --text with --wait-k")
        if len({tuple(tuple(r.source) for r in records) for records in logs.values()}) > 1:
            raise UserError("the systems translated different sentences")
        pairs = [pair for records in logs.values() for pair in word_pairs(records)]
        links = iter(word_alignment.align(pairs, word_alignment.read_bitext(args.bitext, ("de", "en"), MOST)))
        systems = {name: measure(rs, [next(links) for _ in rs], verbs.tag) for name, rs in logs.items()}
        print(markdown_table(waiting_table(systems)) + "\n")
        print(markdown_table(early_table(systems)))
        if args.out:
            drawing.save(figure(systems), args.out.with_suffix(""), [args.out.suffix[1:]])

    return exit_code("waiting_report", body)


if __name__ == "__main__":
    sys.exit(main())
