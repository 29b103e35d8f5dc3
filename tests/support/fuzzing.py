"""Structure-aware fuzzing of the readers of files: damaged and hostile files, and what every reader must guarantee.

A reader returns a value or raises a ValueError (a UserError is one) that names the file.  It runs no code, needs no
more than `SECONDS`, and leaves the file as it is.  `CASES` are drawn by hypothesis; `FLIPS` take one bit.
"""

import contextlib
import copy
import io
import json
import os
import signal
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import torch
import yaml
from fairseq.data import indexed_dataset
from hypothesis import strategies as st

from fairseq_milk.host.checkpoint_reading import building, load_checkpoint_to_cpu
from fairseq_milk.host.data_files import check_data_files
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.score import score_records
from fairseq_milk.scoring.table import TYPES, read_results
from fairseq_milk.sweep.spec import read_spec
from fairseq_milk.tasks.checked_data import CheckedTranslationTask
from tests.support import tiny_models as tiny

SECONDS = 20  # of a busy machine; a case takes some milliseconds
CODE = {"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect", "ctypes.dlopen"}
MARK = "fuzzing_ran_code"

_events: List[str] = []
_watching = False


def _audit(event: str, arguments: Tuple[Any, ...]) -> None:
    if _watching and (event in CODE or (event == "exec" and _has_mark(arguments[0]))):
        _events.append(event)


def _has_mark(code: Any) -> bool:
    """Whether the code contains the mark."""
    return code.co_filename == "<string>" and MARK in str(code.co_consts)


sys.addaudithook(_audit)


class HungError(Exception):
    """A case took longer than `SECONDS`."""


@contextlib.contextmanager
def watched() -> Iterator[List[str]]:
    """The events of running code that occur in the block, which ends with HungError if it takes too long."""
    global _watching

    def hung(number: int, frame: Any) -> None:
        raise HungError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, hung)
    _events.clear()
    signal.alarm(SECONDS)
    _watching = True
    try:
        yield _events
    finally:
        _watching = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read(reader: Callable[[Path], object], path: Path) -> bool:
    """Whether the reader accepts the file; AssertionError if it does anything but accept or refuse it."""
    content = path.read_bytes()
    accepted = True
    with watched() as events:
        try:
            reader(path)
        except ValueError as error:
            accepted = False
            said = str(error)
            assert str(path.parent) in said or path.name in said, f"the file is not named: {said[:200]}"
            assert len(said) < 5000 and "\x1b" not in said, said[:200]
    assert not events, f"code was run: {events}"
    assert path.read_bytes() == content, "the file was changed"
    return accepted


# ---- values ---------------------------------------------------------------------------------------------------------

BAIT = [f"__import__('os').system('{MARK}')", "${oc.env:HOME}", "${model}", "${a.b}", "???"]
BAIT += ["\x1b[2J", "../../x", "--x", "", "milk", "translation", "de", "1", "nan", "\n"]
texts = st.sampled_from(BAIT) | st.text(max_size=6)
numbers = st.sampled_from([0, 1, -1, 2**31, 2**63, 2**64, 10**400, 0.5, float("nan"), float("inf"), True, False])
leaves: "st.SearchStrategy[Any]" = st.none() | texts | numbers
trees: "st.SearchStrategy[Any]" = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def places(tree: Any, here: Tuple[Any, ...] = ()) -> List[Tuple[Any, ...]]:
    """The keys to every value of a tree of dictionaries and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [here, *(place for key, value in items for place in places(value, (*here, key)))]


@st.composite
def changed(draw: Callable[..., Any], tree: Any, values: "st.SearchStrategy[Any]" = trees) -> Any:
    """The tree with up to three of its values replaced, removed or added to."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        found = [place for place in places(tree) if place]
        if not found:
            return draw(values)
        *way, last = draw(st.sampled_from(found))
        parent = tree
        for key in way:
            parent = parent[key]
        action = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if action == "remove":
            del parent[last]
        elif action == "add" and isinstance(parent, dict):
            parent[draw(texts)] = draw(values)
        else:
            parent[last] = draw(values)
    return tree


@st.composite
def damaged(draw: Callable[..., Any], content: bytes) -> bytes:
    """Bytes with some changed, cut out or put in twice."""
    content = bytes(content)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(len(content) - 1, 0)))
        end = min(len(content), start + draw(st.sampled_from([1, 1, 4, 100])))
        new = draw(st.sampled_from([b"", content[start:end] * 2]) | st.binary(min_size=1, max_size=8))
        content = content[:start] + new + content[end:]
    return content


def flipped(content: bytes, bit: int) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


# ---- checkpoints ----------------------------------------------------------------------------------------------------


@cache
def _parameters() -> Dict[str, Any]:
    return dict(tiny.model().state_dict())


def small_state() -> Dict[str, Any]:
    model = {"_name": "milk_rnmt", "attention": "milk", "embed_dim": 6, "hidden_size": 8, "energy_dim": 5, "noise": 4.0}
    task = {"_name": "simultaneous_translation", "data": "data", "source_lang": "de", "target_lang": "en"}
    cfg = {
        "model": model,
        "task": task,
        "criterion": {"_name": "latency_augmented_label_smoothed_cross_entropy", "latency_weight": 0.1},
        "optimizer": {"_name": "adam", "adam_betas": "(0.9, 0.999)", "lr": [0.1]},
        "lr_scheduler": {"_name": "fixed", "lr": [0.1]},
        "bpe": None,
        "common": {"fp16": False, "seed": 1},
    }
    history = [{"criterion_name": "L", "optimizer_name": "A", "lr_scheduler_state": {"best": 1.0}, "num_updates": 3}]
    parameters = dict(_parameters())
    extra = {"train_iterator": {"epoch": 1, "iterations_in_epoch": 3}, "val_loss": 1.0, "metrics": {}}
    return {"args": None, "cfg": cfg, "model": parameters, "optimizer_history": history, "extra_state": extra}


class Runs:
    """An object whose unpickling would run code."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        makers: Dict[str, Any] = {"system": (os.system, (MARK,)), "eval": (eval, (f"'{MARK}'",))}
        return makers.get(self.name, (getattr, ("text", "upper")))


def odd_tensors() -> List[Any]:
    whole = torch.arange(6.0)
    return [
        whole.expand(1000, 6),
        whole[::2],
        torch.tensor(float("nan")).expand(3),
        torch.zeros(0),
        torch.zeros(2, dtype=torch.complex64),
        torch.ones(2, 2).to_sparse(),
        torch.nn.Parameter(whole),
        torch.zeros(3, dtype=torch.bool),
        torch.empty(10, device="meta"),
        Runs("system"),
        Runs("eval"),
        Runs("getattr"),
    ]


def saved(state: Any) -> bytes:
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def rezipped(content: bytes, change: Callable[[Dict[str, bytes]], None], method: int = zipfile.ZIP_STORED) -> bytes:
    """The archive with other records, whose checksums are right again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    change(records)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, record in records.items():
            archive.writestr(name, record)
    return file.getvalue()


@st.composite
def checkpoints(draw: Callable[..., Any]) -> bytes:
    state, kind = small_state(), draw(st.sampled_from(["cfg", "cfg", "state", "tensor", "bytes", "pickle", "zip"]))
    if kind == "cfg":
        return saved({**state, "cfg": draw(changed(state["cfg"]))})
    if kind == "state":
        small = {**state, "model": {}}
        return saved({**draw(changed(small)), **draw(st.sampled_from([{}, {"model": state["model"]}]))})
    if kind == "tensor":
        state["model"][draw(st.sampled_from(list(state["model"])))] = draw(st.sampled_from(odd_tensors()))
        return saved(state)
    content = saved(state)
    if kind == "bytes":
        return bytes(draw(damaged(content)))

    def change(records: Dict[str, bytes]) -> None:
        name = draw(
            st.sampled_from([name for name in records if name.endswith(".pkl")] if kind == "pickle" else list(records))
        )
        action = draw(st.sampled_from(["damage", "rename", "remove"])) if kind == "zip" else "damage"
        if action == "damage":
            records[name] = draw(damaged(records[name]))
        else:
            record = records.pop(name)
            if action == "rename":
                records[draw(texts) or "x"] = record

    return rezipped(
        content, change, draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    )


def read_a_checkpoint(path: Path) -> Any:
    with building():
        return load_checkpoint_to_cpu(str(path))


# ---- data, dictionaries, translations, sweeps -----------------------------------------------------------------------

WORDS = 50
SENTENCES = [[5, 6, 7, 2], [2], [49, 8, 2], [10, 11, 12, 13, 14, 15, 2]]
DATA = "train.de-en.de"


def write_data(folder: Path) -> Dict[str, bytes]:
    builder = indexed_dataset.make_builder(str(folder / f"{DATA}.bin"), "mmap", vocab_size=WORDS)
    for sentence in SENTENCES:
        builder.add_item(torch.tensor(sentence))
    builder.finalize(str(folder / f"{DATA}.idx"))
    return {f"{DATA}.{ending}": (folder / f"{DATA}.{ending}").read_bytes() for ending in ("idx", "bin")}


def read_data(path: Path) -> None:
    """Check the data, let fairseq read them, and assert that every word is in the dictionary."""
    check_data_files(str(path.parent), "train", False, {"de": WORDS})
    data = indexed_dataset.make_dataset(str(path.parent / DATA), "mmap")
    lengths = [len(data[n]) for n in range(len(data))]
    assert lengths == [len(sentence) for sentence in SENTENCES], lengths
    assert all(0 <= int(token) < WORDS for n in range(len(data)) for token in data[n])


def read_dictionary(path: Path) -> None:
    words = CheckedTranslationTask.load_dictionary(str(path))
    assert len(words) >= 4 and words.index(words[len(words) - 1]) < len(words)


DICTIONARY = "".join(f"w{n} {90 - n}\n" for n in range(20)).encode()

RECORD = {"id": 0, "source": ["a", "b@@", "c"], "hypothesis": ["x", "y"], "delays": [1, 3, 4], "reference": ["x"]}
RECORD.update(text="x y", reference_text="x", attention=[[0.25] * 4] * 3, AL=1.0)


def read_translations(path: Path) -> None:
    log = read_generate_log(str(path))
    if log.no_latency is None:
        score_records(log.records).format()


SWEEP = {
    "name": "sweep",
    "data": "data",
    "train": {"arch": "milk_rnmt_tiny", "lr": 0.001, "no-epoch-checkpoints": True},
    "generate": {"batch-size": 64},
    "seeds": [1, 2],
    "slurm": {"gres": "gpu:1"},
    "systems": {"a": {"grid": {"noise": [1, 2]}}, "b": {"after": "a-noise=1"}, "c": {"model": "a"}},
}


TABLE = {name: {str: name, int: 3, float: 1.5}[kind] for name, kind in TYPES.items()}


def table_file(rows: Any) -> bytes:
    return json.dumps(rows).encode()


def json_lines(records: Any) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records)


def sweep_file(tree: Any) -> bytes:
    return str(yaml.safe_dump(tree, allow_unicode=True)).encode("utf-8", "surrogatepass")


class Kind(NamedTuple):
    """A kind of file: its name, the content of a sound file, the strategy for damaged files, and the reader."""

    name: str
    sound: bytes
    damaged: "st.SearchStrategy[bytes]"
    reader: Callable[[Path], object]


def kinds(folder: Path) -> Dict[str, Kind]:
    """All kinds; folder: where their files will be."""
    data = write_data(folder)
    (folder / "data").mkdir(exist_ok=True)
    log, sweep, table = json_lines([RECORD, {**RECORD, "id": 1}]), sweep_file(SWEEP), table_file([TABLE])
    lines = st.lists(changed(RECORD), min_size=1, max_size=3).map(json_lines) | damaged(log)
    return {
        "checkpoint": Kind("model.pt", saved(small_state()), checkpoints(), read_a_checkpoint),
        "index": Kind(f"{DATA}.idx", data[f"{DATA}.idx"], damaged(data[f"{DATA}.idx"]), read_data),
        "data": Kind(f"{DATA}.bin", data[f"{DATA}.bin"], damaged(data[f"{DATA}.bin"]), read_data),
        "dictionary": Kind("dict.de.txt", DICTIONARY, damaged(DICTIONARY), read_dictionary),
        "translations": Kind("generate.jsonl", log, lines, read_translations),
        "table": Kind("results.json", table, changed([TABLE]).map(table_file) | damaged(table), read_results),
        "sweep": Kind("sweep.yaml", sweep, changed(SWEEP).map(sweep_file) | damaged(sweep), read_spec),
    }


def try_case(kind: Kind, folder: Path, content: bytes) -> bool:
    """Whether the reader accepts the case; the sound file is restored."""
    path = folder / kind.name
    path.write_bytes(content)
    try:
        return read(kind.reader, path)
    finally:
        path.write_bytes(kind.sound)


def same_parameters(path: Path, other: Dict[str, Any]) -> bool:
    found = read_a_checkpoint(path)["model"]
    return found.keys() == other.keys() and all(torch.equal(found[name], other[name]) for name in other)
