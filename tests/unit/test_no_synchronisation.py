"""On a GPU the training step must not wait for a value: no `.item()`, no boolean index, no shape that depends on data.

The step is traced operator by operator on the CPU, and run on `meta` tensors, which have shapes but no values, so that
an operator that needs a value fails.  A step is forward, criterion and backward; `rnmt_adam` also reads the norm of
the gradient once per update, as fairseq's own trainer does.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_milk.attention import Memory, context
from tests.support import tiny_models as tiny
from tests.support.tiny_models import Kind
from tests.support.torch_features import needs_meta

# a value goes to Python, or decides a shape
VALUES = {"_local_scalar_dense", "item", "is_nonzero", "equal", "allclose"}
SHAPES = {"nonzero", "nonzero_numpy", "argwhere", "masked_select", "unique_dim", "_unique", "_unique2", "bincount"}
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"}


class Synchronisations(TorchDispatchMode):
    """The operators that would wait for the GPU, and the number of all operators."""

    def __init__(self) -> None:
        super().__init__()
        self.found: List[str] = []
        self.operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self.operators += 1
        name = func.__name__.split(".")[0]
        masks = name in INDEXED and any(index is not None and index.dtype == torch.bool for index in args[1])
        if name in VALUES | SHAPES or masks:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


class Variant(NamedTuple):
    """Options that take another path through the head or the criterion."""

    model: Dict[str, Any] = {}
    criterion: Dict[str, Any] = {}


USUAL = Variant()
VARIANTS = {
    "published": Variant(model=dict(published_alignment=True)),
    "unpreserved": Variant(model=dict(unpreserved_mass=True), criterion=dict(latency_metric="ap")),
    "both": Variant(model=dict(published_alignment=True, unpreserved_mass=True)),
    "accuracy": Variant(criterion=dict(report_accuracy=True)),
}


MILK = Kind("milk")


def training_step(kind: Kind, device: str = "cpu", variant: Variant = USUAL) -> Callable[[], None]:
    """Forward, criterion with lambda > 0, and backward, of the model with everything switched on."""
    sizes: Dict[str, Any] = dict(encoder_layers=3, decoder_layers=3, dropout=0.2, noise=4.0)
    model = kind.build(**sizes, **variant.model).train()
    criterion = tiny.criterion(latency_weight=0.2, **variant.criterion)
    sample = tiny.batch(tiny.pairs(5))
    if device != "cpu":
        model.to(device)
        net_input: Dict[str, Tensor] = {name: x.to(device) for name, x in sample["net_input"].items()}
        sample = {**sample, "net_input": net_input, "target": sample["target"].to(device)}

    def step() -> None:
        loss, _, _ = criterion(model, sample)
        loss.backward()

    return step


def traced(step: Callable[[], None]) -> Synchronisations:
    with Synchronisations() as trace:
        step()
    assert trace.operators > 100, "the step was not traced"
    return trace


@pytest.mark.parametrize("kind", tiny.BOTH_FAMILIES, ids=str)
def test_no_operator_of_a_training_step_waits_for_a_value(kind: Kind) -> None:
    assert traced(training_step(kind)).found == []


@needs_meta
@pytest.mark.parametrize("kind", tiny.BOTH_FAMILIES, ids=str)
def test_a_training_step_needs_no_values(kind: Kind) -> None:
    training_step(kind, "meta")()


@needs_meta
@pytest.mark.parametrize("kind", [*map(Kind, tiny.LEARNED), Kind("milk", heads=2, schedules=2)], ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_operator_of_another_variant_waits_for_a_value(kind: Kind, variant: str) -> None:
    assert traced(training_step(kind, variant=VARIANTS[variant])).found == []
    training_step(kind, "meta", VARIANTS[variant])()


def item(beta: Tensor) -> None:
    float(beta.sum())


def branch(beta: Tensor) -> None:
    assert beta.sum() > -1


def boolean_index(beta: Tensor) -> None:
    beta[beta > 0]


def nonzero(beta: Tensor) -> None:
    beta.nonzero()


def write_through_mask(beta: Tensor) -> None:
    beta.clone()[beta < 0] = 0.0


PLANTED: Dict[Callable[[Tensor], None], str] = {
    item: "_local_scalar_dense",
    branch: "_local_scalar_dense",
    boolean_index: "index",
    nonzero: "nonzero",
    write_through_mask: "index_put_",
}


def plant(monkeypatch: pytest.MonkeyPatch, mistake: Callable[[Tensor], None]) -> None:
    def mistaken(beta: Tensor, memory: Memory) -> Tensor:
        mistake(beta.detach())
        return context(beta, memory)

    monkeypatch.setattr("fairseq_milk.attention.attention.context", mistaken)


@pytest.mark.parametrize("mistake", PLANTED)
def test_the_trace_finds_what_is_planted(monkeypatch: pytest.MonkeyPatch, mistake: Callable[[Tensor], None]) -> None:
    plant(monkeypatch, mistake)
    assert PLANTED[mistake] in traced(training_step(MILK)).found


@pytest.mark.parametrize("mistake", [item, branch, nonzero, boolean_index])
def test_a_run_on_meta_tensors_finds_it(monkeypatch: pytest.MonkeyPatch, mistake: Callable[[Tensor], None]) -> None:
    plant(monkeypatch, mistake)
    with pytest.raises((RuntimeError, NotImplementedError)):
        training_step(MILK, "meta")()


def test_a_backward_is_traced_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, beta: Tensor) -> Tensor:
            return beta.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * float(grad.isfinite().all())

    def mistaken(beta: Tensor, memory: Memory) -> Tensor:
        return context(Backward.apply(beta), memory)

    monkeypatch.setattr("fairseq_milk.attention.attention.context", mistaken)
    assert "_local_scalar_dense" in traced(training_step(MILK)).found
