"""The decoding of the task: chooses the generator for the model and the options of `fairseq-generate`."""

from argparse import Namespace
from typing import Any, Dict, List, Optional

from omegaconf import open_dict

from ..console.errors import UserError, require
from ..generation import AlignedBeamSearch, DecodingOptions, SimultaneousGenerator, attention_of
from ..generation.knobs import configure_head, decoding_options
from ..models.config import FLOAT32, PRODUCT_PRECISIONS

OFFLINE_BEAM = 5  # fairseq's default; simultaneous models are greedy
UNSET = 0  # the beam if the user has not given one
SEARCHES = ("sampling", "constraints", "match_source_len", "no_repeat_ngram_size", "prefix_size", "lm_path")


def in_training(args: Any) -> bool:
    """Whether a generator is for --eval-bleu, for which the options are a Namespace."""
    return isinstance(args, Namespace)


def choose_generator(models: List[Any], args: Any, cfg: Any, dictionary: Any) -> Optional[SimultaneousGenerator]:
    """Our generator for greedy decoding; None if fairseq's beam search decodes, which needs an offline model.

    args: the options of the generation.  cfg: the options of the task.
    """
    attention = attention_of(models[0])
    configure_head(attention, cfg)
    configure_precision(models, cfg.decode_precision)
    streaming = attention is not None and attention.streaming
    beam = 1 if streaming else OFFLINE_BEAM
    if not in_training(args):
        require(args.beam >= UNSET, "beam", args.beam, "must be at least 1")
        with open_dict(args):
            args.print_step = True  # prints the delays, as the steps of fairseq's output
            args.beam = args.beam or beam
    search = search_asked(models, args, beam)
    if streaming and search:
        raise UserError(search)
    options = generation_options(args, cfg)  # refuses limits with which fairseq would fail
    if search or attention is None:
        return None
    return SimultaneousGenerator(
        dictionary,
        options,
        alignment=getattr(args, "print_alignment", None),
        attention=cfg.write_attention,
        length_penalty=getattr(args, "lenpen", 1),
        normalise=not getattr(args, "unnormalized", False),
    )


def configure_precision(models: List[Any], precision: str) -> None:
    require(
        precision in PRODUCT_PRECISIONS, "decode_precision", precision, "must be " + " or ".join(PRODUCT_PRECISIONS)
    )
    for model in models:
        if attention_of(model) is not None:
            model.decode_in(precision)
        elif precision != FLOAT32:
            raise UserError(f"--decode-precision {precision} is for models of fairseq_milk")


def generation_options(args: Any, cfg: Any) -> DecodingOptions:
    names = {"max_len_a": "max_len_a", "max_len_b": "max_len_b", "min_len": "min_len", "unk_penalty": "unkpen"}
    return decoding_options(cfg, **{limit: getattr(args, name) for limit, name in names.items() if hasattr(args, name)})


def with_alignment(extra: Dict[str, Any], models: List[Any], args: Any) -> Dict[str, Any]:
    """The arguments of fairseq's generator; for --print-alignment with a search that knows our encoder's padding."""
    if not getattr(args, "print_alignment", None) or attention_of(models[0]) is None:
        return extra
    options = {**(extra.get("extra_gen_cls_kwargs") or {}), "print_alignment": args.print_alignment}
    return {**extra, "seq_gen_cls": AlignedBeamSearch, "extra_gen_cls_kwargs": options}


def search_asked(models: List[Any], args: Any, beam: int) -> Optional[str]:
    """None if decoding is greedy, else the reason why a simultaneous model cannot do it.  beam: the default."""
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
