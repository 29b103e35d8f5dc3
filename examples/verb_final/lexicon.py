"""The words of the verb-final language, by class, each with its translation."""

import functools
import itertools
from dataclasses import dataclass
from typing import Dict, NamedTuple, Tuple

Word = Tuple[str, str]  # source, target
Words = Tuple[Word, ...]


class Slot(NamedTuple):
    """A place for one adjunct: an adverb, or a preposition that governs a noun phrase."""

    words: Words
    governs: bool
    probability: float


def words(text: str) -> Words:
    """Parse 'mann:man haus:house'; a word without a colon is its own translation."""
    pairs = (item.partition(":") for item in text.split())
    return tuple((source, target or source) for source, _, target in pairs)


@dataclass(frozen=True)
class Lexicon:
    """The words of each class. Adjectives, pronouns (then no matrix clauses) and slots may be empty."""

    determiners: Words
    adjectives: Words
    nouns: Words
    first_names: Words
    last_names: Words
    verbs: Words
    separable: Dict[str, Words]  # stem -> particle and the translation of both together
    conjunctions: Words
    pronouns: Words
    matrix_verbs: Words
    complementisers: Words
    slots: Tuple[Slot, ...]

    def __post_init__(self) -> None:
        required = [self.determiners, self.nouns, self.first_names, self.last_names, self.verbs, self.conjunctions]
        required += [self.matrix_verbs, self.complementisers]
        optional = [self.adjectives, self.pronouns, *(slot.words for slot in self.slots)]
        particles = list(self.separable.values())
        if not particles or any(len(members) < 2 for members in required + particles):
            raise ValueError("Every required class, and the particles of a stem, need at least two words.")
        if not all(slot.words for slot in self.slots):
            raise ValueError("A slot needs at least one word.")
        free = list(itertools.chain(*required, *optional))
        source = [s for s, _ in free] + [s for s, _ in self.joined] + list(self.separable) + ["s"]
        source += {s for members in particles for s, _ in members}
        target = [t for _, t in free] + [t for _, t in self.joined] + ["of"]
        target += {"the"} - {t for _, t in self.determiners}
        if len(set(source)) < len(source) or len(set(target)) < len(target):
            raise ValueError("A word belongs to one class and has a translation of its own.")

    @functools.cached_property
    def joined(self) -> Words:
        """The separable verbs in the form used at the end of a verb-final clause."""
        return tuple((particle + stem, verb) for stem, members in self.separable.items() for particle, verb in members)

    @classmethod
    def default(cls) -> "Lexicon":
        return cls(
            determiners=words("der:the ein:a dieser:this jeder:every"),
            adjectives=words(
                "alte:old junge:young kleine:small grosse:big rote:red blaue:blue neue:new stille:quiet"
                " reiche:rich arme:poor kluge:clever muede:tired fremde:foreign schoene:beautiful"
            ),
            nouns=words(
                "mann:man frau:woman kind:child hund:dog katze:cat pferd:horse vogel:bird arzt:doctor anwalt:lawyer"
                " lehrer:teacher bauer:farmer koch:cook nachbar:neighbour bruder:brother schwester:sister"
                " freund:friend buch:book brief:letter haus:house garten:garden tisch:table wagen:car"
                " plan antrag:request bild:picture"
            ),
            first_names=words("john mary peter anna paul laura"),
            last_names=words("smith miller jones baker clark wood"),
            verbs=words(
                "sieht:sees kennt:knows sucht:seeks findet:finds liebt:loves hasst:hates kauft:buys verkauft:sells"
                " malt:paints hoert:hears fragt:asks traegt:carries vergisst:forgets besucht:visits"
                " zeigt:shows holt:fetches"
            ),
            separable={
                "nimmt": words("an:accepts ab:removes auf:absorbs"),
                "gibt": words("auf:abandons ab:submits zurueck:returns"),
                "stellt": words("vor:introduces um:converts aus:exhibits"),
                "bringt": words("um:murders an:attaches zurueck:restores"),
                "zieht": words("an:attracts vor:prefers aus:extracts"),
                "ruft": words("an:calls auf:summons zurueck:recalls"),
            },
            conjunctions=words("weil:because wenn:if obwohl:although bevor:before"),
            pronouns=words("wir:we sie:they alle:all"),
            matrix_verbs=words("wissen:know sagen:say hoffen:hope glauben:believe"),
            complementisers=words("dass:that ob:whether"),
            slots=(
                Slot(words("heute:today gestern:yesterday morgen:tomorrow jetzt:now abends:nightly"), False, 0.4),
                Slot(words("oft:often immer:always selten:rarely manchmal:sometimes"), False, 0.3),
                Slot(words("gern:gladly schnell:quickly leise:softly langsam:slowly heimlich:secretly"), False, 0.3),
                Slot(words("mit:with ohne:without"), True, 0.2),
                Slot(words("neben:beside hinter:behind gegenueber:opposite"), True, 0.2),
            ),
        )

    @classmethod
    def miniature(cls) -> "Lexicon":
        """Small enough to enumerate: 79,200 sentences; vary it with `dataclasses.replace`."""
        return cls(
            determiners=words("der:the ein:a"),
            adjectives=words("alte:old"),
            nouns=words("mann:man hund:dog"),
            first_names=words("john mary"),
            last_names=words("smith wood"),
            verbs=words("sieht:sees kennt:knows"),
            separable={"nimmt": words("an:accepts ab:removes"), "ruft": words("an:calls auf:summons")},
            conjunctions=words("weil:because wenn:if"),
            pronouns=words("wir:we sie:they"),
            matrix_verbs=words("wissen:know sagen:say"),
            complementisers=words("dass:that ob:whether"),
            slots=(Slot(words("heute:today gestern:yesterday"), False, 0.5),),
        )
