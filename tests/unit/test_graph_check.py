"""The check of ONNX files against graphs that onnxruntime would read differently."""

import numpy as np
import onnxruntime
import pytest

from fairseq_milk.console.errors import UserError
from fairseq_milk.live.graph_check import check_graph


def varint(number: int) -> bytes:
    rest = number >> 7
    return bytes([number]) if not rest else bytes([number & 127 | 128]) + varint(rest)


def field(number: int, content: "bytes | int", more: int = 0) -> bytes:
    """A field of a protobuf message.  more: is added to its key."""
    if isinstance(content, int):
        return varint((number << 3) + more) + varint(content)
    return varint((number << 3 | 2) + more) + varint(len(content)) + content


def graph(operator: bytes, more: int = 0) -> bytes:
    """An ONNX file with one node, y = operator(x), of two numbers."""
    shape = field(1, field(1, 1) + field(2, field(1, field(1, 2))))
    x, y = (field(1, name) + field(2, shape) for name in (b"x", b"y"))
    node = field(1, b"x") + field(2, b"y") + field(4, operator)
    content = field(1, node, more) + field(2, b"g") + field(11, x) + field(12, y)
    return field(1, 8) + field(7, content) + field(8, field(1, b"") + field(2, 17))


def test_an_operator_of_an_export_is_allowed() -> None:
    check_graph(graph(b"Relu"), "graph")
    with pytest.raises(UserError, match="it has the operator 'Sign'"):
        check_graph(graph(b"Sign"), "graph")


@pytest.mark.parametrize("more", [1 << 32, 1 << 34])
def test_a_field_whose_number_is_too_long_hides_nothing(more: int) -> None:
    """onnxruntime drops the upper bits of the number, finds the node and runs it."""
    hidden = graph(b"Sign", more)
    session = onnxruntime.InferenceSession(hidden, providers=["CPUExecutionProvider"])
    (signs,) = session.run(None, {"x": np.array([-3, 5], np.float32)})
    assert signs.tolist() == [-1.0, 1.0]
    with pytest.raises(UserError, match="is not a graph of fairseq-milk export: it is damaged"):
        check_graph(hidden, "graph")


def test_there_is_no_field_0() -> None:
    with pytest.raises(UserError, match="it is damaged"):
        check_graph(field(0, b"x") + graph(b"Relu"), "graph")
