"""From a recipe to fairseq's binary data: python -m examples.NAME.prepare [--out FOLDER] [--base-url ADDRESS] ...

    OUT/archives/         downloaded archives, or links to them
    OUT/raw/NAME.LANG     extracted text; that of the test set is the reference for BLEU
    OUT/tok/SPLIT.LANG    Moses tokens          OUT/clean/train.LANG  training pairs after cleaning
    OUT/codes             BPE operations        OUT/bpe/SPLIT.LANG    subwords
    OUT/bin/              binary data for fairseq-train and fairseq-generate
    OUT/steps/            which steps are finished

Finished steps are kept: run again after an interruption, or with other settings, it does only what is missing.
"""

import argparse
import contextlib
import logging
import os
import shutil
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence, Tuple
from typing import Counter as Counts

from examples.prepare import text
from examples.prepare.download import fetch
from examples.prepare.extract import extract
from examples.prepare.lengths import TOLERANCE, lengths
from examples.prepare.lines import map_chunks, map_lines, read_lines, total_size
from examples.prepare.recipe import Bitext, Corpus
from examples.prepare.steps import Progress, Steps, alone
from fairseq_milk.console.errors import UserError, require
from fairseq_milk.console.exit_codes import exit_code
from fairseq_milk.console.progress import Line

LOST = 0.01  # share of the lines of a training text that a mirror may lack


class Preparation:
    """The steps of one recipe in one folder."""

    def __init__(self, corpus: Corpus, out: Path, base: str, workers: int, line: Line) -> None:
        self.corpus, self.out, self.base, self.workers, self.line = corpus, out, base, workers, line
        self.steps = Steps(out / "steps", line)

    def run(self) -> Path:
        """Run all steps that are not finished; returns the folder with the binary data."""
        self.extract()
        self.tokenise()
        self.clean()
        self.learn()
        self.segment()
        return self.binarise()

    def files(self, kind: str, split: str) -> Tuple[Path, Path]:
        source, target = (self.out / kind / f"{split}.{language}" for language in self.corpus.languages)
        return source, target

    def progress(self, what: str, paths: Sequence[Path]) -> Progress:
        return Progress(self.line, what, total_size(paths))

    def extract(self) -> None:
        for split, bitexts in self.corpus.splits().items():
            for bitext in bitexts:
                raw, tolerance = self.files("raw", bitext.name), LOST if split == "train" else 0.0
                self.steps(f"extract {bitext.name}", bitext, raw, partial(self._extract, bitext, raw, tolerance))

    def _extract(self, bitext: Bitext, raw: Tuple[Path, Path], tolerance: float) -> None:
        archives = self.out / "archives"
        for path in bitext.archives():
            archive = next(archive for archive in self.corpus.archives if archive.path == path)
            fetch(archive, self.base, archives, self.line)
        lines = extract(bitext, archives, raw, tolerance)
        self.line.say(f"{bitext.name}: {lines} sentence pairs")

    def tokenise(self) -> None:
        for split, bitexts in self.corpus.splits().items():
            for side, language in enumerate(self.corpus.languages):
                raw = [self.files("raw", bitext.name)[side] for bitext in bitexts]
                output = self.files("tok", split)[side]
                rules = self.corpus.respell.get(language, ()) if split == "train" else ()
                function = partial(text.tokenise, language=language, respell=rules)
                self._map(f"tokenise {split}.{language}", rules, function, raw, output)

    def _map(
        self, name: str, settings: Any, function: "partial[List[str]]", sources: Sequence[Path], output: Path
    ) -> None:
        def make() -> None:
            map_lines(function, sources, output, self.workers, self.progress(name, sources))

        self.steps(name, settings, [output], make)

    def clean(self) -> None:
        outputs, limits = self.files("clean", "train"), (self.corpus.longest, self.corpus.ratio)

        def make() -> None:
            tokens = self.files("tok", "train")
            progress = self.progress("clean", tokens)
            sources, targets = (read_lines([path], progress) for path in tokens)
            read = kept = 0
            with open(outputs[0], "w", encoding="utf-8") as source, open(outputs[1], "w", encoding="utf-8") as target:
                for x, y in zip(sources, targets):
                    read += 1
                    if text.is_clean(x, y, *limits):
                        kept += 1
                        source.write(x + "\n")
                        target.write(y + "\n")
            if kept == 0:
                raise UserError(f"none of the {read} training pairs is left after cleaning")
            paper = f"; the paper has {self.corpus.pairs / 1e6:.1f} million" if self.corpus.pairs else ""
            self.line.say(f"{kept} of {read} training pairs kept{paper}")

        self.steps("clean", limits, outputs, make)

    def learn(self) -> None:
        codes, settings = self.out / "codes", (self.corpus.merges, self.corpus.learn_from)

        def make() -> None:
            sources = self.files("clean", "train")
            words: Counts[str] = Counter()
            lines = read_lines(sources, self.progress("count words", sources))
            for counts in map_chunks(text.count_words, lines, self.workers):
                words.update(counts)
            with open(codes, "w", encoding="utf-8", newline="\n") as file:
                text.learn(words, *settings, file)

        self.steps("learn bpe", settings, [codes], make)

    def segment(self) -> None:
        for split in self.corpus.splits():
            sources = self.files("clean" if split == "train" else "tok", split)
            for source, output in zip(sources, self.files("bpe", split)):
                function = partial(text.segment, codes=self.out / "codes")
                self._map(f"segment {output.name}", [], function, [source], output)

    def binarise(self) -> Path:
        data, settings = self.out / "bin", (self.corpus.joined, self.corpus.types)
        self.steps("binarise", settings, [data], partial(self._binarise, data))
        return data

    def _binarise(self, data: Path) -> None:
        """Run fairseq-preprocess in this process."""
        from fairseq import options
        from fairseq_cli import preprocess

        making = data.with_name(data.name + ".partial")
        for folder in (making, data):
            shutil.rmtree(folder, ignore_errors=True)
        words = ["-s", self.corpus.source, "-t", self.corpus.target, "--workers", str(self.workers)]
        words += ["--destdir", str(making), *(["--joined-dictionary"] if self.corpus.joined else [])]
        if self.corpus.types:
            words += ["--nwordssrc", str(self.corpus.types), "--nwordstgt", str(self.corpus.types)]
        segmented = {split: str(self.out / "bpe" / split) for split in self.corpus.splits()}
        words += ["--trainpref", segmented.pop("train"), "--validpref", segmented.pop("valid")]
        words += ["--testpref", ",".join(segmented.values())]
        with log_files_closed("fairseq_cli.preprocess"):
            preprocess.main(options.get_preprocessing_parser().parse_args(words))
        os.replace(making, data)

    def check_lengths(self) -> bool:
        """Print the mean lengths of the sources; False if they differ from the paper's."""
        found = list(lengths(self.corpus, self.out / "bpe"))
        for length in found:
            self.line.say(length.sentence())
        return all(abs(length.deviation) <= TOLERANCE for length in found)


@contextlib.contextmanager
def log_files_closed(name: str) -> Iterator[None]:
    """Remove and close the handlers that the body adds to a logger: fairseq-preprocess leaves one for its log file."""
    logger = logging.getLogger(name)
    before = logger.handlers[:]
    try:
        yield
    finally:
        for handler in [handler for handler in logger.handlers if handler not in before]:
            logger.removeHandler(handler)
            handler.close()


def with_pairs(bitext: Bitext) -> str:
    return f"{bitext.name} ({bitext.lines:,} pairs)" if bitext.lines else bitext.name


def describe(corpus: Corpus, base: str, line: Line) -> None:
    """Print what would be downloaded and done, for --dry-run."""
    line.say(f"from {base}:")
    for archive in corpus.archives:
        size = "size unknown" if archive.size is None else f"{archive.size / 1e6:.0f} MB"
        line.say(f"  {archive.path} ({size}{', ' + archive.digest.partition(':')[0] if archive.digest else ''})")
    for split, bitexts in corpus.splits().items():
        line.say(f"{split}: " + ", ".join(map(with_pairs, bitexts)))
    line.say(f"Moses tokens, training pairs of 1 to {corpus.longest} words and a ratio of {corpus.ratio:g} at most")
    dictionaries = "one dictionary" if corpus.joined else "two dictionaries"
    types = f" of {corpus.types} types" if corpus.types else ""
    line.say(f"{corpus.merges} joint BPE operations, {dictionaries}{types}")


def main(corpora: Sequence[Corpus], home: Path, argv: Optional[Sequence[str]] = None) -> int:
    """The command of the recipe in the folder `home`.  The first corpus is the default."""
    pairs = {corpus.pair: corpus for corpus in corpora}
    parser = argparse.ArgumentParser(description=f"Prepare {corpora[0].name} for fairseq.")
    parser.add_argument("--pair", choices=pairs, default=corpora[0].pair, help=f"languages ({corpora[0].pair})")
    parser.add_argument("--out", type=Path, help=f"output folder ({home}/data/PAIR)")
    parser.add_argument("--base-url", help=f"a mirror, file://... or a folder ({corpora[0].base_url})")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="number of processes (one per core)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be downloaded and done")
    args = parser.parse_args(argv)
    corpus = pairs[args.pair]
    base, out, line = args.base_url or corpus.base_url, args.out or home / "data" / corpus.pair, Line(sys.stdout)

    def body() -> int:
        require(args.workers >= 1, "workers", args.workers, "must be at least 1")
        if args.dry_run:
            describe(corpus, base, line)
            return 0
        with alone(out):
            preparation = Preparation(corpus, out, base, args.workers, line)
            line.say(f"fairseq-train's data: {preparation.run()}")
            return 0 if preparation.check_lengths() else 3

    return exit_code("prepare", body)
