"""Names, colours and markers of systems in all pictures: one of each per mechanism."""

import re
from typing import Dict, Iterable, Optional, Tuple

# The colour-blind safe colours of Okabe and Ito, and four of Tol's that go with them
BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
INDIGO, WINE, OLIVE, GREY = "#332288", "#882255", "#999933", "#888888"

# Markers distinguish systems in print.  The colours of the mechanisms are not used for other systems.
FAMILIES = {
    "milk": (BLUE, "o"),
    "waitk": (ORANGE, "s"),
    "monotonic": (GREEN, "^"),
    "mocha": (PINK, "D"),
    "soft": (AMBER, "v"),
}
_COLOURS, _MARKERS = (SKY, BLACK, WINE, OLIVE, INDIGO, GREY), "PXp<>dh*8^osv"  # of the others: 6 and 13, coprime

# All are different, and the first nine have markers that no mechanism has
OTHERS: Tuple[Tuple[str, str], ...] = tuple(
    (_COLOURS[n % len(_COLOURS)], _MARKERS[n % len(_MARKERS)]) for n in range(len(_COLOURS) * len(_MARKERS))
)

NAMES = {"milk": "MILk", "mocha": "MoChA", "waitk": "wait-k", "wait_k": "wait-k"}  # as the paper writes them
_MECHANISM = re.compile(r"(^|/)(milk|mocha|waitk|wait_k)(?=$|[^A-Za-z0-9])")


def display_name(name: str) -> str:
    """The name of a system with its mechanism as the paper writes it: 'milk λ=0.1' becomes 'MILk λ=0.1'."""
    return _MECHANISM.sub(lambda found: found[1] + NAMES[found[2]], name)


def style_of(names: Iterable[str]) -> Dict[str, Tuple[str, str]]:
    """Colour and marker by name.  Those of a mechanism are the same in every picture and not used for other names.

    Spellings of one name share them: 'waitk' and 'wait-k (paper)'.  Of several systems of one mechanism, the first gets
    them.
    """
    names = list(names)
    taken: Dict[str, Tuple[str, str]] = {}
    for key in sorted(dict.fromkeys(map(_plain, names)), key=lambda key: _family(key) is None):
        family = _family(key)
        own = [] if family is None else [FAMILIES[family]]
        free = [look for look in (*own, *OTHERS) if look not in taken.values()]
        taken[key] = free[0] if free else OTHERS[len(taken) % len(OTHERS)]
    return {name: taken[_plain(name)] for name in names}


def _plain(name: str) -> str:
    return re.sub(r" \(paper\)$|[-_ ]", "", name).casefold()


def _family(plain: str) -> Optional[str]:
    """The mechanism of names like 'milk', 'old/milk' (in a table called old) and 'wait4'."""
    system = re.sub(r"^wait(?=\d)", "waitk", plain.rpartition("/")[2])
    return next((family for family in FAMILIES if system.startswith(family)), None)
