"""Traces the modules of `graphs` to ONNX, in float32 or with int8 weights."""

import contextlib
import io
import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List

import torch
import torch.export

from ..console.errors import UserError
from .graph import Graph
from .manifest import NEXT

OPSET = 18


def can_trace() -> bool:
    """Whether this torch can trace graphs that take any number of sentences; 2.1 cannot."""
    return hasattr(getattr(torch.export, "Dim", None), "DYNAMIC")


def trace(steps: Dict[str, Graph], int8: bool) -> Dict[str, bytes]:
    """The content of the file of each graph by name.  Graphs take any number of sentences."""
    if not can_trace():
        raise UserError(f"an export needs a newer torch: {torch.__version__} has no torch.export.Dim.DYNAMIC")
    with _quiet():
        return {name: _traced(graph, int8) for name, graph in steps.items()}


def _traced(graph: Graph, int8: bool) -> bytes:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError("an export needs onnx and onnxscript: pip install 'fairseq-milk[train]'") from error
    growing = ("memory", "mask", "keys_", "values_")
    any_size = torch.export.Dim.DYNAMIC
    shapes = {name: {0: any_size, **({1: any_size} if name.startswith(growing) else {})} for name in graph.inputs}
    program = torch.onnx.export(
        graph.module.eval(),
        tuple(_arguments(list(graph.inputs.values()), graph.lists)),
        dynamo=True,
        dynamic_shapes=tuple(_arguments(list(shapes.values()), graph.lists)),
        input_names=list(graph.inputs),
        output_names=[NEXT + name if name in graph.inputs else name for name in graph.outputs],
        opset_version=OPSET,
        verbose=False,
    )
    assert program is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        program.save(str(path), external_data=False)
        return (_quantised(path) if int8 else path).read_bytes()


def _arguments(inputs: List[Any], lists: Any) -> Iterator[Any]:
    """Group the inputs for the module: single tensors, then lists of the given lengths."""
    single = len(inputs) - sum(lists)
    yield from inputs[:single]
    for length in lists:
        yield inputs[single : single + length]
        single += length


def _quantised(path: Path) -> Path:
    """Quantise weight matrices to int8, with one scale per output; their inputs are quantised dynamically."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small, model = path.with_name("int8.onnx"), onnx.load(path)
    del model.graph.value_info[:]  # shapes of the weights before transposition
    onnx.save(model, path)
    matrices = {weight.name for weight in model.graph.initializer if len(weight.dims) == 2}
    others = [node.name for node in model.graph.node if not matrices & set(node.input)]  # not the vector v of an energy
    quantize_dynamic(path, small, nodes_to_exclude=others, weight_type=QuantType.QInt8, per_channel=True)
    return small


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the messages of torch and onnx about every pass over a graph."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
