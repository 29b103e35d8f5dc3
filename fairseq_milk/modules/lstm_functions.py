"""The autograd functions of the layer-normalised LSTM, with a backward written by hand.

Forward: the equations of `layer_norm_lstm`.

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
"""

from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..functional.product import without_autocast


class StepOptions(NamedTuple):
    output_nonlinearity: bool
    cell_clip: float
    eps: float


def float32_or_wider(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


# ---- one step, shared by the whole-sequence layer and the loop -------------------------------------------------------


class Step(NamedTuple):
    """What the backward of one step needs beside c_{t-1}."""

    gates: Tensor  # (B, 4, H): v, i, f, o
    n: Tensor  # (B, 4, H)
    r: Tensor  # (B, 4, 1)
    c: Tensor  # (B, H)


def step_forward(z: Tensor, c: Tensor, scale: Tensor, bias: Tensor, options: StepOptions) -> Tuple[Tensor, Step]:
    """z: (B, 4, H), overwritten with the gates; c: (B, H) -> h (B, H) and what the backward needs."""
    n, _, r = torch.native_layer_norm(z, z.shape[-1:], None, None, options.eps)
    gates = torch.addcmul(bias, n, scale, out=z)
    gates[:, 0].tanh_()
    gates[:, 1:].sigmoid_()
    v, i, f, o = gates.unbind(1)
    c = torch.mul(f, c).addcmul_(i, v)
    if options.cell_clip > 0:
        c.clamp_(-options.cell_clip, options.cell_clip)
    return o * (c.tanh() if options.output_nonlinearity else c), Step(gates, n, r, c)


class Normalised(NamedTuple):
    """Mean 0 and scale 1 of an input that is already normalised; created once for all steps."""

    mean: Tensor  # (B, 4, 1), zeros
    rstd: Tensor  # (B, 4, 1), ones

    @classmethod
    def of(cls, batch: int, like: Tensor) -> "Normalised":
        zeros = torch.zeros(batch, 4, 1, dtype=float32_or_wider(like.dtype), device=like.device)
        return cls(zeros, torch.ones_like(zeros))


def step_backward(
    dh: Tensor,
    dc: Optional[Tensor],
    step: Step,
    c_prev: Tensor,
    scale: Tensor,
    options: StepOptions,
    statistics: Normalised,
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


class Trace(NamedTuple):
    """A run over T steps: outputs, and in training what the backward needs."""

    hs: Tensor  # (T+1, B, H), initial state first
    cs: List[Tensor]  # T+1 of (B, H); the last only, out of training
    gates: Tensor  # (T, B, 4, H)
    steps: List[Step]  # T, empty out of training


def run(
    x: Tensor,
    h0: Tensor,
    c0: Tensor,
    padding: Optional[Tensor],
    weight_x: Tensor,
    weight_h: Tensor,
    scale: Tensor,
    bias: Tensor,
    options: StepOptions,
    training: bool,
) -> Trace:
    steps, batch, hidden = x.size(0), x.size(1), weight_h.size(1)
    wide, narrow = float32_or_wider(x.dtype), weight_h.dtype
    z = torch.mm(x.reshape(steps * batch, x.size(2)).to(narrow), weight_x.t()).to(wide).view(steps, batch, 4, hidden)
    hs = x.new_empty(steps + 1, batch, hidden)
    hs[0] = h0
    scale, bias = scale.to(wide), bias.to(wide)
    trace = Trace(hs, [c0.to(wide)], z, [])
    for t in range(steps):
        z_t = z[t].view(batch, 4 * hidden)
        if wide == narrow:
            z_t.addmm_(hs[t], weight_h.t())
        else:
            z_t.add_(torch.mm(hs[t].to(narrow), weight_h.t()))
        c_prev = trace.cs[-1]
        h, step = step_forward(z[t], c_prev, scale, bias, options)
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


class LayerFunction(torch.autograd.Function):
    """x (T, B, D), h0, c0 (B, H), padding (T, B, 1) -> h (T, B, H), h_T, c_T (B, H).

    The backward writes dz over the gates, so that no second (T, B, 4H) buffer is needed; should it be called again
    (retain_graph), it runs the forward again.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, *args: Any) -> Tuple[Tensor, Tensor, Tensor]:
        trace = run(*args)
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
        trace: Optional[Trace] = ctx.trace
        ctx.trace = None
        if trace is None:
            trace = run(x, h0, c0, padding, weight_x, weight_h, scale, bias, ctx.options, True)
        dz, scale, narrow = trace.gates, scale.to(trace.gates.dtype), weight_h.dtype
        steps, batch, _, hidden = dz.shape
        dscale, dbias = torch.zeros_like(dz[0]), torch.zeros_like(dz[0])
        dh = x.new_zeros(batch, hidden) if dh_last is None else dh_last
        statistics = Normalised.of(batch, dz)
        for t in reversed(range(steps)):
            if dhs is not None:
                dh = dh + dhs[t]
            dh_skip, dc_skip = None, None
            if padding is not None:
                dh_skip, dh = dh * padding[t], dh.masked_fill(padding[t], 0.0)
                if dc is not None:
                    dc_skip, dc = dc * padding[t], dc.masked_fill(padding[t], 0.0)
            step = trace.steps.pop()
            da, dz_over_r, dc = step_backward(dh.to(dz.dtype), dc, step, trace.cs[t], scale, ctx.options, statistics)
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


# ---- step by step, with an input that is known in part ---------------------------------------------------------------


class RecurrentFunction(torch.autograd.Function):
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


class LoopStepFunction(torch.autograd.Function):
    """projected (B, 4H), fed (B, F), h, c (B, H), weight (4H, F+H) -> h, c (B, H).

    The gradient of weight: RecurrentFunction.
    """

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
        options: StepOptions,
        inputs: Optional[List[Tensor]],
        statistics: Normalised,
    ) -> Tuple[Tensor, Tensor]:
        fed_h = torch.cat([fed, h], dim=1).to(weight.dtype)
        wide = float32_or_wider(projected.dtype)
        if projected.dtype == weight.dtype:
            z = torch.addmm(projected, fed_h, weight.t()).to(wide).view(h.size(0), 4, -1)
        else:
            z = torch.add(projected, torch.mm(fed_h, weight.t())).view(h.size(0), 4, -1)
        scale = scale.to(wide)
        h_new, step = step_forward(z, c.to(wide), scale, bias.to(wide), options)
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
        step = Step(*saved)
        dh = torch.zeros_like(step.c) if dh is None else dh.to(scale.dtype)
        da, dz_over_r, dc = step_backward(dh, dc, step, c_prev, scale, ctx.options, ctx.statistics)
        dz = dz_over_r.mul_(step.r).view(dh.size(0), -1).to(ctx.dtype)
        dfed, dh = torch.mm(dz.to(weight.dtype), weight).to(ctx.dtype).tensor_split([ctx.fed_size], dim=1)
        return dz, dfed, dh, dc, None, da.mul(step.n).sum(0), da.sum(0), None, None, None
