"""Errors for people."""


class UserError(SystemExit, ValueError):
    """Bad input, said in one sentence that names the option, file or line.

    It leaves a command with that sentence instead of a traceback, and can be caught as a ValueError in Python.
    """
