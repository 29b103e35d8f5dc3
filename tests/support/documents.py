"""The code blocks of the documents, and the commands of a shell block, word by word."""

import re
import shlex
from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RELIABILITY.md", "BENCHMARKS.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", flags=re.MULTILINE | re.DOTALL)
SEPARATORS = {";", "&&", "||", "|", "&", "(", ")", "{", "}", "!"}
RESERVED = {"do", "done", "then", "else", "fi", "if", "while"}  # before a command


class Block(NamedTuple):
    document: Path
    line: int  # of its first line of code
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(document: Path, *languages: str) -> List[Block]:
    """The fenced blocks of these languages, without the indentation of a list; of `console`, what follows a $."""
    text, found = document.read_text(encoding="utf-8"), []
    for fence in FENCE.finditer(text):
        indentation, language, code = fence.groups()
        if language in languages:
            code = re.sub(f"(?m)^{indentation}", "", code)
            code = "".join(re.findall(r"(?m)^\$ (.*\n)", code)) if language == "console" else code
            found.append(Block(document, text.count("\n", 0, fence.start()) + 2, language, code))
    return found


def commands(script: str) -> List[List[str]]:
    """The words of every simple command, also of those in $(...); without assignments and redirections."""
    return [words for line in _lines(script) for words in map(_simple, _split(_words(line))) if words]


def statements(script: str) -> Iterator[str]:
    """The parts of a shell block that can be run by themselves: a line, or a whole loop."""
    pending: List[str] = []
    for line in _lines(script):
        pending.append(line)
        words = [word for part in pending for word in _words(part)]
        if words.count("do") == words.count("done"):
            yield "\n".join(pending)
            pending = []


def _lines(script: str) -> Iterator[str]:
    """The logical lines: continued lines and quoted texts of several lines are joined, here-documents are left out."""
    pending, end = "", None
    for line in script.replace("\\\n", " ").splitlines():
        if end is not None:
            end = None if line.strip() == end else end
            continue
        pending = f"{pending}\n{line}" if pending else line
        try:
            _words(pending)
        except ValueError:  # a quotation is open
            continue
        here = re.search(r"<<-?\s*['\"]?(\w+)", pending)
        end = here[1] if here else None
        yield pending
        pending = ""
    if pending:
        raise ValueError(f"a quotation is not closed: {pending}")


def _words(line: str) -> List[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _split(words: Sequence[str]) -> Iterator[List[str]]:
    command: List[str] = []
    for word in words:
        if word in SEPARATORS or set(word) <= set(";&|()"):
            yield command
            command = []
        else:
            command.append(word)
    yield command


def _simple(words: List[str]) -> List[str]:
    kept: List[str] = []
    for previous, word in zip(["", *words], words):
        is_redirection = set(word) <= set("<>&") or set(previous) <= set("<>&") and previous
        is_before = not kept and (word in RESERVED or re.match(r"\w+=", word))
        if not is_redirection and not is_before:
            kept.append(word)
    return [] if kept[:1] in (["for"], ["case"]) else kept
