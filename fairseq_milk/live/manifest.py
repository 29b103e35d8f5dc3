"""`model.json` of an exported folder: the description of the model, and the SHA-256 of every file beside it.

A folder is not trusted: its files must have fixed names and be regular files of the stated size; they are read once,
and their digests are verified before they are used.
"""

import hashlib
import json
import math
import os
import stat
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Dict, List, Optional

from ..console.errors import UserError

NAME = "model.json"
VERSION = 1
GRAPHS = ("read", "query", "write")
NEXT = "next_"  # prefix of an output that replaces an input of the same graph
SOURCE, TARGET = "source.json", "target.json"  # the dictionaries
CODES, PIECES = "bpe.codes", "sentencepiece.model"
REQUIRED = (*(f"{name}.onnx" for name in GRAPHS), SOURCE, TARGET)
OPTIONAL = (CODES, PIECES)
LARGEST_MANIFEST, LARGEST_FILE = 1 << 20, 1 << 33  # bytes
LARGEST_STATE = 1 << 24  # numbers in one tensor


@dataclass
class Manifest:
    """The fields of `model.json`."""

    mechanism: str  # its name, only to be shown
    learned: bool  # whether the head is learned
    k: Optional[int]  # of wait-k
    rate: float  # emission rate of wait-k
    lookback: Optional[int]  # number of source tokens that the attention sees; None: everything read
    source_language: str
    target_language: str
    description: str
    weights: str  # float32 or int8
    state: Dict[str, List[int]]  # the tensors that are zero at the start of a sentence, with their shapes
    schedules: int = 1  # heads that decide, of all layers; a token is written when all of them have stopped
    tokenizer: Optional[Dict[str, Any]] = None  # options of Moses
    sizes: Dict[str, Any] = field(default_factory=dict)
    training: Dict[str, Any] = field(default_factory=dict)
    made_with: Dict[str, Any] = field(default_factory=dict)
    comparison: Dict[str, Any] = field(default_factory=dict)
    files: Dict[str, Dict[str, Any]] = field(default_factory=dict)  # name: {"bytes": ..., "sha256": ...}

    def to_json(self) -> str:
        fields = {"format": "fairseq_milk", "version": VERSION, **asdict(self)}
        return json.dumps({**fields, "sha256": digest_of(fields)}, indent=2, ensure_ascii=False) + "\n"


def collected(output: str) -> str:
    """The input that has all rows so far of an output, if it is one that grows."""
    kind, _, name = output.partition("_")
    return f"{kind}s_{name}" if name else {"h": "memory"}.get(output, "")


def digest_of(fields: Dict[str, Any]) -> str:
    """SHA-256 of the fields, to detect changes of `model.json` itself."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode("utf-8")).hexdigest()


def describe_file(content: bytes) -> Dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def read_manifest(folder: Path) -> Manifest:
    """The checked content of `model.json`; UserError if it is damaged or unknown."""
    content = read_file(folder, NAME, LARGEST_MANIFEST)
    try:
        fields = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{folder / NAME} is not JSON: it is damaged") from error
    if not isinstance(fields, dict) or fields.get("format") != "fairseq_milk":
        raise UserError(f"{folder} is not a model of fairseq-milk export: its {NAME} says something else")
    if fields.get("version") != VERSION:
        raise UserError(
            f"{folder} has format version {fields.get('version')!r}, this fairseq_milk reads version {VERSION}"
        )
    digest = fields.pop("sha256", None)
    try:
        same = digest == digest_of(fields)
    except RecursionError as error:
        raise UserError(f"{folder / NAME} is damaged: it is nested too deeply") from error
    if not same:
        raise UserError(f"{folder / NAME} is damaged: it does not have its own SHA-256")
    del fields["format"], fields["version"]
    try:
        manifest = Manifest(**fields)
        check(manifest)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise UserError(f"{folder / NAME} is not complete or has wrong values: {error}") from error
    return manifest


def check(manifest: Manifest) -> None:
    """Raise a ValueError, TypeError or KeyError unless every field has the right type and range."""
    if not isinstance(manifest.learned, bool):
        raise ValueError(f"learned {manifest.learned!r}")
    for name in ("k", "lookback"):
        value = getattr(manifest, name)
        if value is not None and not (type(value) is int and 1 <= value < 2**31):
            raise ValueError(f"{name} {value!r}")
    if type(manifest.schedules) is not int or not 1 <= manifest.schedules <= 2**16:
        raise ValueError(f"schedules {manifest.schedules!r}")
    if not isinstance(manifest.rate, (int, float)) or not 1e-9 <= Fraction(str(manifest.rate)) < 2**31:
        raise ValueError(f"rate {manifest.rate!r}")
    for name in ("mechanism", "source_language", "target_language", "description"):
        text = getattr(manifest, name)
        if not isinstance(text, str) or not text.isprintable() or len(text) > 1000:
            raise ValueError(f"{name} {text!r:.100}")
    for name, shape in manifest.state.items():
        if not isinstance(shape, list) or not all(type(size) is int and 0 <= size <= 2**16 for size in shape):
            raise ValueError(f"the shape of {name!r:.100}")
        if len(shape) > 4 or math.prod(shape) > LARGEST_STATE:
            raise ValueError(f"the size of {name!r:.100}")
    names = set(manifest.files)
    if not set(REQUIRED) <= names <= {*REQUIRED, *OPTIONAL} or {CODES, PIECES} <= names:
        raise ValueError(f"its files are {', '.join(sorted(map(repr, names)))}")
    for entry in manifest.files.values():
        if type(entry["bytes"]) is not int or not isinstance(entry["sha256"], str):
            raise ValueError("its digests")
    if manifest.tokenizer is not None:
        if set(manifest.tokenizer) != {"no_dash_splits", "no_escape"}:
            raise ValueError("its tokenizer")
        if not all(isinstance(value, bool) for value in manifest.tokenizer.values()):
            raise ValueError("its tokenizer")


def read_checked(folder: Path, manifest: Manifest, name: str) -> bytes:
    """The content of a file of the folder; UserError if size or digest differ from `model.json`."""
    entry = manifest.files[name]
    content = read_file(folder, name, LARGEST_FILE)
    if describe_file(content) != entry:
        raise UserError(f"{folder / name} is damaged or was replaced: its SHA-256 is not the one in {NAME}")
    return content


def read_file(folder: Path, name: str, most: int) -> bytes:
    """The content of a regular file of the folder; links and pipes are refused."""
    path = folder / name
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UserError(f"{folder} is not a complete model of fairseq-milk export: there is no {name} in it") from error
    except OSError as error:
        reason = "it is a link" if path.is_symlink() else error.strerror
        raise UserError(f"{path} cannot be read: {reason}") from error
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{path} is not a regular file")
        if status.st_size > most:
            raise UserError(f"{path} has {status.st_size} bytes, more than a file of a model has")
        return file.read()


def symbols_file(symbols: List[str]) -> bytes:
    """The symbols of a dictionary, in order."""
    return json.dumps(symbols, ensure_ascii=False, indent=0).encode("utf-8")
