"""fairseq-milk serve: a web page that translates as text is typed, and a WebSocket for other programs."""

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Dict, List, Sequence

from ..console.errors import UserError, require
from ..host.command_line import only_warnings
from ..live import Translator, load
from ..live.arguments import add_text_arguments, text_options
from ..live.serving.limits import Limits

PACKAGES = ("starlette", "uvicorn", "websockets")
EXAMPLES = 12  # on the page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", metavar="[NAME=]MODEL", help="folders of fairseq-milk export")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0: the network (%(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0: any free port (%(default)s)")
    parser.add_argument(
        "--examples", metavar="FILE", help=f"example sentences for the page, one per line (at most {EXAMPLES})"
    )
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count() or 1, help="number of threads that translate (%(default)s)"
    )
    limits = Limits()
    parser.add_argument(
        "--sessions", type=int, default=limits.sessions, help="maximum number of connections (%(default)s)"
    )
    parser.add_argument("--sessions-per-client", type=int, default=limits.sessions_per_client,
                        help="maximum number from one address (%(default)s)")  # fmt: skip
    parser.add_argument("--idle", type=float, default=limits.idle_seconds, metavar="SECONDS",
                        help="close a connection after this time without input (%(default)g)")  # fmt: skip
    parser.add_argument(
        "--origin", action="append", default=[], metavar="URL", help="address of the page, if it is behind a proxy"
    )
    parser.add_argument("--proxy", metavar="ADDRESS", help="trust X-Forwarded-For from a proxy at this address")
    parser.add_argument("--data", metavar="DIR", help="for checkpoints: directory of fairseq-preprocess")
    add_text_arguments(parser)


def run(args: argparse.Namespace) -> int:
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        raise UserError(f"serve needs {', '.join(missing)}: pip install 'fairseq-milk[serve]'")
    from ..live.serving.app import build_app
    from ..live.serving.running import Address
    from ..live.serving.running import run as run_server

    only_warnings()
    for option in ("threads", "sessions", "sessions_per_client", "idle"):
        require(getattr(args, option) > 0, option, getattr(args, option), "must be above 0")
    limits = Limits(args.sessions, args.sessions_per_client, args.idle)
    address = Address(args.host, args.port, args.origin, args.proxy)
    access = address.access()
    examples = read_examples(args.examples, limits.words) if args.examples else []
    models = load_models(args)
    app = build_app(models, limits, access, examples, args.threads)
    return run_server(app, address, limits, lambda url: announce(url, address.local, models))


def announce(url: str, local: bool, models: Dict[str, Translator]) -> None:
    for name, translator in models.items():
        print(f"{name}: {translator.description}")
    if local:
        print(f"{url}  (this machine only; --host 0.0.0.0 opens it to the network)", flush=True)
    else:
        print(f"{url}  (open to everyone who can reach this address: there is no password)", flush=True)


def load_models(args: argparse.Namespace) -> Dict[str, Translator]:
    """The models by name, in the order of the command line."""
    paths = name_models(args.models)
    text = text_options(args)
    models = {name: load(path, None if os.path.isdir(path) else args.data, text) for name, path in paths.items()}
    languages = {name: translator.languages.source for name, translator in models.items()}
    if len(set(languages.values())) > 1:
        listed = ", ".join(f"{name} {language}" for name, language in languages.items())
        raise UserError(f"the models translate from different languages: {listed}")
    return models


def name_models(arguments: Sequence[str]) -> Dict[str, str]:
    """Paths by name: that of NAME=PATH, otherwise the name of the folder (for a checkpoint, of its parent folder).

    >>> name_models(["demo/milk", "fast=demo/wait/checkpoint_best.pt"])
    {'milk': 'demo/milk', 'fast': 'demo/wait/checkpoint_best.pt'}
    """
    paths: Dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or os.path.exists(argument):
            whole = Path(argument).resolve()
            name, path = (whole.parent if whole.is_file() else whole).name, argument
        if name in paths:
            raise UserError(f"two models are called {name}: give one another name, NAME=MODEL")
        paths[name] = path
    return paths


def read_examples(path: str, words: int) -> List[str]:
    """The first lines that are neither empty nor too long."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text") from error
    return [line.strip() for line in lines if 0 < len(line.split()) <= words][:EXAMPLES]
