"""Validates the values of a sweep file, with errors that name the file and the key."""

import itertools
import math
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..console.errors import UserError

Value = Union[str, int, float, bool]
Options = Mapping[str, Value]

LONGEST = 200  # characters in the name of a folder; most file systems allow 255
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=,-]*")  # safe as a folder name, in a shell and in a pattern
OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")  # what argparse takes as a number and not as an option
MOST_POINTS = 10_000  # in a grid


def as_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def suggestion(word: str, known: Any) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f", did you mean '{close[0]}'?" if close else f" (there are {', '.join(known)})"


class Location(NamedTuple):
    """A key in the file.  Its methods check a value found there and return it in the required type."""

    file: Path
    key: str

    def at(self, key: Any) -> "Location":
        return Location(self.file, f"{self.key}.{key}" if self.key else str(key))

    def wrong(self, problem: str) -> UserError:
        return UserError(f"{self.file}: {self.key}: {problem}" if self.key else f"{self.file}: {problem}")

    def mapping(self, value: Any, keys: Optional[Sequence[str]] = None) -> Dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(f"'key: value' lines are expected here, got {_kind(value)}")
        for key in value:
            if not isinstance(key, str):
                raise self.wrong(f"the key {key!r} should be text: put it in quotes")
            if keys is not None and key not in keys:
                raise self.wrong(f"unknown key '{key}'{suggestion(key, keys)}")
        return value

    def text(self, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self.wrong(f"text is expected here, got {_kind(value)}")
        return value

    def name(self, value: Any) -> str:
        """A name for a folder or file that stays inside the output folder."""
        name = self.text(value)
        if not NAME.fullmatch(name) or ".." in name or len(name) > LONGEST:
            shown = repr(name[:60])
            raise self.wrong(f"{shown} cannot be a name: it is made of letters, digits and _ . + - = , without '..'")
        return name

    def data(self, value: Any) -> Path:
        folder = self.file.parent / Path(self.text(value)).expanduser()
        if not folder.is_dir():
            raise self.wrong(f"there is no folder {folder}: run fairseq-preprocess --destdir {folder} first")
        return folder.resolve()

    def seeds(self, value: Any) -> Tuple[int, ...]:
        if not isinstance(value, list) or not value:
            raise self.wrong(f"a list of whole numbers is expected here, got {_kind(value)}")
        for seed in value:
            if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**31:
                raise self.wrong(f"a seed is a whole number from 0 to 2147483647, got {_kind(seed)}")
        if len(set(value)) < len(value):
            raise self.wrong("a seed appears twice")
        if len(value) > MOST_POINTS:
            raise self.wrong(f"there are {len(value)} seeds, at most {MOST_POINTS} are possible")
        return tuple(value)

    def options(self, value: Any, taken: Mapping[str, str]) -> Dict[str, Value]:
        found = self.mapping({} if value is None else value)
        for name, option in found.items():
            self._option(name, taken)
            self.at(name)._value(option)
        return found

    def lines(self, value: Any, taken: Mapping[str, str]) -> Dict[str, Value]:
        """Options that are written one per line."""
        for name, option in self.mapping({} if value is None else value).items():
            if isinstance(option, list) or not as_text(option).isprintable():
                raise self.at(name).wrong(f"one line is expected here, got {_kind(option)}")
        return self.options(value, taken)

    def files(self, value: Any) -> Dict[str, Path]:
        found = {name: self.file.parent / Path(self.at(name).text(path)) for name, path in self.mapping(value).items()}
        for name, path in found.items():
            if not path.is_file():
                raise self.at(name).wrong(f"there is no file {path}")
        return found

    def grid(self, value: Any, taken: Mapping[str, str], own: Options) -> List[Dict[str, Value]]:
        """The points of the grid; a single point without options if there is no grid.

        taken: options that cannot be given, with the reason; own: options that the system gives at every point.
        """
        found = self.mapping(value)
        for name, values in found.items():
            place = self.at(name)
            self._option(name, taken)
            if name in own:
                raise place.wrong("the system gives the option at every point too")
            if not isinstance(values, list) or not values:
                raise place.wrong(f"a list of values is expected here, got {_kind(values)}")
            for option in values:
                place.name(f"{name}={as_text(place._value(option))}")
        points = math.prod(map(len, found.values()))
        if points > MOST_POINTS:
            raise self.wrong(f"the grid has {points} points, at most {MOST_POINTS} are possible")
        return [dict(zip(found, point)) for point in itertools.product(*found.values())]

    def _option(self, name: str, taken: Mapping[str, str]) -> None:
        if name in taken:
            raise self.wrong(f"'{name}' cannot be given: {taken[name]}")
        if name.startswith("-"):
            raise self.wrong(f"write '{name.lstrip('-')}' for the option {name}")
        if not OPTION.fullmatch(name):
            raise self.wrong(f"{name[:60]!r} is not an option")

    def _value(self, value: Any) -> Value:
        if isinstance(value, list):
            raise self.wrong("a list of values belongs under 'grid'; a list for fairseq is one text, '0.9,0.98'")
        if not isinstance(value, (str, int, float)):  # bool is an int
            raise self.wrong(f"a number, a text, true or false is expected here, got {_kind(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(f"a finite number is expected here, got {value}")
        if isinstance(value, str) and (not value or "\0" in value):
            raise self.wrong(f"a text that is not empty is expected here, got {value[:60]!r}")
        if as_text(value).startswith("-") and not NEGATIVE.fullmatch(as_text(value)):
            raise self.wrong(f"{as_text(value)[:60]!r} cannot be a value: fairseq would take it for an option")
        return value


def _kind(value: Any) -> str:
    """A description of a YAML value for error messages."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, dict):
        return "'key: value' lines"
    return "a list" if isinstance(value, list) else repr(value)[:60]
