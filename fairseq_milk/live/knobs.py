"""The knobs of a session: options that change the schedule of a trained model, with their limits."""

from argparse import ArgumentParser, Namespace
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Union

from ..console.errors import LARGEST, UserError
from ..generation.schedule import DecodingOptions

Value = Union[bool, int, float]
DEFAULTS = DecodingOptions()


class Knob(NamedTuple):
    """kind: the type of its value.  low, high: the range of a slider; a value above `high` is allowed."""

    name: str
    kind: type
    default: Value
    low: float
    high: float
    help: str

    def check(self, value: Any, called: Optional[str] = None) -> Value:
        """The value in the type of the knob; UserError if it is invalid."""
        called = called or self.name
        if self.kind is bool:
            if not isinstance(value, bool):
                raise UserError(f"{called} must be true or false, got {value!r}")
            return value
        whole = isinstance(value, int) or (self.kind is int and isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not (whole or (self.kind is float and isinstance(value, float))):
            raise UserError(f"{called} must be a {'whole ' if self.kind is int else ''}number, got {value!r}")
        if self.name == "threshold":
            if not 0 < value < 1:
                raise UserError(f"{called} must lie between 0 and 1, got {value}")
        elif not value >= self.low:
            raise UserError(f"{called} must be at least {self.low:g}, got {value}")
        elif value > LARGEST:
            raise UserError(f"{called} must be at most {LARGEST}, got {value}")
        result: Value = self.kind(value)
        return result


THRESHOLD = Knob("threshold", float, 0.5, 0.05, 0.95, "probability above which the learned head stops (writes)")
K = Knob("k", int, 1, 1, 20, "source tokens that wait-k reads first")
SHARED: Tuple[Knob, ...] = (
    Knob("min_wait", int, DEFAULTS.min_wait, 1, 20, "source tokens to read before the first target token"),
    Knob("max_writes", int, 0, 0, 10, "target tokens in a row while there is something to read; 0: any number"),
    Knob("early_eos", bool, True, 0, 1, "whether the translation may end before the whole source has been read"),
    Knob("max_len_a", float, DEFAULTS.max_len_a, 0, 5, "at most ax + b target tokens for x source tokens read: a"),
    Knob("max_len_b", int, DEFAULTS.max_len_b, 0, 400, "at most ax + b target tokens for x source tokens read: b"),
)


def knobs_of(learned: bool, k: Optional[int]) -> Dict[str, Knob]:
    """The knobs of a mechanism.  learned: whether it has a learned head.  k: of wait-k, else None."""
    own = ([THRESHOLD] if learned else []) + ([] if k is None else [K._replace(default=k)])
    return {knob.name: knob for knob in (*own, *SHARED)}


class Settings(NamedTuple):
    """The values of all knobs of a session.  threshold, k: None if the mechanism has no such knob."""

    options: DecodingOptions
    threshold: Optional[float] = None
    k: Optional[int] = None


def settings(knobs: Mapping[str, Knob], changes: Mapping[str, Any]) -> Settings:
    """The defaults with these changes.  UserError for an unknown knob or a value out of range."""
    for name in changes:
        if name not in knobs:
            raise UserError(f"this model has no knob '{name}': it has {', '.join(knobs)}")
    values: Dict[str, Any] = {name: knob.default for name, knob in knobs.items()}
    values.update({name: knobs[name].check(value) for name, value in changes.items()})
    threshold, k = values.pop("threshold", None), values.pop("k", None)
    return Settings(DecodingOptions(**values), threshold, k)


# ---- on the command line, under the names that fairseq-generate has --------------------------------------------------

OPTIONS = {"threshold": "--head-threshold", "k": "--decode-k", "max_writes": "--max-consecutive-writes"}
MODELS = {"threshold": "a learned head", "k": "the schedule wait-k"}


def add_knob_arguments(parser: ArgumentParser) -> None:
    """Add the knobs as options; the default of each is None."""
    for knob in (THRESHOLD, K, *SHARED):
        if knob.kind is bool:
            help_ = "read on when EOS would be written before the whole source has been read"
            parser.add_argument("--no-early-eos", action="store_true", help=help_)
        else:
            default = "its own" if knob is K else knob.default
            parser.add_argument(_option(knob), type=knob.kind, metavar="N", help=f"{knob.help} ({default})")


def knob_arguments(args: Namespace) -> Dict[str, Value]:
    """The checked values of the knobs that were given."""
    given: Dict[str, Value] = {"early_eos": False} if args.no_early_eos else {}
    for knob in (THRESHOLD, K, *SHARED):
        option = _option(knob)
        value = getattr(args, option[2:].replace("-", "_"), None)
        if value is not None:
            given[knob.name] = knob.check(value, option)
    return given


def refuse_other_knobs(given: Mapping[str, Value], knobs: Mapping[str, Knob]) -> None:
    """Raise a UserError for a knob that the mechanism does not have."""
    for name in given:
        if name not in knobs:
            raise UserError(f"{OPTIONS[name]} is for models with {MODELS[name]}")


def _option(knob: Knob) -> str:
    return OPTIONS.get(knob.name, "--" + knob.name.replace("_", "-"))
