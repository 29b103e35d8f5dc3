"""The layer-normalised LSTM of RNMT+ (lingvo's LayerNormalizedLSTMCellSimple), as one fast layer.

One step, for input x_t (B, D) and state h, c (B, H), gate q in (i_i, i_g, f_g, o_g):

    z_t   = W_x x_t + W_h h_{t-1}                           (B, 4, H)   no bias in the product
    n_tq  = (z_tq - mean(z_tq)) * r_tq                      r_tq = 1 / sqrt(var(z_tq) + eps), over H, gate by gate
    a_tq  = scale_q n_tq + bias_q
    v     = tanh(a_i_i),  i = sigmoid(a_i_g),  f = sigmoid(a_f_g),  o = sigmoid(a_o_g)
    c_t   = clip(f c_{t-1} + i v, -cell_clip, cell_clip)    (B, H)
    h_t   = o c_t                                           (o tanh(c_t) with output_nonlinearity)

At a padded step h_t = h_{t-1} and c_t = c_{t-1}, so sentences may be padded on either side.

`lstm_functions` computes all steps of a sequence, forward and backward.

`LSTMLoop` gives the same price to a layer whose input is only partly known beforehand: the bottom layer of the decoder
reads [y_{i-1}; c_{i-1}], and c_{i-1} comes from the attention between two steps.
"""

from typing import Callable, List, NamedTuple, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from ..functional.product import DecodingWeight, ProductPrecision
from .lstm_functions import (
    LayerFunction,
    LoopStepFunction,
    Normalised,
    RecurrentFunction,
    StepOptions,
    float32_or_wider,
    step_forward,
)

INIT_RANGE = 0.04  # RNMT+: every matrix from Uniform(-0.04, 0.04)
# Older versions of torch, such as 2.1, do not have it; with these models cannot be exported.
is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)


class LSTMState(NamedTuple):
    """State after a step. c is float32 in a half-precision model (it is a sum over time), else of the model's type."""

    h: Tensor  # (B, H)
    c: Tensor  # (B, H)

    def select(self, rows: Tensor) -> "LSTMState":
        return LSTMState(self.h.index_select(0, rows), self.c.index_select(0, rows))


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
        self.options = StepOptions(output_nonlinearity, cell_clip, eps)
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
        return LSTMState(h, h.to(float32_or_wider(h.dtype)))

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
        h, h_last, c_last = LayerFunction.apply(*arguments)  # type: ignore[no-untyped-call]
        return h.transpose(0, 1), LSTMState(h_last, c_last)

    def step(self, x: Tensor, state: Optional[LSTMState] = None) -> LSTMState:
        """x: (B, D) -> state after one step: a sequence of length one, without its buffers outside of training."""
        if torch.is_grad_enabled():
            return self.forward(x.unsqueeze(1), state)[1]
        state = self.zero_state(x.size(0)) if state is None else state
        if is_exporting():
            return self._plain_step(x, state)
        wide = float32_or_wider(x.dtype)
        z = self.joined.linear(torch.cat((x, state.h), dim=1), self.weight_x, self.weight_h).to(wide)
        scale, bias = self.scale.to(wide), self.bias.to(wide)
        h, after = step_forward(z.view(-1, 4, self.hidden_size), state.c.to(wide), scale, bias, self.options)
        return LSTMState(h.to(x.dtype), after.c)

    def _plain_step(self, x: Tensor, state: LSTMState) -> LSTMState:
        """The same in a few operations that change nothing in place, of which a traced graph consists."""
        options, wide = self.options, float32_or_wider(x.dtype)
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
            projected = RecurrentFunction.apply(projected, weight, self.inputs)  # type: ignore[no-untyped-call]
        self.projected = iter(projected.unbind(0))
        self.statistics = Normalised.of(known.size(0), known)

    def step(self, fed: Tensor, state: Optional[LSTMState] = None) -> LSTMState:
        lstm = self.lstm
        state = lstm.zero_state(fed.size(0)) if state is None else state
        parameters = (self.weight, lstm.scale, lstm.bias)
        arguments = (next(self.projected), fed, *state, *parameters, lstm.options, self.inputs, self.statistics)
        return LSTMState(*LoopStepFunction.apply(*arguments))  # type: ignore[no-untyped-call]
