"""The checks of `fairseq-milk check` for an exported folder."""

import random
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from ..checks.finding import FAIL, OK, SKIP, WARN, Finding
from . import manifest as files
from .exported import load_exported
from .translator import Translator

SENTENCES, LENGTH = 8, 12  # sentences of random words of the dictionary
LOSS = 1.0  # largest loss of BLEU by int8


def check_folder(folder: str, data: Optional[str]) -> Iterator[Tuple[str, Finding]]:
    """The findings for a folder by name; UserError if it cannot be loaded.  data: directory with its dictionaries."""
    manifest, translator = files.read_manifest(Path(folder)), load_exported(folder)
    sentence = f"{len(manifest.files)} files with their SHA-256, {manifest.description}"
    figures = {"files": sorted(manifest.files), "made_with": manifest.made_with}
    yield "files", Finding(OK, sentence, figures)
    yield "comparison", check_comparison(manifest)
    yield "sessions", check_sessions(translator)
    yield "dictionary", check_dictionaries(translator, data)


def check_comparison(manifest: files.Manifest) -> Finding:
    """The result of the comparison with the checkpoint that the export has made."""
    figures = manifest.comparison
    if not figures:
        return Finding(WARN, "the model was never compared with its checkpoint")
    sentence = f"{figures.get('different')} of {figures.get('sentences')} sentences differed from the checkpoint"
    bleu, before = figures.get("bleu"), figures.get("checkpoint_bleu")
    if isinstance(bleu, (int, float)) and isinstance(before, (int, float)):
        sentence += f", BLEU {bleu:.2f} and {before:.2f}"
        if bleu < before - LOSS:
            return Finding(WARN, sentence, figures)
    failed = manifest.weights == "float32" and figures.get("different") != 0
    return Finding(FAIL if failed else OK, sentence, figures)


def check_sessions(translator: Translator) -> Finding:
    """Sentences that are translated word by word in turns give the same result as alone."""
    draw, words = random.Random(1), translator.source_symbols
    sentences = [[draw.choice(words) for _ in range(draw.randint(1, LENGTH))] for _ in range(SENTENCES)]
    alone = [translator.translate(" ".join(sentence)) for sentence in sentences]
    sessions = [translator.session() for _ in sentences]
    for position in range(LENGTH):
        for sentence, session in zip(sentences, sessions):
            session.push(" ".join(sentence[position : position + 1]))
    different = 0
    for one, session in zip(alone, sessions):
        session.end()
        different += session.translation() != one
    figures = {"sentences": SENTENCES, "different": different}
    if different:
        return Finding(FAIL, f"{different} of {SENTENCES} sentences differ when they run at once", figures)
    return Finding(OK, f"{SENTENCES} sentences at once give what each gives alone", figures)


def check_dictionaries(translator: Translator, data: Optional[str]) -> Finding:
    """The dictionaries of both sides are those of the data."""
    if data is None:
        return Finding(SKIP, "no --data to compare the dictionaries with")
    from fairseq.data import Dictionary

    different: List[str] = []
    sides = zip(translator.languages, (translator.source_symbols, translator.target_symbols))
    for language, symbols in sides:
        path = Path(data) / f"dict.{language}.txt"
        if not path.is_file() or Dictionary.load(str(path)).symbols != symbols:
            different.append(str(path))
    if different:
        return Finding(FAIL, f"the model has other words than {' and '.join(different)}")
    return Finding(OK, f"both dictionaries are those of {data}")
