"""Checks the options of a sweep with the parsers of fairseq before anything is trained."""

import contextlib
import io
from difflib import get_close_matches
from typing import Any, Callable, Dict, List, Optional, Tuple

from fairseq import options as fairseq_options

from ..console.errors import UserError
from ..host.registration import register
from .spec import Spec, words


def check_options(spec: Spec) -> None:
    """Raise a UserError for the first option that fairseq-train or fairseq-generate would refuse."""
    register()
    checked: Dict[Tuple[str, ...], Optional[str]] = {}
    for point in spec.points:
        for name, kind, make_parser in (
            ("fairseq-train", point.train, fairseq_options.get_training_parser),
            ("fairseq-generate", point.generate, fairseq_options.get_generation_parser),
        ):
            command = (name, str(spec.data), *words(kind))
            if command not in checked:
                checked[command] = problem(make_parser, list(command[1:]))
            if checked[command]:
                raise UserError(f"{spec.path}: systems.{point.system}: {name}: {checked[command]}")


def problem(make_parser: Callable[[], Any], arguments: List[str]) -> Optional[str]:
    """The error in the arguments as one sentence, None if there is none."""
    parser, said = make_parser(), io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            fairseq_options.parse_args_and_arch(parser, input_args=arguments)
    except SystemExit:
        message = said.getvalue().rpartition("error: ")[2].strip()
        unknown = [word for word in message.split() if word.startswith("--")]
        if message.startswith("unrecognized arguments") and unknown:
            close = get_close_matches(unknown[0], parser._option_string_actions, n=1)
            return f"there is no option {unknown[0]}" + (f", did you mean {close[0]}?" if close else "")
        return message.partition(" (choose from")[0] or "the options cannot be read"
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:  # in a type function
        return str(error) or "there is no --arch"  # for which fairseq raises an error without a message
    return None
