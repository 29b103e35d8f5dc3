"""Verbs of `fairseq-milk` in this process, with their exit code and what they print."""

import contextlib
import io
import os
import sys
import threading
from typing import Any, Tuple
from unittest import mock

from fairseq_milk.cli import main


def check(*arguments: Any) -> Tuple[int, str, str]:
    """-> exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["check", *map(str, arguments)])
    return code, out.getvalue(), err.getvalue()


def stream(text: bytes, *arguments: Any) -> Tuple[int, str, str]:
    """The verb in this process, with a pipe for its standard input.  -> exit code, standard output, standard error."""
    reader, writer = os.pipe()

    def feed() -> None:
        with open(writer, "wb") as pipe:
            pipe.write(text)

    feeder = threading.Thread(target=feed)
    feeder.start()
    out, err = io.StringIO(), io.StringIO()
    with open(reader) as stdin, mock.patch.object(sys, "stdin", stdin):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["stream", *map(str, arguments)])
        feeder.join()
    return code, out.getvalue(), err.getvalue()
