"""fairseq-milk stream: translates words from standard input as they arrive."""

import argparse
import sys

from ..console.errors import UserError
from ..host.command_line import only_warnings
from ..live import Translator, load
from ..live.arguments import add_text_arguments, text_options
from ..live.knobs import add_knob_arguments, knob_arguments, refuse_other_knobs
from ..live.lines import JsonTranslation, LineTranslation, characters, words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="checkpoint of fairseq-train, or folder of fairseq-milk export")
    parser.add_argument("--data", metavar="DIR", help="for a checkpoint: directory of fairseq-preprocess")
    add_text_arguments(parser)
    add_knob_arguments(parser)
    parser.add_argument("--device", default="cpu", help="for a checkpoint: torch device, e.g. cuda (cpu)")
    parser.add_argument("--verbose", action="store_true", help="show every READ and WRITE on standard error")
    parser.add_argument("--json", action="store_true", help="write one line of JSON per READ and WRITE, with its time")


def run(args: argparse.Namespace) -> int:
    """Translate interactively on a terminal; otherwise from a pipe or file to text or JSON."""
    only_warnings()
    knobs = knob_arguments(args)
    if sys.stdin is None:
        raise UserError("standard input is closed")

    def load_model() -> Translator:
        translator = load(args.model, args.data, text_options(args), args.device)
        refuse_other_knobs(knobs, translator.knobs)
        return translator

    if sys.stdin.isatty() and sys.stdout.isatty() and not args.json:
        try:
            from ..live.terminal import TerminalTranslation
        except ImportError as error:
            raise UserError("a terminal to type on needs prompt_toolkit: pip install 'fairseq-milk[live]'") from error
        return TerminalTranslation(load_model, lambda translator: translator.session(**knobs)).run()
    translator = load_model()
    lines = JsonTranslation if args.json else LineTranslation
    lines(lambda: translator.session(**knobs), args.verbose).run(words(characters(sys.stdin.fileno())))
    return 0
