"""The additive energy, whose backward is written by hand, against autograd over the paper's sum."""

from typing import Tuple

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from fairseq_milk.functional import additive_energy
from tests.support import oracles
from tests.support.torch_features import FLOAT16


def arguments(batch_size: int, src_size: int, dim: int, scale: float = 1.0) -> Tuple[Tensor, Tensor, Tensor]:
    """keys, query, v."""
    keys = (torch.randn(batch_size, src_size, dim) * scale).requires_grad_()
    query = (torch.randn(batch_size, dim) * scale).requires_grad_()
    return keys, query, torch.randn(dim).requires_grad_()


@pytest.mark.parametrize("batch_size, src_size, dim", [(4, 7, 16), (1, 1, 1), (3, 1, 5), (1, 9, 2)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_energy_and_gradient(batch_size: int, src_size: int, dim: int, scale: float) -> None:
    inputs = arguments(batch_size, src_size, dim, scale)
    doubles = tuple(x.detach().double().requires_grad_() for x in inputs)
    energy, truth = additive_energy(*inputs), oracles.additive_energy(*doubles)
    assert energy.shape == (batch_size, src_size)
    assert (energy - truth).abs().max() < 1e-5
    weights = torch.randn(batch_size, src_size)
    grads = torch.autograd.grad((energy * weights).sum(), inputs)
    grads_truth = torch.autograd.grad((truth * weights).sum(), doubles)
    for x, grad, grad_truth in zip(inputs, grads, grads_truth):
        assert grad.shape == x.shape and (grad - grad_truth).abs().max() < 1e-5


def test_gradcheck() -> None:
    assert gradcheck(additive_energy, tuple(x.detach().double().requires_grad_() for x in arguments(2, 4, 3)))


def test_the_inputs_are_left_alone() -> None:
    """The inputs are unchanged: the computation in place uses copies."""
    inputs = arguments(2, 4, 3)
    before = [x.detach().clone() for x in inputs]
    additive_energy(*inputs).sum().backward()
    assert all(torch.equal(x, y) for x, y in zip(inputs, before))


def test_keys_used_at_several_steps_add_up() -> None:
    keys, query, v = arguments(2, 4, 3)
    second = torch.randn(2, 3)
    (additive_energy(keys, query, v).sum() + additive_energy(keys, second, v).square().sum()).backward()
    twin = keys.detach().double().requires_grad_()
    first_energy = oracles.additive_energy(twin, query.detach(), v.detach())
    (first_energy.sum() + oracles.additive_energy(twin, second, v.detach()).square().sum()).backward()
    assert keys.grad is not None and twin.grad is not None
    assert (keys.grad - twin.grad).abs().max() < 1e-5


@pytest.mark.parametrize("dtype", [FLOAT16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    inputs = tuple(x.detach().to(dtype).requires_grad_() for x in arguments(4, 7, 16))
    energy = additive_energy(*inputs)
    assert (energy - oracles.additive_energy(*(x.detach() for x in inputs))).abs().max() < 0.05
    energy.sum().backward()
    for x in inputs:
        assert x.grad is not None and x.grad.dtype == dtype and torch.isfinite(x.grad).all()


@pytest.mark.parametrize("keys_dtype", [torch.float32, torch.bfloat16])
def test_autocast(keys_dtype: torch.dtype) -> None:
    """Under autocast: float32 parameters, keys of the type of the projection, the backward outside of autocast."""
    keys, query, v = arguments(4, 7, 16)
    keys = keys.detach().to(keys_dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        energy = additive_energy(keys, query, v)
    truth_inputs = [x.detach().double().requires_grad_() for x in (keys, query, v)]
    truth = oracles.additive_energy(*truth_inputs)
    assert (energy - truth).abs().max() < 0.1
    energy.float().sum().backward()
    truth.sum().backward()
    for x, y in zip((keys, query, v), truth_inputs):
        assert x.grad is not None and y.grad is not None and x.grad.dtype == x.dtype
        assert (x.grad - y.grad).abs().max() < 0.1


def test_extreme_energies_are_finite() -> None:
    inputs = arguments(2, 4, 3, scale=1e30)
    energy = additive_energy(*inputs)
    energy.sum().backward()
    assert torch.isfinite(energy).all() and energy.abs().max() <= inputs[2].abs().sum() * (1 + 1e-6)
    assert all(x.grad is not None and torch.isfinite(x.grad).all() for x in inputs)
