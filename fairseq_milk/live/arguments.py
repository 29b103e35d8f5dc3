"""Options of commands for the text processing of a checkpoint."""

from argparse import ArgumentParser, Namespace

from .loading import TextOptions


def add_text_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--bpe-codes", metavar="FILE", help="of subword-nmt (default: the *codes* file in DIR)")
    parser.add_argument("--sentencepiece-model", metavar="FILE", help="(default: the *.model file in DIR)")
    parser.add_argument("--tokenizer", choices=["moses"], help="of the text that the model was trained on")
    parser.add_argument("--moses-no-dash-splits", action="store_true", help="do not split words at dashes")
    parser.add_argument("--moses-no-escape", action="store_true", help="do not escape quotes and the like")


def text_options(args: Namespace) -> TextOptions:
    return TextOptions(**{name: getattr(args, name) for name in TextOptions._fields})
