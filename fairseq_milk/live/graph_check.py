"""What an ONNX file may contain: a few arithmetic operators and weights of its own.

ONNX can also name other files as weights, call functions and loop; none of that is in an exported model, and a file
that has it is refused before onnxruntime sees it.  It is read in protobuf's wire format: `onnx` need not be installed.
"""

from typing import Iterator, Tuple, Union

from ..console.errors import UserError

OPERATORS = frozenset(
    "Add Cast Clip Concat DequantizeLinear Div DynamicQuantizeLinear Gather Gemm Identity LayerNormalization "
    "LogSoftmax MatMul MatMulInteger Mul Reshape Sigmoid Slice Softmax Split Squeeze Sub Tanh Transpose "
    "Unsqueeze".split()
)
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# numbers of fields in onnx.proto
MODEL_GRAPH, MODEL_FUNCTIONS = 7, 25
GRAPH_NODE, GRAPH_TENSOR, GRAPH_SPARSE = 1, 5, 15
NODE_OPERATOR, NODE_ATTRIBUTE, NODE_DOMAIN = 4, 5, 7
ATTRIBUTE_TENSORS, ATTRIBUTE_OTHER = (5, 10), (6, 11, 22, 23)  # other: graphs and sparse tensors
TENSOR_EXTERNAL = (13, 14)

Field = Tuple[int, Union[int, memoryview]]


class NotAllowedError(Exception):
    """The content is not that of an exported model; the reason as a phrase."""


def check_graph(content: bytes, name: str) -> None:
    """UserError unless every part of the ONNX model is allowed."""
    try:
        for number, value in _fields(memoryview(content)):
            if number == MODEL_FUNCTIONS:
                raise NotAllowedError("it has functions of its own")
            if number == MODEL_GRAPH:
                _check_graph(_message(value))
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
    """The fields of a message in protobuf's wire format: numbers and values.  IndexError where it is cut short."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
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
