"""An exported model behind the live interface: numpy and onnxruntime, neither torch nor fairseq."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np

from ..console.errors import UserError, first_line
from ..generation.schedule import TokenSession, Written, must_read, too_long
from ..text.encoders import Encoder, Moses, SentencePiece, SubwordNmt
from ..text.vocabulary import Vocabulary
from ..text.words import SourceWords, TargetText
from . import manifest as files
from .graph_check import check_graph
from .knobs import Settings, knobs_of, settings
from .translator import Languages, Translator

Array = Any  # np.ndarray
CONTROLS = frozenset(map(chr, (*range(32), 127, 0x9B)))  # would be commands to a terminal


class Graph:
    """A graph of onnxruntime with the names of its inputs and outputs.  Safe to run from several threads."""

    def __init__(self, content: bytes, name: str) -> None:
        import onnxruntime

        check_graph(content, name)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # sessions, not products, run side by side
        options.log_severity_level = 4
        try:
            self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own, of many kinds
            raise UserError(f"onnxruntime cannot use {name}: {first_line(error)}") from error
        if hasattr(self.session, "_model_bytes"):
            self.session._model_bytes = None  # onnxruntime keeps a copy, in case that another provider is chosen
        self.inputs = [one.name for one in self.session.get_inputs()]
        self.outputs = [one.name.removeprefix(files.NEXT) for one in self.session.get_outputs()]

    def run(self, state: Dict[str, Array]) -> Dict[str, Array]:
        """The outputs by name, for the inputs that the state has under theirs."""
        results = self.session.run(None, {name: state[name] for name in self.inputs})
        return dict(zip(self.outputs, results))


class Buffer:
    """Rows that are appended one by one, with room that doubles.  (1, n, D)."""

    def __init__(self, row: Array) -> None:
        self.rows = np.zeros((1, 16, row.shape[1]), dtype=row.dtype)
        self.size = 0

    def append(self, row: Array) -> None:
        if self.size == self.rows.shape[1]:
            self.rows = np.concatenate((self.rows, np.zeros_like(self.rows)), axis=1)
        self.rows[0, self.size] = row[0]
        self.size += 1

    def last(self, count: Optional[int]) -> Array:
        """The last `count` rows, or all."""
        return self.rows[:, 0 if count is None else max(0, self.size - count) : self.size]


class ExportedModel:
    """The graphs of a folder and what `model.json` says of them."""

    def __init__(self, manifest: files.Manifest, graphs: Dict[str, Graph], target: Vocabulary) -> None:
        self.manifest, self.graphs, self.target = manifest, graphs, target
        self.mechanism, self.description = manifest.mechanism, manifest.description
        self.knobs = knobs_of(manifest.learned, manifest.k)
        self.rate = Fraction(str(manifest.rate))
        self.buffers = {"memory": "h"}  # what grows with the source, by the output that it collects
        self.buffers.update({f"keys_{name[4:]}": name for name in graphs["read"].outputs if name.startswith("key_")})
        self.zeros = {name: np.zeros(shape, dtype=np.float32) for name, shape in manifest.state.items()}

    def begin(self, settings: Settings) -> "ExportedSession":
        return ExportedSession(self, settings)


class ExportedSession(TokenSession):
    """One sentence.  `state` holds every tensor that passes between the graphs, by name; tensors are never changed."""

    def __init__(self, model: ExportedModel, settings: Settings) -> None:
        self.model, self.options = model, settings.options
        self.eos = model.target.eos()
        self.k = settings.k
        threshold = settings.threshold
        self.limit = None if threshold is None else math.log(threshold / (1 - threshold))
        self.state: Dict[str, Array] = dict(model.zeros)
        self.memory: Dict[str, Buffer] = {}
        self.i, self.source_read, self.writes, self.retracted = 1, 0, 0, False
        self._ask(self.eos)

    def read(self, token: int) -> None:
        self._run("read", token)
        for name, output in self.model.buffers.items():
            row = self.state[output]
            self.memory.setdefault(name, Buffer(row)).append(row)
        self.source_read, self.writes, self.retracted = self.source_read + 1, 0, False

    def wants_to_read(self) -> bool:
        if self.source_ended:
            return False
        waits = not self._stops()
        return bool(must_read(self.options, self.i, waits, self.source_read, self.writes, self.retracted))

    def _stops(self) -> bool:
        """Where the mechanism stops: by its energy, by counting, or never before the end."""
        if self.limit is not None:
            return bool(self.state["energy"][0] > self.limit)
        if self.k is not None:
            rate = self.model.rate
            return self.source_read >= self.k + (self.i - 1) * rate.denominator // rate.numerator
        return False

    def write(self) -> Optional[Written]:
        lookback = self.model.manifest.lookback
        seen = {name: buffer.last(lookback) for name, buffer in self.memory.items()}
        after = self.model.graphs["write"].run({**self.state, **seen})
        scores = after.pop("scores")[0]
        token = self._choose(scores)
        if token == self.eos and not self.options.early_eos and not self.source_ended:
            self.retracted = True
            return None
        written = Written(token, self.source_read, float(scores[token]))
        self.state.update(after)
        self.i, self.writes = self.i + 1, self.writes + 1
        self._ask(token)
        return written

    def _choose(self, scores: Array) -> int:
        """The most probable token: never padding, EOS neither before min_len nor after max_len."""
        if too_long(self.options, self.i, self.source_read) and self.i > self.options.min_len:
            return self.eos
        allowed = scores.copy()
        allowed[self.model.target.pad()] = -np.inf
        allowed[self.model.target.unk()] -= self.options.unk_penalty
        if self.i <= self.options.min_len:
            allowed[self.eos] = -np.inf
        return int(allowed.argmax())

    def _ask(self, token: int) -> None:
        """s_i, and what it asks of the source."""
        self._run("query", token)

    def _run(self, graph: str, token: int) -> None:
        self.state["token"] = np.array([token], dtype=np.int64)
        self.state.update(self.model.graphs[graph].run(self.state))


def load_exported(path: str) -> Translator:
    """The translator of a folder of `fairseq-milk export`."""
    folder = Path(path)
    manifest = files.read_manifest(folder)
    source, target = (_vocabulary(folder, manifest, name) for name in (files.SOURCE, files.TARGET))
    graphs: Dict[str, Graph] = {}
    largest_first = sorted(files.GRAPHS, key=lambda name: -manifest.files[f"{name}.onnx"]["bytes"])
    for name in largest_first:  # it needs most while it is read
        file = f"{name}.onnx"
        graphs[name] = Graph(files.read_checked(folder, manifest, file), str(folder / file))
    model = ExportedModel(manifest, graphs, target)
    _try(model, len(source), folder)
    languages = Languages(manifest.source_language, manifest.target_language)
    moses = None if manifest.tokenizer is None else Moses(*languages, **manifest.tokenizer)
    words = SourceWords(source, _subwords(folder, manifest), moses)
    return Translator(model, words, TargetText(target, moses), languages)


def _vocabulary(folder: Path, manifest: files.Manifest, name: str) -> Vocabulary:
    content = files.read_checked(folder, manifest, name)
    try:
        symbols: List[str] = json.loads(content.decode("utf-8"))
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise ValueError("it is not a list of strings")
        if len(set(symbols)) != len(symbols) or any(CONTROLS & set(symbol) for symbol in symbols):
            raise ValueError("it has a symbol twice, or one with control characters")
        return Vocabulary(symbols)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{folder / name} is not a dictionary of fairseq-milk export: {first_line(error)}") from error


def _subwords(folder: Path, manifest: files.Manifest) -> Optional[Encoder]:
    if files.CODES in manifest.files:
        content = files.read_checked(folder, manifest, files.CODES)
        return SubwordNmt(content.decode("utf-8", errors="replace"), str(folder / files.CODES))
    if files.PIECES in manifest.files:
        return SentencePiece(files.read_checked(folder, manifest, files.PIECES), str(folder / files.PIECES))
    return None


def _try(model: ExportedModel, source_words: int, folder: Path) -> None:
    """One token in and one out, so that graphs that do not fit each other or the dictionaries are noticed now."""
    try:
        session = model.begin(settings(model.knobs, {}))
        session.read(source_words - 1)
        session.wants_to_read()
        scores = model.graphs["write"].run({**session.state, **{n: b.last(1) for n, b in session.memory.items()}})
        fits = scores["scores"].shape == (1, len(model.target)) and bool(np.isfinite(scores["scores"]).all())
    except Exception as error:  # a tensor that is missing, onnxruntime's own errors
        raise UserError(f"the files of {folder} do not fit each other: {first_line(error)}") from error
    if not fits:
        raise UserError(f"the files of {folder} do not fit each other: the graphs are not those of the dictionaries")
