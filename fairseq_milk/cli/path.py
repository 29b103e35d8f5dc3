"""fairseq-milk path: print the folder of the plugin, for fairseq's --user-dir."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = __doc__


def run(args: argparse.Namespace) -> int:
    print(Path(__file__).resolve().parents[1])
    return 0
