"""Speeches held in German, from the XML files of Multilingual-Parallel-Direct-Europarl.

A sitting has one file per language.  A speech is an <intervention>, with the same id in all files; a paragraph is a <p>
whose attribute `sl` is the spoken language.  Since 2009 the `sl` of text that was not translated is the language of the
file, so the English file must be used to find what was said in German.
"""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

from fairseq_milk.console.errors import UserError

XML = Path("proceedings") / "xml"
NOTE = re.compile(r"\s*\((?:[^()]|\([^()]*\))*\)\s*\.?\s*")  # (Beifall), (The sitting was closed at 8 p.m.)


class Speech(NamedTuple):
    """The paragraphs of a speech, and of its translation."""

    source: Tuple[str, ...]
    target: Tuple[str, ...]

    def parts(self) -> List[Tuple[str, str]]:
        """Pairs of paragraphs if both sides have the same number, otherwise the whole speech as one pair."""
        if len(self.source) == len(self.target):
            return list(zip(self.source, self.target))
        return [(" ".join(self.source), " ".join(self.target))]


def sittings(clone: Path) -> List[str]:
    """The dates, like 19990720, of all sittings that the clone has in both languages."""
    days = [{path.name[:8] for path in (clone / XML / language).glob("*.xml")} for language in ("de", "en")]
    if not days[0] & days[1]:
        raise UserError(f"{clone} has no sittings under {XML}/de and {XML}/en: is it a clone of the repository?")
    return sorted(days[0] & days[1])


def speeches(clone: Path, day: str) -> Iterator[Speech]:
    """The speeches of one sitting that were held in German, in order."""
    german, english = (interventions(clone / XML / name / f"{day}.{name.upper()}.xml") for name in ("de", "en"))
    for number, target in english.items():
        source = german.get(number)
        if source is not None and spoken_in_german(target) and spoken_in_german(source):
            yield Speech(paragraphs(source), paragraphs(target))


def interventions(path: Path) -> Dict[str, ElementTree.Element]:
    return {element.get("id", ""): element for element in ElementTree.parse(path).iter("intervention")}


def spoken_in_german(intervention: ElementTree.Element) -> bool:
    return {paragraph.get("sl") for paragraph in intervention.iter("p")} == {"de"}


def paragraphs(intervention: ElementTree.Element) -> Tuple[str, ...]:
    """The text of the paragraphs with normalised spaces, without paragraphs that are notes of the clerks."""
    texts = (" ".join("".join(element.itertext()).split()).replace(" ,", ",") for element in intervention.iter("p"))
    return tuple(text for text in texts if text and not NOTE.fullmatch(text))
