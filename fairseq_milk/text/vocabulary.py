"""The vocabulary of one language, numbered like fairseq's `Dictionary`."""

from typing import Dict, List, Sequence

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # the first four symbols of every fairseq dictionary


class Vocabulary:
    """symbols: all symbols, beginning with the four special ones.

    >>> words = Vocabulary([*SPECIAL, "Haus", "Hund"])
    >>> words.index("Hund"), words.index("Katze"), words[4]
    (5, 3, 'Haus')
    """

    nspecial = len(SPECIAL)

    def __init__(self, symbols: Sequence[str]) -> None:
        if tuple(symbols[: self.nspecial]) != SPECIAL:
            raise ValueError(f"a vocabulary begins with {' '.join(SPECIAL)}")
        self.symbols: List[str] = list(symbols)
        self.indices: Dict[str, int] = {symbol: index for index, symbol in enumerate(self.symbols)}

    def __len__(self) -> int:
        return len(self.symbols)

    def __getitem__(self, index: int) -> str:
        return self.symbols[index] if 0 <= index < len(self.symbols) else SPECIAL[3]

    def index(self, symbol: str) -> int:
        return self.indices.get(symbol, self.unk())

    def pad(self) -> int:
        return 1

    def eos(self) -> int:
        return 2

    def unk(self) -> int:
        return 3
