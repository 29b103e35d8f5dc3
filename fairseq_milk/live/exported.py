"""Live translation with an exported model; needs numpy and onnxruntime, but neither torch nor fairseq."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import numpy as np

from ..console.errors import UserError, first_line
from ..text.encoders import Encoder, Moses, SentencePiece, SubwordNmt
from ..text.vocabulary import Vocabulary
from ..text.words import SourceWords, TargetText
from . import manifest as files
from .exported_session import Array, ExportedSession
from .graph_check import check_graph
from .knobs import Settings, knobs_of, settings
from .several_schedules import SeveralSchedules
from .translator import Languages, Translator

PADDING = {"mask": -np.inf}  # other tensors: 0
CONTROLS = frozenset(map(chr, (*range(32), 127, 0x9B)))  # control characters


class Graph:
    """A graph of onnxruntime with the names of its inputs and outputs.  Safe to run from several threads."""

    def __init__(self, content: bytes, name: str) -> None:
        import onnxruntime

        check_graph(content, name)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # sessions run in parallel, products do not
        options.log_severity_level = 4
        # by itself onnxruntime would also take a format of its own, which was not checked
        options.add_session_config_entry("session.load_model_format", "ONNX")
        providers = ["CPUExecutionProvider"]
        try:  # its fallback prints errors, with names from the file, and tries the same again
            self.session = onnxruntime.InferenceSession(content, options, providers=providers, enable_fallback=0)
        except Exception as error:  # onnxruntime raises many types
            raise UserError(f"onnxruntime cannot use {name}: {first_line(error)}") from error
        if hasattr(self.session, "_model_bytes"):
            self.session._model_bytes = None  # onnxruntime keeps a copy, in case that another provider is chosen
        self.name = name
        self.inputs = [one.name for one in self.session.get_inputs()]
        self.outputs = [one.name.removeprefix(files.NEXT) for one in self.session.get_outputs()]

    def run(self, inputs: Dict[str, Array]) -> Dict[str, Array]:
        """The outputs by name."""
        try:
            results = self.session.run(None, inputs)
        except Exception as error:  # onnxruntime raises many types
            raise UserError(f"{self.name} cannot be run: {first_line(error)}") from error
        return dict(zip(self.outputs, results))

    def run_batch(self, inputs: Sequence[Dict[str, Array]]) -> List[Dict[str, Array]]:
        """`run` of several sentences at once."""
        if len(inputs) == 1:
            return [self.run(inputs[0])]
        stacked = {name: stack([one[name] for one in inputs], PADDING.get(name, 0)) for name in self.inputs}
        outputs = self.run(stacked)  # rows are copied, so that a session keeps no more than its own
        return [{name: x[row : row + 1].copy() for name, x in outputs.items()} for row in range(len(inputs))]


def stack(rows: Sequence[Array], padding: float) -> Array:
    """Tensors of one sentence each as a batch; the second axis is filled up where they differ in it."""
    lengths = [row.shape[1] for row in rows] if rows[0].ndim > 1 else [1]
    if min(lengths) == max(lengths):
        return np.concatenate(rows)
    batch = np.full((len(rows), max(lengths), *rows[0].shape[2:]), padding, dtype=rows[0].dtype)
    for one, row, length in zip(batch, rows, lengths):
        one[:length] = row[0]
    return batch


class ExportedModel:
    """The graphs of a folder, and the content of its `model.json`."""

    def __init__(self, manifest: files.Manifest, graphs: Dict[str, Graph], target: Vocabulary) -> None:
        self.manifest, self.graphs, self.target = manifest, graphs, target
        self.mechanism, self.description = manifest.mechanism, manifest.description
        self.knobs = knobs_of(manifest.learned, manifest.k)
        self.rate = Fraction(str(manifest.rate))
        self.zeros = {name: np.zeros(shape, dtype=np.float32) for name, shape in manifest.state.items()}
        self.inputs = {name: graph.inputs for name, graph in graphs.items()}
        taken = {name for names in self.inputs.values() for name in names}
        made = {name for graph in graphs.values() for name in graph.outputs}
        self.rows = {name: files.collected(name) for name in made if files.collected(name) in taken}
        of_source = {self.rows[name] for name in graphs["read"].outputs if name in self.rows}
        self.memory = of_source.difference(self.inputs["read"])  # what the attention looks back to
        # rows of sentences of different lengths need a mask, or are the last one of each
        alike = "mask" in taken or (manifest.lookback == 1 and self.memory.issuperset(self.rows.values()))
        # int8 has one scale for a whole batch: a sentence would depend on those beside it
        self.batches = manifest.weights == "float32" and alike

    def begin(self, settings: Settings) -> ExportedSession:
        return (SeveralSchedules if self.manifest.schedules > 1 else ExportedSession)(self, settings)


def load_exported(path: str) -> Translator:
    """The translator of a folder of `fairseq-milk export`."""
    folder = Path(path)
    manifest = files.read_manifest(folder)
    source, target = (_vocabulary(folder, manifest, name) for name in (files.SOURCE, files.TARGET))
    graphs: Dict[str, Graph] = {}
    largest_first = sorted(files.GRAPHS, key=lambda name: -manifest.files[f"{name}.onnx"]["bytes"])
    for name in largest_first:  # loading needs most memory for the largest
        file = f"{name}.onnx"
        graphs[name] = Graph(files.read_checked(folder, manifest, file), str(folder / file))
    model = ExportedModel(manifest, graphs, target)
    _try(model, len(source), folder)
    languages = Languages(manifest.source_language, manifest.target_language)
    try:
        moses = None if manifest.tokenizer is None else Moses(*languages, **manifest.tokenizer)
        words = SourceWords(source, _subwords(folder, manifest), moses)
    except ModuleNotFoundError as error:
        raise UserError(f"the text of {folder} needs {error.name}: pip install 'fairseq-milk[live]'") from error
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
    """Process one token, to detect graphs that do not match each other or the dictionaries."""
    try:
        session = model.begin(settings(model.knobs, {}))
        session.read(source_words - 1)
        session.wants_to_read()
        scores = model.graphs["write"].run(session.inputs("write"))
        fits = scores["scores"].shape == (1, len(model.target)) and bool(np.isfinite(scores["scores"]).all())
    except Exception as error:  # a tensor that is missing, onnxruntime's own errors
        raise UserError(f"the files of {folder} do not fit each other: {first_line(error)}") from error
    if not fits:
        raise UserError(f"the files of {folder} do not fit each other: the graphs are not those of the dictionaries")
