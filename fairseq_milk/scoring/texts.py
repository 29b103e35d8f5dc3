"""The texts that BLEU and chrF compare, and their form: with subwords, tokenised, or detokenised."""

from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence

from ..console.errors import UserError
from ..text.subwords import find_marker, join_words
from .records import Record, find_markers

SUBWORDS, TOKENISED, PLAIN = "text with subwords left in", "tokenised text", "detokenised text"  # as messages say it
ESCAPES = ("&apos;", "&quot;", "&amp;", "&#91;", "&#93;", "&lt;", "&gt;", " @-@ ")  # written by the Moses tokeniser


class Texts(NamedTuple):
    """Hypotheses and references in the order of the records.  references: None if one is missing."""

    hypotheses: List[str]
    references: Optional[List[str]] = None

    def warning(self) -> Optional[str]:
        """A warning, in one sentence, if BLEU is not computed on detokenised text; else None."""
        form = form_of(self.hypotheses)
        references = form if self.references is None else form_of(self.references)
        if form != references:
            return f"the hypotheses are {form} but the references {references}: BLEU is too low"
        if form == SUBWORDS:
            return "BLEU is of subwords: decode with --remove-bpe"
        if form == TOKENISED:
            return "BLEU is of tokenised text (hypotheses end in ' .'): the file has no detokenised text"
        return None


def texts_of(records: Sequence[Record]) -> Texts:
    """The texts of a generation: the detokenised text of each record, or its joined subwords if there is none."""
    marker = find_markers(records).target
    hypotheses = [join_words(r.hypothesis, marker) if r.text is None else r.text for r in records]
    references: List[str] = []
    for r in records:
        if r.reference_text is not None:
            references.append(r.reference_text)
        elif r.reference is not None:
            references.append(join_words(r.reference, marker))
    return Texts(hypotheses, references if len(references) == len(hypotheses) else None)


def read_references(path: Path) -> List[str]:
    """The published text of a test set, one line per sentence."""
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def published_references(records: Sequence[Record], path: Path) -> List[str]:
    """The line of the file for each record, selected by its id.  UserError if there is no such line."""
    lines = read_references(path)
    for record in records:
        if not 0 <= record.id < len(lines):
            raise UserError(f"{path} has no line {record.id + 1}: it is not the text of what was decoded")
    return [lines[record.id] for record in records]


def form_of(texts: Sequence[str]) -> str:
    """The form of the texts: `SUBWORDS`, `TOKENISED` if more than a third of them show it, or `PLAIN`."""
    if find_marker(text.split() for text in texts) is not None:
        return SUBWORDS
    tokenised = sum(text.endswith(" .") or any(escape in text for escape in ESCAPES) for text in texts)
    return TOKENISED if 3 * tokenised > len(texts) else PLAIN


def check_comparable(first: Texts, second: Texts, names: Sequence[str]) -> Optional[str]:
    """A warning if the hypotheses of two systems have different forms, else None.

    ValueError if only one of them has subwords: their BLEU scores cannot be compared.
    """
    forms = form_of(first.hypotheses), form_of(second.hypotheses)
    if forms[0] == forms[1]:
        return None
    difference = f"{names[0]} is {forms[0]}, {names[1]} is {forms[1]}"
    if SUBWORDS in forms:
        raise ValueError(f"{difference}: these cannot be compared, decode both with --remove-bpe")
    return f"{difference}: this alone makes their BLEU scores differ"
