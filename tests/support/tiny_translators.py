"""A tiny corpus with BPE, punctuation, an empty line and an unknown word, and tiny models trained on it."""

import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import torch
from fairseq.data import Dictionary
from subword_nmt import apply_bpe, learn_bpe

from tests.support.fairseq_commands import RNMT, decoding, make_corpus, run, training

WORDS = {
    "de": "der hund die katze lief schnell heim und sah ein großes haus am alten bahnhof".split(),
    "en": "the dog a cat ran quickly home and saw one large house at old station".split(),
}
SENTENCES = 37  # not a multiple of eight
ATTENTIONS = ("milk", "soft", "waitk")


class Corpus:
    """folder/raw: text with punctuation; folder/bpe: tokenised and split; folder/bin: binary; folder/bin/codes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.codes = self.bin / "codes"
        self._write_text()
        self._split_words()
        self._binarise()

    def lines(self, split: str, language: str, kind: str = "bpe") -> List[str]:
        return (self.folder / f"{kind}.{split}.{language}").read_text(encoding="utf-8").split("\n")[:-1]

    def _write_text(self) -> None:
        self.bin.mkdir(parents=True)
        draw = random.Random(1)
        for split in ("train", "valid", "test"):
            lengths = [draw.randint(1, 7) for _ in range(SENTENCES)]
            for language, words in WORDS.items():
                lines = [" ".join(draw.choice(words) for _ in range(n)) + " ." for n in lengths]
                if split == "test":
                    lines[3] = "" if language == "de" else "."  # an empty line
                    lines[5] = " , ".join(words[:3]) + " € ."  # an unknown word
                self._save("tok", split, language, lines)

    def _split_words(self) -> None:
        text = [line for language in WORDS for line in self.lines("train", language, "tok")]
        with open(self.codes, "w", encoding="utf-8") as codes:
            learn_bpe.learn_bpe(text, codes, num_symbols=25)
        with open(self.codes, encoding="utf-8") as codes:
            bpe = apply_bpe.BPE(codes)
        for split in ("train", "valid", "test"):
            for language in WORDS:
                lines = [bpe.process_line(line) for line in self.lines(split, language, "tok")]
                self._save("bpe", split, language, lines)

    def _save(self, kind: str, split: str, language: str, lines: List[str]) -> None:
        (self.folder / f"{kind}.{split}.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def _binarise(self) -> None:
        prefixes = [f"--{split}pref={self.folder / 'bpe'}.{split}" for split in ("train", "valid", "test")]
        run("fairseq-preprocess", "-s", "de", "-t", "en", *prefixes, "--destdir", self.bin, "--workers", 1)


class Translators:
    """Checkpoints on the corpus, one per attention and family, after four updates, with heads that read and write."""

    def __init__(self, folder: Path) -> None:
        self.corpus = Corpus(folder)
        self.checkpoints: Dict[Path, Path] = {}

    def checkpoint(self, attention: str, arch: str = RNMT) -> Path:
        save_dir = self.corpus.folder / arch / attention
        if save_dir not in self.checkpoints:
            more = ["--attention", attention, "--energy-bias", 0.2, "--wait-k", 2, "--disable-validation"]
            run("fairseq-train", *training(self.corpus.bin, save_dir, *more, max_update=4, arch=arch))
            self.checkpoints[save_dir] = save_dir / "checkpoint_last.pt"
        return self.checkpoints[save_dir]

    def decoding(self, attention: str, *more: Any) -> List[str]:
        return decoding(self.corpus.bin, self.checkpoint(attention), "--max-len-b", 10, *more)


class Plain(NamedTuple):
    """A word-for-word language without subwords, and a wait-2 model of it that never predicts EOS."""

    folder: Path
    checkpoint: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def lines(self, split: str, language: str) -> List[str]:
        return (self.folder / f"{split}.{language}").read_text().splitlines()


def make_plain(folder: Path) -> Plain:
    data = make_corpus(folder)
    more = ["--attention", "waitk", "--wait-k", 2, "--disable-validation"]
    run("fairseq-train", *training(data, folder / "model", *more, max_update=4))
    checkpoint = folder / "model" / "checkpoint_last.pt"
    state = torch.load(checkpoint)
    state["model"]["decoder.output.bias"][Dictionary().eos()] = -1e4
    torch.save(state, checkpoint)
    return Plain(folder, checkpoint)
