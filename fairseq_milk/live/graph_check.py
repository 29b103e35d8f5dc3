"""Checks that an ONNX file contains only allowed operators and its own weights.

ONNX files can also refer to weights in other files, call functions and loop.  Exported models do not, and a file that
does is refused before onnxruntime loads it.  It is parsed as protobuf, so that `onnx` need not be installed.
"""

from typing import Iterator, Tuple, Union

from ..console.errors import UserError

OPERATORS = frozenset(
    "Add And Cast Clip Concat ConstantOfShape Cos DequantizeLinear Div DynamicQuantizeLinear Equal Gather Gemm Greater "
    "GreaterOrEqual Identity LayerNormalization LogSoftmax MatMul MatMulInteger Mul Not Or Range ReduceMax Relu "
    "Reshape Shape Sigmoid Sin Slice Softmax Split Squeeze Sub Tanh Transpose Unsqueeze Where".split()
)
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LARGEST_NUMBER = 2**29 - 1  # of a field
# field numbers of onnx.proto
MODEL_GRAPH, MODEL_FUNCTIONS = 7, 25
GRAPH_NODE, GRAPH_TENSOR, GRAPH_SPARSE = 1, 5, 15
NODE_OPERATOR, NODE_ATTRIBUTE, NODE_DOMAIN = 4, 5, 7
ATTRIBUTE_TENSORS, ATTRIBUTE_OTHER = (5, 10), (6, 11, 22, 23)  # other: graphs and sparse tensors
TENSOR_EXTERNAL = (13, 14)

Field = Tuple[int, Union[int, memoryview]]


class NotAllowedError(Exception):
    """The content is not allowed in an exported model; the message is the reason as a phrase."""


def check_graph(content: bytes, name: str) -> None:
    """Raise a UserError unless every part of the ONNX model is allowed."""
    graphs = 0
    try:
        for number, value in _fields(memoryview(content)):
            if number == MODEL_FUNCTIONS:
                raise NotAllowedError("it has functions of its own")
            if number == MODEL_GRAPH:
                graphs += 1
                _check_graph(_message(value))
        if graphs != 1:
            raise NotAllowedError(f"it has {graphs} graphs")
    except (NotAllowedError, IndexError) as error:
        reason = str(error) if isinstance(error, NotAllowedError) else "it is damaged"
        raise UserError(f"{name} is not a graph of fairseq-milk export: {reason}") from error


def _check_graph(graph: memoryview) -> None:
    for number, value in _fields(graph):
        if number == GRAPH_NODE:
            _check_node(_message(value))
        elif number == GRAPH_TENSOR:
            _check_tensor(_message(value))
        elif number == GRAPH_SPARSE:
            raise NotAllowedError("it has sparse weights")


def _check_node(node: memoryview) -> None:
    for number, value in _fields(node):
        if number == NODE_OPERATOR and bytes(_message(value)).decode("utf-8", "replace") not in OPERATORS:
            raise NotAllowedError(f"it has the operator {bytes(_message(value))[:40].decode('ascii', 'replace')!r}")
        if number == NODE_DOMAIN and bytes(_message(value)) not in (b"", b"ai.onnx"):
            raise NotAllowedError("it has operators that are not ONNX's own")
        if number == NODE_ATTRIBUTE:
            for inner, content in _fields(_message(value)):
                if inner in ATTRIBUTE_OTHER:
                    raise NotAllowedError("it has graphs within graphs")
                if inner in ATTRIBUTE_TENSORS:
                    _check_tensor(_message(content))


def _check_tensor(tensor: memoryview) -> None:
    if any(number in TENSOR_EXTERNAL and value not in (0, b"") for number, value in _fields(tensor)):
        raise NotAllowedError("it takes weights from another file")


def _message(value: Union[int, memoryview]) -> memoryview:
    if isinstance(value, int):
        raise NotAllowedError("it is damaged")
    return value


def _fields(data: memoryview) -> Iterator[Field]:
    """The field numbers and values of a protobuf message.  IndexError if it is truncated."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if not 0 < number <= LARGEST_NUMBER:  # onnxruntime would drop the upper bits, and see another field
            raise NotAllowedError("it is damaged")
        if wire == VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == BYTES:
            size, position = _varint(data, position)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise NotAllowedError("it is damaged")
        if position + size > len(data):
            raise NotAllowedError("it is cut short")
        yield number, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position
        if shift > 63:
            raise NotAllowedError("it is damaged")
