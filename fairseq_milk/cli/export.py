"""fairseq-milk export: a checkpoint as a folder that runs without torch and fairseq."""

import argparse

from ..console.errors import require
from ..host.command_line import only_warnings
from ..live.arguments import add_text_arguments, text_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", help="checkpoint of fairseq-train")
    parser.add_argument("--data", required=True, metavar="DIR", help="directory of fairseq-preprocess")
    parser.add_argument("--out", required=True, metavar="MODEL", help="the folder to write")
    parser.add_argument("--int8", action="store_true", help="store the weight matrices as int8")
    parser.add_argument("--subset", default="valid", help="the data set to compare on (valid)")
    parser.add_argument("--sentences", type=int, default=100, metavar="N", help="sentences to compare on (100)")
    add_text_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 if the folder was written; a float32 model that differs from its checkpoint is an error."""
    require(args.sentences >= 1, "sentences", args.sentences, "must be at least 1")
    only_warnings()
    from ..live.exporting import export  # torch and fairseq

    text = text_options(args)
    comparison = export(args.checkpoint, args.data, args.out, text, args.int8, args.subset, args.sentences)
    print(f"exported {args.out}: {comparison}")
    return 0
