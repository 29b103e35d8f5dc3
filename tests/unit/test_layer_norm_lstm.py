"""The layer-normalised LSTM against the equations of its file, one step after the other, in float64."""

import itertools
from typing import Any, List, NamedTuple, Optional, Tuple

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from fairseq_milk.modules import LayerNormLSTM, LSTMState, lstm_functions
from tests.support.torch_features import FLOAT16, needs_float16

B, T, D, H = 3, 5, 4, 6
OPTIONS = list(itertools.product([False, True], [10.0, 0.3, 0.0]))  # output_nonlinearity, cell_clip


# --- oracle -------------------------------------------------------------------------------------------------------


def oracle_step(lstm: LayerNormLSTM, x: Tensor, h: Tensor, c: Tensor) -> Tuple[Tensor, Tensor]:
    """One step as lingvo's LayerNormalizedLSTMCellSimple has it: concatenate, multiply, split, normalise each."""
    nonlinearity, clip, eps = lstm.options
    weight = torch.cat([lstm.weight_x, lstm.weight_h], dim=1)
    gates = []
    for q, z in enumerate(torch.cat([x, h], dim=1).matmul(weight.t()).chunk(4, dim=1)):
        mean = z.mean(1, keepdim=True)
        variance = (z - mean).pow(2).mean(1, keepdim=True)
        gates.append((z - mean) / (variance + eps).sqrt() * lstm.scale[q] + lstm.bias[q])
    i_i, i_g, f_g, o_g = gates
    c = torch.sigmoid(f_g) * c + torch.sigmoid(i_g) * torch.tanh(i_i)
    if clip > 0:
        c = c.clamp(-clip, clip)
    return torch.sigmoid(o_g) * (torch.tanh(c) if nonlinearity else c), c


def oracle(lstm: LayerNormLSTM, x: Tensor, h: Tensor, c: Tensor, padding: Optional[Tensor] = None) -> List[Tensor]:
    outputs = []
    for t in range(x.size(1)):
        h_new, c_new = oracle_step(lstm, x[:, t], h, c)
        if padding is not None:
            rows = padding[:, t].tolist()
            h_new = torch.stack([h[b] if pad else h_new[b] for b, pad in enumerate(rows)])
            c_new = torch.stack([c[b] if pad else c_new[b] for b, pad in enumerate(rows)])
        h, c = h_new, c_new
        outputs.append(h)
    return [torch.stack(outputs, dim=1), h, c]


# --- helpers ------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    lstm: LayerNormLSTM
    x: Tensor
    h: Tensor
    c: Tensor


def case(nonlinearity: bool = False, clip: float = 10.0, dtype: torch.dtype = torch.float64) -> Case:
    """Parameters far from their initialisation, so that no factor is 1 by accident."""
    lstm = LayerNormLSTM(D, H, nonlinearity, clip)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter)
    lstm.to(dtype)
    x, h, c = torch.randn(B, T, D), torch.randn(B, H), torch.randn(B, H)
    return Case(lstm, *(tensor.to(dtype).requires_grad_() for tensor in (x, h, c)))


def random_padding() -> Tensor:
    """Random padding, also inside a sentence, and one sentence that is all padding."""
    padding = torch.rand(B, T) < 0.4
    padding[0] = True
    return padding


def loss(tensors: List[Tensor]) -> Tensor:
    generator = torch.Generator().manual_seed(7)
    weights = (torch.randn(tensor.shape, generator=generator).to(tensor.dtype) for tensor in tensors)
    return torch.stack([(weight * tensor).sum() for weight, tensor in zip(weights, tensors)]).sum()


def assert_same(c: Case, ours: List[Tensor], truth: List[Tensor]) -> None:
    """Values, and the gradient of one random combination of them for every input and parameter."""
    for value, true_value in zip(ours, truth):
        torch.testing.assert_close(value, true_value)
    wanted = [c.x, c.h, c.c, *c.lstm.parameters()]
    for value, true_value in zip(torch.autograd.grad(loss(ours), wanted), torch.autograd.grad(loss(truth), wanted)):
        torch.testing.assert_close(value, true_value)


def run(c: Case, padding: Optional[Tensor] = None) -> List[Tensor]:
    h, state = c.lstm(c.x, LSTMState(c.h, c.c), padding)
    return [h, *state]


# --- the whole sequence -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nonlinearity, clip", OPTIONS)
@pytest.mark.parametrize("padded", [False, True])
def test_values_and_gradients_are_those_of_the_equations(nonlinearity: bool, clip: float, padded: bool) -> None:
    c = case(nonlinearity, clip)
    padding = random_padding() if padded else None
    assert_same(c, run(c, padding), oracle(*c, padding))


def test_the_clip_of_the_options_is_reached() -> None:
    """The values of the test above are large enough for the clip."""
    assert float(run(case(clip=0.3))[2].detach().abs().max()) == pytest.approx(0.3)
    assert float(run(case(clip=0.0))[2].detach().abs().max()) > 0.3


@pytest.mark.parametrize("nonlinearity", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_gradcheck(nonlinearity: bool, padded: bool) -> None:
    c = case(nonlinearity)
    padding = random_padding() if padded else None

    def layer(x: Tensor, h: Tensor, cell: Tensor, *_: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        outputs, state = c.lstm(x, LSTMState(h, cell), padding)
        return outputs, state.h, state.c

    x = c.x.detach()[:, :3].requires_grad_()
    assert gradcheck(layer, (x, c.h, c.c, *c.lstm.parameters()))


@pytest.mark.parametrize("used", [0, 1, 2])
def test_each_output_alone_has_its_gradient(used: int) -> None:
    """If only one of the three outputs is used, the others contribute no gradient."""
    c = case()
    assert_same(c, [run(c)[used]], [oracle(*c)[used]])


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(side: str) -> None:
    c = case()
    junk = torch.full((B, 3, D), 7.0, dtype=torch.float64)
    flags = torch.zeros(B, T + 3).bool()
    if side == "left":
        flags[:, :3] = True
        h, state = c.lstm(torch.cat([junk, c.x], dim=1), LSTMState(c.h, c.c), flags)
        h = h[:, 3:]
    else:
        flags[:, T:] = True
        h, state = c.lstm(torch.cat([c.x, junk], dim=1), LSTMState(c.h, c.c), flags)
        h = h[:, :T]
    assert_same(c, [h, *state], run(c))


def test_right_padding_needs_no_mask_for_the_valid_outputs() -> None:
    c = case()
    junk = torch.full((B, 3, D), 7.0, dtype=torch.float64)
    h, _ = c.lstm(torch.cat([c.x, junk], dim=1), LSTMState(c.h, c.c))
    assert_same(c, [h[:, :T]], run(c)[:1])


def test_a_padded_step_repeats_the_state_before_it() -> None:
    c = case()
    padding = torch.zeros(B, T).bool()
    padding[1, 2] = True
    h = run(c, padding)[0]
    assert h[1, 2].equal(h[1, 1]) and not h[0, 2].equal(h[0, 1])


def test_the_default_state_is_zero() -> None:
    c = case()
    zeros = torch.zeros(B, H, dtype=torch.float64)
    h, state = c.lstm(c.x)
    for value, truth in zip([h, *state], oracle(c.lstm, c.x, zeros, zeros)):
        torch.testing.assert_close(value, truth)
    assert all(tensor.eq(0).all() and tensor.shape == (B, H) for tensor in c.lstm.zero_state(B))


def test_a_second_backward_gives_the_same_gradient() -> None:
    c = case()
    total = loss(run(c, random_padding()))
    wanted = [c.x, c.h, c.c, *c.lstm.parameters()]
    first = torch.autograd.grad(total, wanted, retain_graph=True)
    for a, b in zip(first, torch.autograd.grad(total, wanted)):
        torch.testing.assert_close(a, b)


def test_without_grad_the_values_are_the_same_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    c = case()
    padding = random_padding()
    truth, traces, original = run(c, padding), [], lstm_functions.run

    def spy(*args: Any) -> Any:
        traces.append(original(*args))
        return traces[-1]

    monkeypatch.setattr(lstm_functions, "run", spy)
    with torch.no_grad():
        plain = run(c, padding)
    assert not traces[0].steps and len(traces[0].cs) == 1
    for value, true_value in zip(plain, truth):
        assert not value.requires_grad
        torch.testing.assert_close(value, true_value)


def test_a_frozen_layer_passes_the_gradient_on() -> None:
    c = case()
    (truth,) = torch.autograd.grad(loss(run(c)), c.x)
    c.lstm.requires_grad_(False)
    torch.testing.assert_close(torch.autograd.grad(loss(run(c)), c.x)[0], truth)


def test_changing_an_output_in_place_is_noticed() -> None:
    """Writing over h before the backward, which needs it, is an error."""
    c = case()
    h, _ = c.lstm(c.x)
    with pytest.raises(RuntimeError, match="inplace|in-place|view"):
        h.mul_(2.0)
        h.sum().backward()


def test_initial_parameters() -> None:
    lstm = LayerNormLSTM(64, 64)
    for weight in (lstm.weight_x, lstm.weight_h):
        assert 0.039 < float(weight.detach().abs().max()) <= 0.04
    assert lstm.scale.eq(1).all() and lstm.bias.eq(0).all()


def test_a_sequence_of_no_steps_keeps_the_state() -> None:
    c = case()
    h, state = c.lstm(c.x[:, :0], LSTMState(c.h, c.c))
    assert h.shape == (B, 0, H) and state.h.equal(c.h) and state.c.equal(c.c)


# --- step by step -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nonlinearity, clip", OPTIONS)
def test_step_by_step_is_the_whole_sequence(nonlinearity: bool, clip: float) -> None:
    c = case(nonlinearity, clip)
    state, outputs = LSTMState(c.h, c.c), []
    for t in range(T):
        state = c.lstm.step(c.x[:, t], state)
        outputs.append(state.h)
    assert_same(c, [torch.stack(outputs, dim=1), *state], run(c))


@pytest.mark.parametrize("nonlinearity, clip", OPTIONS)
def test_the_step_that_is_traced_is_the_step(nonlinearity: bool, clip: float) -> None:
    c = case(nonlinearity, clip)
    state = LSTMState(c.h, c.c)
    with torch.no_grad():
        for plain, step in zip(c.lstm._plain_step(c.x[:, 0], state), c.lstm.step(c.x[:, 0], state)):
            torch.testing.assert_close(plain, step, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("nonlinearity, clip", OPTIONS)
@pytest.mark.parametrize("known", [0, 1, D])
def test_the_loop_is_the_whole_sequence(nonlinearity: bool, clip: float, known: int) -> None:
    c = case(nonlinearity, clip)
    loop, state, outputs = c.lstm.loop(c.x[..., :known]), LSTMState(c.h, c.c), []
    for t in range(T):
        state = loop.step(c.x[:, t, known:], state)
        outputs.append(state.h)
    assert_same(c, [torch.stack(outputs, dim=1), *state], run(c))


@pytest.mark.parametrize("steps", [3, T])
def test_the_loop_with_feedback(steps: int) -> None:
    """Step by step as in the decoder: each input depends on the previous state, and a sequence may end early."""
    c = case()

    def feedback(h: Tensor) -> Tensor:
        return torch.tanh(h[:, : D - 1])

    loop, state, ours = c.lstm.loop(c.x[..., :1]), LSTMState(c.h, c.c), []
    h, cell, truth = c.h, c.c, []
    for t in range(steps):
        state = loop.step(feedback(state.h), state)
        h, cell = oracle_step(c.lstm, torch.cat([c.x[:, t, :1], feedback(h)], dim=1), h, cell)
        ours.append(state.h)
        truth.append(h)
    assert_same(c, [torch.stack(ours), state.c], [torch.stack(truth), cell])


def test_the_loop_when_only_a_middle_step_counts() -> None:
    c = case()
    loop, state, outputs = c.lstm.loop(c.x[..., :2]), LSTMState(c.h, c.c), []
    for t in range(T):
        state = loop.step(c.x[:, t, 2:], state)
        outputs.append(state.h)
    assert_same(c, [outputs[2]], [run(c)[0][:, 2]])


def test_the_loop_when_only_the_cell_counts() -> None:
    c = case()
    state = c.lstm.loop(c.x[:, :1, :2]).step(c.x[:, 0, 2:], LSTMState(c.h, c.c))
    assert_same(c, [state.c], [oracle(c.lstm, c.x[:, :1], c.h, c.c)[2]])


def test_two_backwards_through_a_loop() -> None:
    c = case()
    loop = c.lstm.loop(c.x[..., :2])
    state = loop.step(c.x[:, 0, 2:], LSTMState(c.h, c.c))
    total = loss(list(loop.step(c.x[:, 1, 2:], state)))
    wanted = [c.x, c.h, c.c, *c.lstm.parameters()]
    first = torch.autograd.grad(total, wanted, retain_graph=True)
    for a, b in zip(first, torch.autograd.grad(total, wanted)):
        torch.testing.assert_close(a, b)


def test_a_loop_without_grad_and_without_a_state() -> None:
    c = case()
    truth = c.lstm(c.x)[0]
    with torch.no_grad():
        loop, state = c.lstm.loop(c.x[..., :2]), None
        for t in range(T):
            state = loop.step(c.x[:, t, 2:], state)
            torch.testing.assert_close(state.h, truth[:, t])
    assert loop.inputs is None


# --- types --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype, bound",
    [(torch.float32, 1e-5), pytest.param(torch.float16, 0.02, marks=needs_float16), (torch.bfloat16, 0.1)],
)
@pytest.mark.parametrize("how", ["layer", "loop"])
def test_other_types_are_close_to_float64(dtype: torch.dtype, bound: float, how: str) -> None:
    torch.manual_seed(3)
    exact = case()
    torch.manual_seed(3)
    rough = case(dtype=dtype)
    results = []
    for c in (rough, exact):
        c = c._replace(x=c.x.detach()[:, :4].requires_grad_())
        if how == "layer":
            h, state = c.lstm(c.x)
        else:
            loop, state, outputs = c.lstm.loop(c.x[..., :2]), c.lstm.zero_state(B), []
            for t in range(4):
                state = loop.step(c.x[:, t, 2:], state)
                outputs.append(state.h)
            h = torch.stack(outputs, dim=1)
        assert h.dtype == c.x.dtype and state.c.dtype == (
            torch.float64 if c.x.dtype == torch.float64 else torch.float32
        )
        results.append([h, *torch.autograd.grad(h.sum(), [c.x, *c.lstm.parameters()])])
    for value, truth in zip(*results):
        assert value.isfinite().all()
        assert float((value.detach().double() - truth).norm() / truth.norm()) < bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_cell_is_never_half_precision(dtype: torch.dtype) -> None:
    lstm = LayerNormLSTM(D, H).to(dtype)
    assert lstm.zero_state(B).h.dtype == dtype and lstm.zero_state(B).c.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, FLOAT16, torch.bfloat16])
def test_a_constant_z_is_harmless(dtype: torch.dtype) -> None:
    """The zero vector on the zero state: the variance is 0."""
    lstm = LayerNormLSTM(D, H).to(dtype)
    x = torch.zeros(B, T, D, dtype=dtype, requires_grad=True)
    h, _ = lstm(x)
    h.sum().backward()
    assert x.grad is not None and h.isfinite().all() and x.grad.isfinite().all()


def test_long_sequences_stay_within_the_clip() -> None:
    lstm = LayerNormLSTM(2, 8)
    torch.nn.init.constant_(lstm.bias, 8.0)  # every gate open: c grows by about 1 per step
    h, state = lstm(torch.randn(2, 40, 2))
    assert float(state.c.detach().abs().max()) == 10.0 and float(h.detach().abs().max()) <= 10.0
