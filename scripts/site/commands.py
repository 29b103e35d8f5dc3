"""The reference of the verbs of `fairseq-milk`, from their parsers."""

import argparse
import textwrap
from typing import Iterator, List

from fairseq_milk import cli
from fairseq_milk.sweep import spec


def verbs_page() -> str:
    """A section per verb: its usage, and a table of its arguments."""
    sections: List[str] = []
    for verb in cli.VERBS:
        parser = _subparsers(cli._parser(verb))[verb]
        parser.epilog = None  # of sweep: its file, which has a page of its own
        sections += _sections(parser, "##")
    return "\n\n".join(sections)


def sweep_file() -> str:
    """The description of the file of `fairseq-milk sweep`, as its --help prints it."""
    _, example, *further = (spec.__doc__ or "").strip().split("\n\n")
    return "\n\n".join([f"```yaml\n{textwrap.dedent(example)}\n```", *further])


def _sections(parser: argparse.ArgumentParser, level: str) -> Iterator[str]:
    yield f"{level} `{parser.prog}`"
    yield _sentence(parser.description or "")
    nested = _subparsers(parser)
    if not nested:
        yield f"```text\n{parser.format_usage().strip()}\n```"
        yield _table(parser)
    for subparser in nested.values():
        yield from _sections(subparser, f"{level}#")


def _sentence(text: str) -> str:
    text = text.partition(": ")[2] if text.startswith("fairseq-milk ") else text
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def _subparsers(parser: argparse.ArgumentParser) -> "dict[str, argparse.ArgumentParser]":
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _table(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog)
    rows = ["| argument | |", "|---|---|"]
    for action in parser._actions:
        if not isinstance(action, argparse._HelpAction):
            rows.append(f"| {_name(action)} | {cell(formatter._expand_help(action) if action.help else '')} |")
    return "\n".join(rows) if len(rows) > 2 else "No arguments."


def _name(action: argparse.Action) -> str:
    names = [f"`{name}`" for name in action.option_strings] or [f"`{action.metavar or action.dest}`"]
    if action.choices is not None:
        return ", ".join(names) + " " + cell(" \\| ".join(f"`{choice}`" for choice in action.choices))
    takes_value = action.option_strings and action.nargs != 0
    return ", ".join(names) + (f" {_metavar(action)}" if takes_value else "")


def _metavar(action: argparse.Action) -> str:
    names = action.metavar if action.metavar is not None else action.dest.upper()
    return names if isinstance(names, str) else " ".join(names)


def cell(text: str) -> str:
    """Text within a table."""
    return " ".join(text.split()).replace("|y|", "\\|y\\|").replace("*", "\\*")
