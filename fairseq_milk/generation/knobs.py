"""Decode-time knobs of `fairseq-generate`.  `live.knobs` has the same for `fairseq-milk stream` and the agent."""

from dataclasses import dataclass, field, fields
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass

from ..attention import THRESHOLD, SimultaneousAttention, having_knob
from ..console.errors import UserError, check_numbers, require
from .schedule import DecodingOptions


@dataclass
class DecodingKnobs(FairseqDataclass):
    """Options that change the schedule of a trained model."""

    head_threshold: float = field(
        default=THRESHOLD, metadata={"help": "probability above which the learned head stops (writes) in decoding"}
    )
    min_wait: int = field(default=1, metadata={"help": "source tokens to read before the first target token"})
    max_consecutive_writes: int = field(
        default=0, metadata={"help": "target tokens in a row while there is something to read; 0: any number"}
    )
    decode_k: Optional[int] = field(default=None, metadata={"help": "decode wait-k with this k instead of its own"})
    no_early_eos: bool = field(
        default=False, metadata={"help": "read on when EOS would be written before the whole source has been read"}
    )


def check_knobs(knobs: Any) -> None:
    """Raise a UserError for invalid values.  knobs: a DecodingKnobs, or an object with its attributes."""
    threshold, writes, k = knobs.head_threshold, knobs.max_consecutive_writes, knobs.decode_k
    require(0 < threshold < 1, "head_threshold", threshold, "must lie between 0 and 1")
    require(knobs.min_wait >= 1, "min_wait", knobs.min_wait, "must be at least 1")
    require(writes >= 0, "max_consecutive_writes", writes, "must be 0 or a positive number")
    require(k is None or k >= 1, "decode_k", k, "must be at least 1")
    check_numbers({knob.name: getattr(knobs, knob.name) for knob in fields(DecodingKnobs) if knob.name != "_name"})


def configure_head(attention: Optional[SimultaneousAttention], knobs: Any) -> None:
    """Set the knobs of the mechanism; UserError for knobs that it does not have.  None: a model of fairseq."""
    own = () if attention is None else attention.stop.knobs
    if "k" not in own and knobs.decode_k is not None:
        raise UserError(f"--decode-k is for models trained with --attention {', '.join(having_knob('k'))}")
    if "threshold" not in own and knobs.head_threshold != THRESHOLD:
        raise UserError(f"--head-threshold is for models with a learned head: {', '.join(having_knob('threshold'))}")
    for knob, value in (("k", knobs.decode_k), ("threshold", knobs.head_threshold)):
        if attention is not None and knob in own and value is not None:
            setattr(attention.stop, knob, value)


def decoding_options(knobs: Any, **limits: Any) -> DecodingOptions:
    """The options of the decoder.  limits: max_len_a and similar."""
    options = DecodingOptions(
        min_wait=knobs.min_wait, max_writes=knobs.max_consecutive_writes, early_eos=not knobs.no_early_eos, **limits
    )
    check_limits(options)
    return options


def check_limits(options: DecodingOptions) -> None:
    """Raise a UserError unless the limits make every translation end."""
    for name in ("max_len_a", "max_len_b", "min_len"):
        require(getattr(options, name) >= 0, name, getattr(options, name), "must be 0 or a positive number")
        check_numbers({name: getattr(options, name)})
    shortest = options.max_len_a + options.max_len_b  # the limit for a source of one token
    allowed = f"must be at most {shortest:g}, which --max-len-a and --max-len-b allow a source of one token"
    require(options.min_len <= max(shortest, 1), "min_len", options.min_len, allowed)
    require(options.unk_penalty > float("-inf"), "unkpen", options.unk_penalty, "must be a number")
