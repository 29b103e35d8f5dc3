"""Finds the late words of a German sentence: clause-final verbs and the particles of separable verbs.

Tags are those of the Stuttgart-Tübingen tagset as HanTa (Wartena 2019) gives them: VV(FIN), VA(INF), PTKVZ, ...
"""

from functools import cache
from typing import Any, List, Sequence, Set

from fairseq_milk.console.errors import UserError

PARTICLE = "PTKVZ"  # lehnt ... ab
PUNCTUATION, CONJUNCTION = "$", "KON"  # end a clause; und, oder and aber can also stand within one
WITHIN_A_CLUSTER = ("V", "PTKZU")  # hätte diskutiert werden sollen, zu diskutieren ist
SHORTEST = 2  # words in the clause before its verb: "Er kommt." has no late verb


def late_words(tags: Sequence[str]) -> Set[int]:
    """Positions of the clause-final verbs, with the verbs just before them, and of all particles."""
    late, begin = {i for i, tag in enumerate(tags) if tag == PARTICLE}, 0
    for end, tag in enumerate([*tags, PUNCTUATION]):
        if tag.startswith((PUNCTUATION, CONJUNCTION)):
            first = end
            while first > begin and tags[first - 1].startswith(WITHIN_A_CLUSTER):
                first -= 1
            if first - begin >= SHORTEST:
                late.update(range(first, end))
        if tag.startswith(PUNCTUATION):
            begin = end + 1
    return late


@cache
def tagger() -> Any:
    try:
        from HanTa.HanoverTagger import HanoverTagger
    except ImportError:
        raise UserError("parts of speech need `pip install HanTa`") from None
    return HanoverTagger("morphmodel_ger.pgz")


def tag(words: Sequence[str]) -> List[str]:
    """The part of speech of each word."""
    return [part for _, _, part in tagger().tag_sent(list(words))] if words else []
