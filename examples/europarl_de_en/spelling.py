"""Rules that convert old German spelling to that of 1998: "ss" instead of "ß" after a short vowel.

The debates before autumn 2000 have the old spelling (daß, muß, Ausschuß), all later ones the new one.  The spelling
does not show whether a vowel is short, so each rule gives a vowel and its context.  Other words are not changed (Maß,
groß, Straße, Fuß, heißt), nor are names (Gräßle, Klaß, Deß, Keßler).
"""

from typing import Tuple

Rule = Tuple[str, str]  # a regular expression and its replacement, as in re.sub

SHORT_VOWELS = (  # the letters before ß, and those that may not follow it
    (r"(?<![eE])[iI]", ""),  # bißchen, gewiß, Kompromiß, Mißbrauch; not weiß
    (r"(?<![iI])(?<!\bD)(?<!\bK)[eE]", ""),  # Prozeß, Kongreß, meßbar; not hieß
    (r"(?<![aeäAEÄfFbB])(?<![gG]r)(?<!R)[uU]", r"(?!e\b|en\b)"),  # muß, bewußt, Schluß; not außen, Fuß, Gruß, Muße
    (r"[rR]u", "(?=lan|län)"),  # Rußland; not Ruß
    (r"(?:\b[dD]|(?<!\bK)[lL]|[hHnNfF]|[lL]s|[kK]r|(?<![sS])[pP])a", "(?!e)"),  # daß, Anlaß, gefaßt; not Maß, Spaß
    (r"(?:[lLhHwWpP]|[gG]r(?=äßlich))ä", "(?!e)"),  # läßt, häßlich, gräßlich; not gemäß, Gefäß
    (r"(?:[mMwWkKnN]|[sS]ch)ü", "(?!e|ig)"),  # müßte, wüßte, genüßlich; not grüßen, süß, müßig
    (r"(?:[sS]chl|[gG]en|\bg|\bf|[eE]rg|\b[rR])o", "(?!e)"),  # beschloß, genoß, Roß; not groß, Stoß, bloß
)
NEW_GERMAN: Tuple[Rule, ...] = tuple((f"({before})ß{after}", r"\1ss") for before, after in SHORT_VOWELS)
