"""Fuzzing of exported folders, for `tests.support.fuzzing`: changes to any file, with digests that match."""

import io
import json
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List

import onnx
import onnxruntime  # noqa: F401  (before a case is watched, for it loads libraries)
import sentencepiece
import subword_nmt.apply_bpe  # noqa: F401
from hypothesis import strategies as st

from fairseq_milk.live import manifest as files
from fairseq_milk.live.exported import load_exported
from fairseq_milk.live.graph_check import OPERATORS
from tests.support.fuzzing import Kind, changed, damaged, numbers, texts

CODES = "#version: 0.2\n" + "".join(f"w {n}\nw{n} 0</w>\n" for n in range(10))
SENTENCE = "w1 w20 unheard"
OTHER_OPERATORS = ("Loop", "If", "Scan", "Expand", "ConstantOfShape", "Constant", "RandomNormal")


class ExportedFolder:
    """An exported folder in which one file at a time is replaced."""

    def __init__(self, model: Path, folder: Path, more: Dict[str, bytes]) -> None:
        """A copy of an exported model with additional files."""
        shutil.copytree(model, folder)
        self.folder = folder
        for name, content in more.items():
            (folder / name).write_bytes(content)
        self.fields = json.loads((folder / files.NAME).read_text(encoding="utf-8"))
        del self.fields["sha256"]
        self.fields["files"].update({name: files.describe_file(content) for name, content in more.items()})
        (folder / files.NAME).write_bytes(manifest_file(self.fields))

    def kind(self, name: str, draw: Callable[[bytes], "st.SearchStrategy[bytes]"]) -> Kind:
        sound = (self.folder / name).read_bytes()
        return Kind(f"{self.folder.name}/{name}", sound, draw(sound), self.translate)

    def translate(self, path: Path) -> None:
        """Loads the folder with the file as it is now, and translates a sentence with it."""
        if path.name != files.NAME:
            described = {**self.fields["files"], path.name: files.describe_file(path.read_bytes())}
            (self.folder / files.NAME).write_bytes(manifest_file({**self.fields, "files": described}))
        load_exported(str(self.folder)).translate(SENTENCE, max_len_b=3)


def manifest_file(fields: Any) -> bytes:
    """`model.json` with its digest, if the value is a dictionary."""
    if isinstance(fields, dict):
        fields = {**fields, "sha256": files.digest_of(fields)}
    return json.dumps(fields).encode("utf-8")


# ---- graphs ---------------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: Callable[..., Any], sound: bytes) -> bytes:
    """An ONNX model in which up to three nodes, weights or shapes have been changed."""
    model = onnx.load_from_string(sound)
    for _ in range(draw(st.integers(1, 3))):
        draw(st.sampled_from([_operator, _wire, _attribute, _weight, _shape, _order, _external]))(draw, model.graph)
    content: bytes = model.SerializeToString()
    return content


def _one(draw: Callable[..., Any], items: Any) -> Any:
    return draw(st.sampled_from(list(items))) if items else None


def _operator(draw: Callable[..., Any], graph: Any) -> None:
    node = _one(draw, graph.node)
    node.op_type = draw(st.sampled_from(sorted(OPERATORS)) | st.sampled_from(OTHER_OPERATORS) | texts)


def _wire(draw: Callable[..., Any], graph: Any) -> None:
    """Change an input or output of a node, which may make the graph cyclic."""
    names = [name for node in graph.node for name in (*node.input, *node.output)] + [one.name for one in graph.input]
    node = _one(draw, graph.node)
    side = draw(st.sampled_from([node.input, node.output]))
    if side:
        side[draw(st.integers(0, len(side) - 1))] = draw(st.sampled_from(names) | texts)


def _attribute(draw: Callable[..., Any], graph: Any) -> None:
    attribute = _one(draw, [attribute for node in graph.node for attribute in node.attribute])
    if attribute is None:
        return
    attribute.i = draw(small)
    if attribute.ints:
        attribute.ints[0] = draw(small)


def _weight(draw: Callable[..., Any], graph: Any) -> None:
    """Change the type, the sizes or the bytes of a weight."""
    weight = _one(draw, graph.initializer)
    action = draw(st.sampled_from(["type", "size", "bytes", "remove"]))
    if action == "type":
        weight.data_type = draw(st.integers(0, 24))
    elif action == "size" and weight.dims:
        weight.dims[draw(st.integers(0, len(weight.dims) - 1))] = draw(small)
    elif action == "bytes":
        weight.raw_data = draw(damaged(weight.raw_data)) if weight.raw_data else draw(st.binary(max_size=9))
    else:
        graph.initializer.remove(weight)


def _shape(draw: Callable[..., Any], graph: Any) -> None:
    value = _one(draw, [*graph.input, *graph.output])
    kind = value.type.tensor_type
    if draw(st.booleans()) and kind.shape.dim:
        kind.shape.dim[0].dim_value = draw(small)
    else:
        kind.elem_type = draw(st.integers(0, 24))


def _order(draw: Callable[..., Any], graph: Any) -> None:
    nodes: List[Any] = list(graph.node)
    moved = nodes.pop(draw(st.integers(0, len(nodes) - 1)))
    if draw(st.booleans()):
        nodes.insert(draw(st.integers(0, len(nodes))), moved)
    del graph.node[:]
    graph.node.extend(nodes)


def _external(draw: Callable[..., Any], graph: Any) -> None:
    weight = _one(draw, graph.initializer)
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=draw(st.sampled_from(["/etc/passwd", "read.onnx", "../x"]) | texts))


small = st.integers(-3, 40) | st.sampled_from([2**31, -(2**63), 2**63 - 1])


# ---- the kinds ------------------------------------------------------------------------------------------------------


def sentencepiece_model() -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"w{n} w{n + 7} w{2 * n}" for n in range(30)]),
        model_writer=written,
        vocab_size=20,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return written.getvalue()


@st.composite
def symbol_files(draw: Callable[..., Any], sound: bytes) -> bytes:
    values = texts | numbers
    return json.dumps(draw(changed(json.loads(sound), values))).encode("utf-8")


def exported_kinds(model: Path, folder: Path) -> Dict[str, Kind]:
    """The files of an exported model without subwords, which is copied; folder: where the files will be."""
    bpe = ExportedFolder(model, folder / "exported", {files.CODES: CODES.encode()})
    pieces = ExportedFolder(model, folder / "pieces", {files.PIECES: sentencepiece_model()})
    return {
        "manifest": bpe.kind(files.NAME, lambda sound: changed(bpe.fields).map(manifest_file) | damaged(sound)),
        **{
            f"graph-{name}": bpe.kind(f"{name}.onnx", lambda sound: graphs(sound) | damaged(sound))
            for name in files.GRAPHS
        },
        "symbols": bpe.kind(files.TARGET, lambda sound: symbol_files(sound) | damaged(sound)),
        "codes": bpe.kind(files.CODES, damaged),
        "pieces": pieces.kind(files.PIECES, damaged),
    }
