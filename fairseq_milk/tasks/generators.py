"""The decoding half of the task: which generator fits the model and the options of `fairseq-generate`."""

from argparse import Namespace
from typing import Any, Callable, Dict, List, Optional

from omegaconf import open_dict

from ..console.errors import UserError, require
from ..generation import AlignedBeamSearch, DecodingOptions, SimultaneousGenerator, attention_of
from ..generation.knobs import configure_head, decoding_options

OFFLINE_BEAM = 5  # fairseq's default; simultaneous models are greedy
UNSET = 0  # a beam that the user has not given
SEARCHES = ("sampling", "constraints", "match_source_len", "no_repeat_ngram_size", "prefix_size", "lm_path")


def in_training(args: Any) -> bool:
    """Whether a generator is for --eval-bleu, which gives its options as a Namespace."""
    return isinstance(args, Namespace)


def choose_generator(
    models: List[Any], args: Any, cfg: Any, dictionary: Any, beam_search: Callable[..., Any], extra: Dict[str, Any]
) -> Any:
    """Ours where decoding is greedy; fairseq's beam search, which only an offline model can make, otherwise.

    args: the options of the generation; cfg: those of the task.
    beam_search, extra: what builds fairseq's own generator, and with which arguments.
    """
    attention = attention_of(models[0])
    configure_head(attention, cfg)
    streaming = attention is not None and attention.streaming
    beam = 1 if streaming else OFFLINE_BEAM
    if not in_training(args):
        require(args.beam >= UNSET, "beam", args.beam, "must be at least 1")
        with open_dict(args):
            args.print_step = True  # the delays, on fairseq's own step line
            args.beam = args.beam or beam
    search = search_asked(models, args, beam)
    if streaming and search:
        raise UserError(search)
    options = generation_options(args, cfg)  # refuses limits that fairseq would stumble over
    if search or attention is None:
        return beam_search(models, args, **_aligned(extra, args) if attention is not None else extra)
    return SimultaneousGenerator(
        dictionary,
        options,
        alignment=getattr(args, "print_alignment", None),
        attention=cfg.write_attention,
        length_penalty=getattr(args, "lenpen", 1),
        normalise=not getattr(args, "unnormalized", False),
    )


def generation_options(args: Any, cfg: Any) -> DecodingOptions:
    defaults = DecodingOptions()
    return decoding_options(
        cfg,
        max_len_a=getattr(args, "max_len_a", defaults.max_len_a),
        max_len_b=getattr(args, "max_len_b", defaults.max_len_b),
        min_len=getattr(args, "min_len", defaults.min_len),
        unk_penalty=getattr(args, "unkpen", defaults.unk_penalty),
    )


def _aligned(extra: Dict[str, Any], args: Any) -> Dict[str, Any]:
    """With --print-alignment, a beam search that knows how our encoder pads."""
    if not getattr(args, "print_alignment", None):
        return extra
    options = {**(extra.get("extra_gen_cls_kwargs") or {}), "print_alignment": args.print_alignment}
    return {**extra, "seq_gen_cls": AlignedBeamSearch, "extra_gen_cls_kwargs": options}


def search_asked(models: List[Any], args: Any, beam: int) -> Optional[str]:
    """None if decoding is greedy, else why that will not do for a simultaneous model.  beam: if none is given."""
    if len(models) > 1:
        return "a simultaneous model cannot be decoded in an ensemble: give one checkpoint to --path"
    beam = getattr(args, "beam", beam)
    if beam > 1:
        return (
            f"--beam {beam} needs the whole source: a simultaneous model cannot take back what it has written and "
            "decodes greedily, use --beam 1"
        )
    for option in SEARCHES:
        if getattr(args, option, None):
            return f"--{option.replace('_', '-')} cannot be used with a simultaneous model"
    return None
