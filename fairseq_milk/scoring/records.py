"""The record of one translated sentence with its schedule.

Everything that scores, stores or draws a schedule starts from a `Record`.
"""

from sys import float_info
from typing import Any, Dict, Iterable, NamedTuple, Optional, Sequence

from ..text.subwords import find_marker


class Record(NamedTuple):
    """One sentence as the model saw it: subwords, without EOS.

    delays: g_i, the number of source tokens read when y_i was written, one per token of `hypothesis` and one more for
    EOS if EOS was written.  The source EOS counts as a token: g_i is in 0 .. len(source) + 1.
    attention: optional, one row per delay.  text, reference_text: optional, detokenised, for BLEU.
    """

    id: int
    source: Sequence[str]
    hypothesis: Sequence[str]
    delays: Sequence[int]
    reference: Optional[Sequence[str]] = None
    attention: Optional[Sequence[Sequence[float]]] = None
    text: Optional[str] = None
    reference_text: Optional[str] = None

    @property
    def eos_written(self) -> bool:
        """False if the hypothesis was cut off before EOS."""
        return len(self.delays) == len(self.hypothesis) + 1

    def check(self) -> "Record":
        """Return the record; ValueError if the numbers of delays, tokens and rows of attention do not match."""
        if len(self.delays) - len(self.hypothesis) not in (0, 1):
            raise ValueError(
                f"sentence {self.id} has {len(self.delays)} delays for a hypothesis of {len(self.hypothesis)} tokens "
                "(expected one per token and one for EOS)"
            )
        if self.delays and not 0 <= min(self.delays) <= max(self.delays) <= len(self.source) + 1:
            raise ValueError(
                f"sentence {self.id} has delays from {min(self.delays)} to {max(self.delays)}, but its source has "
                f"{len(self.source)} tokens and EOS"
            )
        if self.attention is not None and len(self.attention) != len(self.delays):
            raise ValueError(
                f"sentence {self.id} has {len(self.attention)} rows of attention for {len(self.delays)} delays"
            )
        return self

    def to_dict(self) -> Dict[str, Any]:
        """The fields of a line of generate-<subset>.jsonl, without optional fields that are None."""
        optional = {"attention", "text", "reference_text"}
        return {key: value for key, value in self._asdict().items() if value is not None or key not in optional}

    @classmethod
    def from_dict(cls, fields: Dict[str, Any]) -> "Record":
        """The inverse of `to_dict`; other keys (the scores) are ignored.  ValueError if a field is missing or wrong."""
        for key in ("id", "source", "hypothesis", "delays"):
            if key not in fields:
                raise ValueError(f"no field '{key}'")
        record = cls(**{key: fields[key] for key in cls._fields if key in fields})
        if not _is_int(record.id):
            raise ValueError(f"'id' must be a whole number, got {record.id!r}")
        for key in ("source", "hypothesis", "reference"):
            tokens = fields.get(key)
            if tokens is None and key == "reference":
                continue
            if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
                raise ValueError(f"'{key}' must be a list of strings")
        if not isinstance(record.delays, list) or not all(map(_is_int, record.delays)):
            raise ValueError("'delays' must be a list of whole numbers")
        for key in ("text", "reference_text"):
            if not isinstance(fields.get(key), (str, type(None))):
                raise ValueError(f"'{key}' must be a string")
        if record.attention is not None and not _is_matrix(record.attention):
            raise ValueError("'attention' must be a list of lists of finite numbers")
        return record.check()


def check_same_sentences(first: Sequence[Record], second: Sequence[Record], names: Sequence[str]) -> None:
    """Raise a ValueError unless two generations, in the order of their ids, are of the same sentences.

    names: of the two, for the error.  Without delays the source may be in words instead of subwords.
    """
    different = f"{names[0]} and {names[1]} translate different sentences"
    if len(first) != len(second):
        raise ValueError(f"{different}: {names[0]} has {len(first)} sentences, {names[1]} has {len(second)}")
    for a, b in zip(first, second):
        same_kind = bool(a.delays) == bool(b.delays)
        if a.id != b.id or (same_kind and list(a.source) != list(b.source)):
            raise ValueError(f"{different} (see sentence {a.id})")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= float_info.max


def _is_matrix(rows: object) -> bool:
    return isinstance(rows, list) and all(isinstance(row, list) and all(map(_is_finite, row)) for row in rows)


class Markers(NamedTuple):
    """The subword marker of each side: `BPE`, `SENTENCEPIECE`, or None if every token is a word."""

    source: Optional[str] = None
    target: Optional[str] = None


def find_markers(records: Iterable[Record]) -> Markers:
    """The markers in the records of a corpus (a single short sentence may have none)."""
    records = list(records)
    target = (tokens for r in records for tokens in (r.hypothesis, r.reference or ()))
    return Markers(find_marker(r.source for r in records), find_marker(target))
