"""The command `fairseq-milk`: each verb is a module here, with `add_arguments(parser)` and `run(args) -> int`.

Modules are imported when their verb is used, so that `fairseq-milk --help` starts quickly.
"""

import argparse
import importlib
import os
import sys
from typing import Dict, Optional, Sequence

from ..console.errors import printable
from ..console.exit_codes import interrupted
from ..version import __version__

VERBS: Dict[str, str] = {  # with their help
    "check": "check a checkpoint, or the arguments of a training before it starts",
    "compare": "compare two systems or curves at equal latency by paired bootstrap",
    "export": "write a checkpoint as a folder that runs without torch and fairseq",
    "path": "print the folder of the plugin, for --user-dir",
    "plot": "draw quality against latency, schedules and initial delays",
    "report": "write tables, curves and diagrams of a sweep to one HTML file",
    "score": "print BLEU, chrF and latency of a generation under every convention",
    "serve": "serve a web page and a WebSocket that translate as text is typed",
    "stream": "translate standard input as it arrives",
    "sweep": "train, decode and tabulate the systems of a file over their grids",
}


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The exit code: 2 for bad input, which is reported in one sentence, 130 after Ctrl-C, 0 for a closed pipe."""
    argv = list(sys.argv[1:] if argv is None else argv)
    verb = argv[0] if argv and argv[0] in VERBS else None  # None: for --help, and for what argparse will refuse
    try:
        return _run(_parser(verb).parse_args(argv))
    except ModuleNotFoundError as error:  # an installation that is enough for exported models only
        if verb is None or not error.name or error.name.startswith("fairseq_milk"):
            raise
        return _fail(verb, f"this needs {error.name}, which is not installed: pip install 'fairseq-milk[train]'")


def _run(args: argparse.Namespace) -> int:
    if sys.stdout is None:  # the caller closed it
        return _fail(args.verb, "standard output is closed")
    try:
        code = int(importlib.import_module(f".{args.verb}", __name__).run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The rest of the buffer would raise again when the interpreter flushes it on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return interrupted()
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        return _fail(args.verb, message)
    except ValueError as error:
        return _fail(args.verb, str(error))


def _parser(verb: Optional[str]) -> argparse.ArgumentParser:
    """A parser with all verbs; only `verb` gets its own arguments."""
    parser = argparse.ArgumentParser(prog="fairseq-milk", description="Simultaneous translation with fairseq.")
    parser.add_argument("--version", action="version", version=f"fairseq-milk {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, help in VERBS.items():
        subparser = verbs.add_parser(name, help=help, description=help)
        if name == verb:
            importlib.import_module(f".{name}", __name__).add_arguments(subparser)
    return parser


def _fail(verb: str, message: str) -> int:
    print(f"fairseq-milk {verb}: {printable(message)}", file=sys.stderr)
    return 2
