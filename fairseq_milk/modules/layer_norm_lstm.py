"""The layer-normalised LSTM of RNMT+ (lingvo's LayerNormalizedLSTMCellSimple), as one fast layer.

One step, for input x_t (B, D) and state h, c (B, H), gate q in (i_i, i_g, f_g, o_g):

    z_t   = W_x x_t + W_h h_{t-1}                           (B, 4, H)   no bias in the product
    n_tq  = (z_tq - mean(z_tq)) * r_tq                      r_tq = 1 / sqrt(var(z_tq) + eps), over H, gate by gate
    a_tq  = scale_q n_tq + bias_q
    v     = tanh(a_i_i),  i = sigmoid(a_i_g),  f = sigmoid(a_f_g),  o = sigmoid(a_o_g)
    c_t   = clip(f c_{t-1} + i v, -cell_clip, cell_clip)    (B, H)
    h_t   = o c_t                                           (o tanh(c_t) with output_nonlinearity)

At a padded step h_t = h_{t-1} and c_t = c_{t-1}, so sentences may be padded on either side.

Backward, for t = T .. 1, with dh, dc = dL/dh_t, dL/dc_t (what later steps and the output send back):

    da_o_g = dh c_t o(1-o)                                  (tanh(c_t) in the place of c_t with output_nonlinearity)
    dc    += dh o                                           (times 1 - tanh(c_t)^2 with output_nonlinearity)
    dc     = dc where |c_t| < cell_clip, else 0
    da_i_i = dc i (1-v^2),  da_i_g = dc v i(1-i),  da_f_g = dc c_{t-1} f(1-f)
    dn_q   = scale_q da_q
    dz_q   = r_q (dn_q - mean(dn_q) - n_q mean(n_q dn_q))
    dL/dc_{t-1} = dc f,   dL/dh_{t-1} = dz_t W_h

and, since they need only the dz_t, once for all steps:

    dW_x = sum_t dz_t' x_t,   dW_h = sum_t dz_t' h_{t-1},   dx_t = dz_t W_x

while dscale = sum_t da_t n_t and dbias = sum_t da_t are added up on the way.

What makes it fast is what is *not* inside the time loop: W_x x_t is one product before it; dW_x, dW_h and dx are one
product each after it.  A step is one product and a dozen elementwise calls, most of them in place, and nothing waits
for the device.  dz is written over the gates, for on a CPU fresh memory costs more than arithmetic.  Sequences are kept
time first inside: h comes back as a transposed view, which the next layer transposes back for nothing.

`LSTMLoop` gives the same price to a layer whose input is only partly known beforehand: the bottom layer of the decoder
reads [y_{i-1}; c_{i-1}], and c_{i-1} comes from the attention between two steps.
"""

from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..functional.product import DecodingWeight, ProductPrecision, without_autocast

INIT_RANGE = 0.04  # RNMT+: every matrix from Uniform(-0.04, 0.04)
# Older versions of torch, such as 2.1, do not have it; with these models cannot be exported.
is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)


class LSTMState(NamedTuple):
    """State after a step. c is float32 in a half-precision model (it is a sum over time), else of the model's type."""

    h: Tensor  # (B, H)
    c: Tensor  # (B, H)

    def select(self, rows: Tensor) -> "LSTMState":
        return LSTMState(self.h.index_select(0, rows), self.c.index_select(0, rows))


class _Options(NamedTuple):
    output_nonlinearity: bool
    cell_clip: float
    eps: float


def _at_least_float32(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


# ---- one step, shared by the whole-sequence layer and the loop -------------------------------------------------------


class _Step(NamedTuple):
    """What the backward of one step needs beside c_{t-1}."""

    gates: Tensor  # (B, 4, H): v, i, f, o
    n: Tensor  # (B, 4, H)
    r: Tensor  # (B, 4, 1)
    c: Tensor  # (B, H)


def _step_forward(z: Tensor, c: Tensor, scale: Tensor, bias: Tensor, options: _Options) -> Tuple[Tensor, _Step]:
    """z: (B, 4, H), overwritten with the gates; c: (B, H) -> h (B, H) and what the backward needs."""
    n, _, r = torch.native_layer_norm(z, z.shape[-1:], None, None, options.eps)
    gates = torch.addcmul(bias, n, scale, out=z)
    gates[:, 0].tanh_()
    gates[:, 1:].sigmoid_()
    v, i, f, o = gates.unbind(1)
    c = torch.mul(f, c).addcmul_(i, v)
    if options.cell_clip > 0:
        c.clamp_(-options.cell_clip, options.cell_clip)
    return o * (c.tanh() if options.output_nonlinearity else c), _Step(gates, n, r, c)


class _Normalised(NamedTuple):
    """The statistics of what is normalised already: the same for every step, hence made once."""

    mean: Tensor  # (B, 4, 1), zeros
    rstd: Tensor  # (B, 4, 1), ones

    @classmethod
    def of(cls, batch: int, like: Tensor) -> "_Normalised":
        zeros = torch.zeros(batch, 4, 1, dtype=_at_least_float32(like.dtype), device=like.device)
        return cls(zeros, torch.ones_like(zeros))


def _step_backward(
    dh: Tensor,
    dc: Optional[Tensor],
    step: _Step,
    c_prev: Tensor,
    scale: Tensor,
    options: _Options,
    statistics: _Normalised,
) -> Tuple[Tensor, Tensor, Tensor]:
    """dh, dc: (B, H) -> da (B, 4, H), dz / r (B, 4, H), dL/dc_{t-1} (B, H)."""
    v, i, f, o = step.gates.unbind(1)
    da = torch.empty_like(step.gates)
    tanh_c = step.c.tanh() if options.output_nonlinearity else step.c
    torch.mul(dh, tanh_c, out=da[:, 3])
    dc_h = torch.mul(dh, o)
    if options.output_nonlinearity:
        dc_h = torch.ops.aten.tanh_backward(dc_h, tanh_c)
    dc = dc_h if dc is None else dc_h.add_(dc)
    if options.cell_clip > 0:
        dc = torch.ops.aten.hardtanh_backward(dc, step.c, -options.cell_clip, options.cell_clip)
    torch.mul(dc, i, out=da[:, 0])
    torch.mul(dc, v, out=da[:, 1])
    torch.mul(dc, c_prev, out=da[:, 2])
    torch.ops.aten.tanh_backward(da[:, 0], v, grad_input=da[:, 0])
    torch.ops.aten.sigmoid_backward(da[:, 1:], step.gates[:, 1:], grad_input=da[:, 1:])
    # the library's backward normalises its input by the statistics it is given: n is normalised already
    dz_over_r = torch.ops.aten.native_layer_norm_backward(
        da * scale, step.n, step.n.shape[-1:], *statistics, None, None, [True, False, False]
    )[0]
    return da, dz_over_r, torch.mul(dc, f)


# ---- the whole sequence ----------------------------------------------------------------------------------------------


class _Trace(NamedTuple):
    """A run over T steps: outputs, and in training what the backward needs."""

    hs: Tensor  # (T+1, B, H), initial state first
    cs: List[Tensor]  # T+1 of (B, H); the last only, out of training
    gates: Tensor  # (T, B, 4, H)
    steps: List[_Step]  # T, empty out of training


def _run(
    x: Tensor,
    h0: Tensor,
    c0: Tensor,
    padding: Optional[Tensor],
    weight_x: Tensor,
    weight_h: Tensor,
    scale: Tensor,
    bias: Tensor,
    options: _Options,
    training: bool,
) -> _Trace:
    steps, batch, hidden = x.size(0), x.size(1), weight_h.size(1)
    wide, narrow = _at_least_float32(x.dtype), weight_h.dtype
    z = torch.mm(x.reshape(steps * batch, x.size(2)).to(narrow), weight_x.t()).to(wide).view(steps, batch, 4, hidden)
    hs = x.new_empty(steps + 1, batch, hidden)
    hs[0] = h0
    scale, bias = scale.to(wide), bias.to(wide)
    trace = _Trace(hs, [c0.to(wide)], z, [])
    for t in range(steps):
        z_t = z[t].view(batch, 4 * hidden)
        if wide == narrow:
            z_t.addmm_(hs[t], weight_h.t())
        else:
            z_t.add_(torch.mm(hs[t].to(narrow), weight_h.t()))
        c_prev = trace.cs[-1]
        h, step = _step_forward(z[t], c_prev, scale, bias, options)
        c = step.c
        if padding is not None:
            h = torch.where(padding[t], hs[t], h.to(hs.dtype))
            c = torch.where(padding[t], c_prev, c)
        hs[t + 1] = h
        if training:
            trace.cs.append(c)
            trace.steps.append(step)
        else:
            trace.cs[-1] = c
    return trace


class _Layer(torch.autograd.Function):
    """x (T, B, D), h0, c0 (B, H), padding (T, B, 1) -> h (T, B, H), h_T, c_T (B, H).

    The backward writes dz over the gates, so that no second (T, B, 4H) buffer is needed; should it be called again
    (retain_graph), it runs the forward again.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, *args: Any) -> Tuple[Tensor, Tensor, Tensor]:
        trace = _run(*args)
        x, h0, c0, padding, weight_x, weight_h, scale, bias, options, training = args
        if training:
            ctx.save_for_backward(x, h0, c0, padding, weight_x, weight_h, scale, bias, trace.hs)
            ctx.options = options
            ctx.trace = trace
            ctx.set_materialize_grads(False)
        return trace.hs[1:], trace.hs[-1].clone(), trace.cs[-1].clone()

    @staticmethod
    @without_autocast
    @once_differentiable
    def backward(ctx: Any, dhs: Optional[Tensor], dh_last: Optional[Tensor], dc: Optional[Tensor]) -> Tuple[Any, ...]:
        x, h0, c0, padding, weight_x, weight_h, scale, bias, hs = ctx.saved_tensors
        trace: Optional[_Trace] = ctx.trace
        ctx.trace = None
        if trace is None:
            trace = _run(x, h0, c0, padding, weight_x, weight_h, scale, bias, ctx.options, True)
        dz, scale, narrow = trace.gates, scale.to(trace.gates.dtype), weight_h.dtype
        steps, batch, _, hidden = dz.shape
        dscale, dbias = torch.zeros_like(dz[0]), torch.zeros_like(dz[0])
        dh = x.new_zeros(batch, hidden) if dh_last is None else dh_last
        statistics = _Normalised.of(batch, dz)
        for t in reversed(range(steps)):
            if dhs is not None:
                dh = dh + dhs[t]
            dh_skip, dc_skip = None, None
            if padding is not None:
                dh_skip, dh = dh * padding[t], dh.masked_fill(padding[t], 0.0)
                if dc is not None:
                    dc_skip, dc = dc * padding[t], dc.masked_fill(padding[t], 0.0)
            step = trace.steps.pop()
            da, dz_over_r, dc = _step_backward(dh.to(dz.dtype), dc, step, trace.cs[t], scale, ctx.options, statistics)
            torch.mul(dz_over_r, step.r, out=dz[t])
            dscale.addcmul_(da, step.n)
            dbias.add_(da)
            dh = torch.mm(dz[t].view(batch, 4 * hidden).to(narrow), weight_h).to(x.dtype)
            if dh_skip is not None:
                dh = dh.add_(dh_skip)
            if dc_skip is not None:
                dc = dc.add_(dc_skip)
        dz = dz.view(steps * batch, 4 * hidden).to(narrow)
        needs = ctx.needs_input_grad
        dx = torch.mm(dz, weight_x).to(x.dtype).view_as(x) if needs[0] else None
        dweight_x = torch.mm(dz.t(), x.reshape(steps * batch, x.size(2)).to(narrow)) if needs[4] else None
        dweight_h = torch.mm(dz.t(), hs[:-1].view(steps * batch, hidden).to(narrow)) if needs[5] else None
        return dx, dh, dc, None, dweight_x, dweight_h, dscale.sum(0), dbias.sum(0), None, None


class LayerNormLSTM(nn.Module):
    """One unidirectional layer: see the equations at the top of this file.

    eps: added to the variance.  lingvo has 1e-8; the default 1e-6 is under 1 % of the variance at initialisation with
    512 units, and bounds the gradient's gain on a constant z (a zero embedding on a zero state) by 1e3 instead of 1e4,
    which float16 needs.  In half precision the statistics, the gates and c are float32.
    cell_clip: 0 turns the clipping off.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        output_nonlinearity: bool = False,
        cell_clip: float = 10.0,
        eps: float = 1e-6,
        products: Optional[ProductPrecision] = None,
    ) -> None:
        super().__init__()
        self.products = products or ProductPrecision()
        self.joined = DecodingWeight(self.products)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.options = _Options(output_nonlinearity, cell_clip, eps)
        self.weight_x = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.weight_h = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.scale = nn.Parameter(torch.empty(4, hidden_size))
        self.bias = nn.Parameter(torch.empty(4, hidden_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.weight_x, -INIT_RANGE, INIT_RANGE)
        nn.init.uniform_(self.weight_h, -INIT_RANGE, INIT_RANGE)
        nn.init.ones_(self.scale)
        nn.init.zeros_(self.bias)

    def train(self, mode: bool = True) -> "LayerNormLSTM":
        self.joined.forget()
        return super().train(mode)

    def zero_state(self, batch: int) -> LSTMState:
        h = self.weight_h.new_zeros(batch, self.hidden_size)
        return LSTMState(h, h.to(_at_least_float32(h.dtype)))

    def forward(
        self, x: Tensor, state: Optional[LSTMState] = None, padding: Optional[Tensor] = None
    ) -> Tuple[Tensor, LSTMState]:
        """x: (B, T, D); state: None = zeros; padding: (B, T) bool, True = padded -> h: (B, T, H), state after step T.

        A batch padded on the right needs no `padding` when only its valid outputs matter: what follows the end of a
        sentence cannot change what came before.  Left padding and the final state need it.
        """
        state = self.zero_state(x.size(0)) if state is None else state
        pad = None if padding is None else padding.t().unsqueeze(2)
        weights = self.products.operand(self.weight_x), self.products.operand(self.weight_h)
        parameters = (*weights, self.scale, self.bias)
        training = torch.is_grad_enabled()
        arguments = (x.transpose(0, 1), *state, pad, *parameters, self.options, training)
        h, h_last, c_last = _Layer.apply(*arguments)  # type: ignore[no-untyped-call]
        return h.transpose(0, 1), LSTMState(h_last, c_last)

    def step(self, x: Tensor, state: Optional[LSTMState] = None) -> LSTMState:
        """x: (B, D) -> state after one step: a sequence of length one, without its buffers outside of training."""
        if torch.is_grad_enabled():
            return self.forward(x.unsqueeze(1), state)[1]
        state = self.zero_state(x.size(0)) if state is None else state
        if is_exporting():
            return self._plain_step(x, state)
        wide = _at_least_float32(x.dtype)
        z = self.joined.linear(torch.cat((x, state.h), dim=1), self.weight_x, self.weight_h).to(wide)
        scale, bias = self.scale.to(wide), self.bias.to(wide)
        h, after = _step_forward(z.view(-1, 4, self.hidden_size), state.c.to(wide), scale, bias, self.options)
        return LSTMState(h.to(x.dtype), after.c)

    def _plain_step(self, x: Tensor, state: LSTMState) -> LSTMState:
        """The same in a few operations that change nothing in place, of which a traced graph consists."""
        options, wide = self.options, _at_least_float32(x.dtype)
        z = self.products.linear(x, self.weight_x) + self.products.linear(state.h, self.weight_h)
        n = F.layer_norm(z.to(wide).view(-1, 4, self.hidden_size), (self.hidden_size,), eps=options.eps)
        gates = n * self.scale.to(wide) + self.bias.to(wide)
        i, f, o = gates[:, 1:].sigmoid().unbind(1)
        c = f * state.c.to(wide) + i * gates[:, 0].tanh()
        if options.cell_clip > 0:
            c = c.clamp(-options.cell_clip, options.cell_clip)
        return LSTMState((o * (c.tanh() if options.output_nonlinearity else c)).to(x.dtype), c)

    def loop(self, known: Tensor) -> "LSTMLoop":
        """known: (B, T, K), the first K of the D input features at every step; the others are fed step by step."""
        return LSTMLoop(self, known)


# ---- step by step, with an input that is known in part ---------------------------------------------------------------


class _Recurrent(torch.autograd.Function):
    """The weight gradient of all steps of a loop at once.

    projected (T, B, 4H) passes through.  Its gradient is dz of every step, and arrives when the backward of every step
    is done: dW = sum_t dz_t' [fed_t; h_{t-1}].  The steps fill `inputs` with [fed_t; h_{t-1}] and leave W alone.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, projected: Tensor, weight: Tensor, inputs: List[Tensor]) -> Tensor:
        ctx.inputs = inputs
        return projected.view_as(projected)

    @staticmethod
    @without_autocast
    @once_differentiable
    def backward(ctx: Any, dz: Tensor) -> Tuple[Any, ...]:
        dweight = None
        if ctx.needs_input_grad[1] and ctx.inputs:
            taken = dz[: len(ctx.inputs)]
            inputs = torch.cat(ctx.inputs, dim=0)
            dweight = torch.mm(taken.reshape(-1, dz.size(-1)).to(inputs.dtype).t(), inputs)
        return dz, dweight, None


class _LoopStep(torch.autograd.Function):
    """projected (B, 4H), fed (B, F), h, c (B, H), weight (4H, F+H) -> h, c (B, H).  weight's gradient: _Recurrent."""

    @staticmethod
    @without_autocast
    def forward(
        ctx: Any,
        projected: Tensor,
        fed: Tensor,
        h: Tensor,
        c: Tensor,
        weight: Tensor,
        scale: Tensor,
        bias: Tensor,
        options: _Options,
        inputs: Optional[List[Tensor]],
        statistics: _Normalised,
    ) -> Tuple[Tensor, Tensor]:
        fed_h = torch.cat([fed, h], dim=1).to(weight.dtype)
        wide = _at_least_float32(projected.dtype)
        if projected.dtype == weight.dtype:
            z = torch.addmm(projected, fed_h, weight.t()).to(wide).view(h.size(0), 4, -1)
        else:
            z = torch.add(projected, torch.mm(fed_h, weight.t())).view(h.size(0), 4, -1)
        scale = scale.to(wide)
        h_new, step = _step_forward(z, c.to(wide), scale, bias.to(wide), options)
        if inputs is not None:
            inputs.append(fed_h)
            ctx.save_for_backward(c, weight, scale, *step)
            ctx.options, ctx.fed_size, ctx.dtype, ctx.statistics = options, fed.size(1), h.dtype, statistics
            ctx.set_materialize_grads(False)
        return h_new.to(h.dtype), step.c

    @staticmethod
    @without_autocast
    @once_differentiable
    def backward(ctx: Any, dh: Optional[Tensor], dc: Optional[Tensor]) -> Tuple[Any, ...]:
        c_prev, weight, scale, *saved = ctx.saved_tensors
        step = _Step(*saved)
        dh = torch.zeros_like(step.c) if dh is None else dh.to(scale.dtype)
        da, dz_over_r, dc = _step_backward(dh, dc, step, c_prev, scale, ctx.options, ctx.statistics)
        dz = dz_over_r.mul_(step.r).view(dh.size(0), -1).to(ctx.dtype)
        dfed, dh = torch.mm(dz.to(weight.dtype), weight).to(ctx.dtype).tensor_split([ctx.fed_size], dim=1)
        return dz, dfed, dh, dc, None, da.mul(step.n).sum(0), da.sum(0), None, None, None


class LSTMLoop:
    """The steps of a layer whose input is [known_t; fed_t]: known_t given beforehand, fed_t (B, D - K) only at step t.

        loop = lstm.loop(y)                       # y: (B, I, K)
        for i in range(I):
            state = loop.step(context, state)     # context: (B, D - K) -> LSTMState
            context = attention(state.h)

    Steps are taken in order, each once; there need not be I of them.
    """

    def __init__(self, lstm: LayerNormLSTM, known: Tensor) -> None:
        k = known.size(-1)
        weight = lstm.products.operand(torch.cat([lstm.weight_x[:, k:], lstm.weight_h], dim=1))
        self.lstm = lstm
        self.weight = weight.detach()
        self.inputs: Optional[List[Tensor]] = None
        projected = lstm.products.linear(known.transpose(0, 1), lstm.weight_x[:, :k])
        if torch.is_grad_enabled():
            self.inputs = []
            projected = _Recurrent.apply(projected, weight, self.inputs)  # type: ignore[no-untyped-call]
        self.projected = iter(projected.unbind(0))
        self.statistics = _Normalised.of(known.size(0), known)

    def step(self, fed: Tensor, state: Optional[LSTMState] = None) -> LSTMState:
        lstm = self.lstm
        state = lstm.zero_state(fed.size(0)) if state is None else state
        parameters = (self.weight, lstm.scale, lstm.bias)
        arguments = (next(self.projected), fed, *state, *parameters, lstm.options, self.inputs, self.statistics)
        return LSTMState(*_LoopStep.apply(*arguments))  # type: ignore[no-untyped-call]
