"""What only some mechanisms have: limiting cases, energies, options and refusals."""

import math
import subprocess
import sys
from typing import Any, Optional

import pytest
import torch
from torch import Tensor

from fairseq_milk.attention import ATTENTIONS, Bernoulli, SimultaneousAttention, build_attention, having_knob, name_of
from fairseq_milk.attention.energy import AdditiveEnergy, MonotonicEnergy
from tests.support import oracles
from tests.support.attention_runs import OPTIONS, Run, batch, build, expected, incremental, same

# --- where it stops x how far back it looks: the limits of DESIGN section 1 ----------------------------------------


def twin(name: str, other: SimultaneousAttention, **options: Any) -> SimultaneousAttention:
    """Another mechanism with the same weights, so far as it has them."""
    attention = build(name, OPTIONS._replace(**options))
    weights = other.state_dict()
    attention.load_state_dict({key: weights[key] for key in attention.state_dict()})
    return attention


@torch.no_grad()
def assert_alike(one: SimultaneousAttention, other: SimultaneousAttention) -> None:
    s, h, lengths = batch()
    for hard in (True, False):
        same(expected(one, s, h, lengths, hard), expected(other, s, h, lengths, hard))
    same(incremental(one, s, h, lengths), incremental(other, s, h, lengths))


def test_mocha_with_a_window_of_one_is_monotonic() -> None:
    mocha = build("mocha", OPTIONS._replace(chunk_size=1))
    assert_alike(mocha, twin("monotonic", mocha))


@pytest.mark.parametrize("chunk_size", [7, 8, 1000])
def test_mocha_with_a_window_over_the_source_is_milk(chunk_size: int) -> None:
    milk = build("milk")
    assert_alike(milk, twin("mocha", milk, chunk_size=chunk_size))


def test_mocha_between_the_two_is_neither() -> None:
    mocha = build("mocha", OPTIONS._replace(chunk_size=3))
    for other in (twin("monotonic", mocha), twin("milk", mocha), twin("mocha", mocha, chunk_size=2)):
        with pytest.raises(AssertionError):
            assert_alike(mocha, other)


def test_milk_that_never_stops_is_soft() -> None:
    milk = build("milk", bias=-1e4)
    assert_alike(milk, twin("soft", milk))


@pytest.mark.parametrize("k", [7, 1000])
def test_waitk_that_waits_for_the_source_is_soft(k: int) -> None:
    waitk = build("waitk", OPTIONS._replace(k=k))
    assert_alike(waitk, twin("soft", waitk))


@torch.no_grad()
def test_soft_is_a_softmax_over_the_source() -> None:
    attention = build("soft")
    s, h, lengths = batch()
    run = expected(attention, s, h, lengths)
    energy = attention.soft_energy
    for b, n in enumerate(lengths.tolist()):
        for i in range(s.size(1)):
            weights = torch.softmax(slow_additive_energy(energy, h[b, :n], s[b, i]), dim=0)
            torch.testing.assert_close(run.beta[b, i, :n], weights)
            torch.testing.assert_close(run.c[b, i], weights @ h[b, :n])


def test_soft_alone_does_not_stream() -> None:
    assert [name for name, (stop, _) in ATTENTIONS.items() if not stop.streaming] == ["soft"]


def test_a_mechanism_says_what_it_is() -> None:
    assert [name_of(build_attention(name, OPTIONS)) for name in ATTENTIONS] == list(ATTENTIONS)
    assert having_knob("threshold") == ["monotonic", "mocha", "milk"] and having_knob("k") == ["waitk"]
    assert [build_attention(name, OPTIONS).learned for name in ATTENTIONS] == [False, False, True, True, True]


# --- energies -----------------------------------------------------------------------------------------------------


def slow_additive_energy(energy: AdditiveEnergy, h: Tensor, s: Tensor) -> Tensor:
    """u_j = v . tanh(W_s h_j + W_q s), one j after the other.  (J, D), (D,) -> (J,)."""
    return torch.stack([energy.v.dot(torch.tanh(energy.w_s.t() @ h_j + energy.w_q.t() @ s)) for h_j in h])


@torch.no_grad()
def test_monotonic_energy_is_that_of_the_paper() -> None:
    energy = MonotonicEnergy(query_dim=3, memory_dim=4, energy_dim=5, bias=-2.5, pace=1.0).double()
    assert energy.g == pytest.approx(1 / math.sqrt(5)) and energy.r == -2.5 and not energy.b.any()
    energy.b.normal_()
    energy.g.fill_(0.7)
    h, s = torch.randn(6, 4, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    want = [
        0.7 * (energy.v / energy.v.norm()).dot(torch.tanh(energy.w_s.t() @ h_j + energy.w_q.t() @ s + energy.b)) - 2.5
        for h_j in h
    ]
    keys, query = energy.project(h).unsqueeze(0), energy.query(s.unsqueeze(0))
    torch.testing.assert_close(energy(keys, query, energy.weights(keys))[0], torch.stack(want))


@pytest.mark.parametrize("heads", [None, 2])
def test_the_head_learns_at_its_paces_and_no_gradient_is_larger(heads: Optional[int]) -> None:
    """Adam moves r and g ten times as far, the projections three times.  All gradients are clipped by one norm."""
    options = OPTIONS._replace(heads=heads, energy_dim=6)
    slow, fast = (build("monotonic", o) for o in (options, options._replace(head_pace=10.0, projection_pace=3.0)))
    paces = {key: 10.0 if key in ("g", "r") else 3.0 for key, _ in slow.head.named_parameters()}
    fast.load_state_dict({key: x / paces.get(key[len("head.") :], 1) for key, x in slow.state_dict().items()})
    s, h, lengths = batch()
    slow_run, fast_run = expected(slow, s, h, lengths), expected(fast, s, h, lengths)
    same(slow_run, fast_run)
    (slow_run.g + fast_run.g).sum().backward()
    for (key, one), other in zip(slow.head.named_parameters(), fast.head.parameters()):
        assert one.grad is not None and other.grad is not None
        torch.testing.assert_close(other.grad, one.grad, msg=key)
        before = one.detach().clone()
        torch.optim.Adam([one, other], lr=0.01, eps=0.0).step()
        assert not torch.equal(one, before), key
        torch.testing.assert_close(paces[key] * other - before, paces[key] * (one - before), msg=key)


def test_projections_start_the_same_at_any_pace() -> None:
    for heads in (None, 2):
        drawn = []
        for pace in (1.0, 8.0):
            torch.manual_seed(1)
            head = build_attention("milk", OPTIONS._replace(heads=heads, energy_dim=6, projection_pace=pace)).head
            drawn.append({key: pace * x for key, x in head.named_parameters() if key in ("w_s", "w_q", "v")})
        torch.testing.assert_close(*drawn)


@torch.no_grad()
def test_heads_start_where_the_options_say() -> None:
    for bias in (-1.0, 0.5):
        head = build_attention("milk", OPTIONS._replace(energy_bias=bias, head_pace=4.0)).head
        assert head.pace * head.r == bias and head.pace * head.g == pytest.approx(1 / math.sqrt(OPTIONS.energy_dim))
    assert OPTIONS.energy_bias == -1.0 and OPTIONS.noise == 4.0 and OPTIONS.preserve_mass and OPTIONS.exact_alignment


@pytest.mark.parametrize("noise", [4.0, 0.5])
def test_noise_is_normal_with_standard_deviation_n(noise: float) -> None:
    attention = build("monotonic", OPTIONS._replace(noise=noise)).train()
    head, stop = attention.head, attention.stop
    assert isinstance(stop, Bernoulli)
    noisy = []

    def spy(e: Tensor, alpha_prev: Tensor, *_: Any) -> Tensor:
        noisy.append(e)
        return alpha_prev

    stop.alignment = spy  # type: ignore[assignment]
    s, h, lengths = batch([1000] * 20, tgt_size=1)
    expected(attention, s, h, lengths)
    keys = head.project(h)
    added = (noisy[0] - head(keys, head.query(s[:, 0]), head.weights(keys)))[:, :-1]  # the last always stops
    assert float(added.std()) == pytest.approx(noise, rel=0.03)
    assert abs(float(added.mean())) < 0.05 * noise
    assert float((added.abs() < noise).double().mean()) == pytest.approx(0.683, abs=0.015)


def test_noise_grows_to_n_over_the_ramp() -> None:
    stop = Bernoulli(OPTIONS._replace(noise=4.0))
    stop.set_thresholds(head_after=0, noise_ramp=3)
    noise = []
    for update in range(6):
        stop.set_num_updates(update)
        noise.append(stop.noise)
    assert noise == [1.0, 2.0, 3.0, 4.0, 4.0, 4.0]
    at_once = Bernoulli(OPTIONS._replace(noise=4.0))
    at_once.set_num_updates(0)
    assert at_once.noise == 4.0


# --- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", ["1.0", "0.6", "1.1", "1.5", "2.0"])
@pytest.mark.parametrize("k", [1, 3, 6])
@torch.no_grad()
def test_waitk_waits_for_k_and_then_reads_at_the_rate(k: int, rate: str) -> None:
    attention = build("waitk", OPTIONS._replace(k=k, rate=float(rate)))
    s, h, lengths = batch(tgt_size=13)
    want = [oracles.wait_k_delays(k, n, 13, rate) for n in lengths.tolist()]
    assert expected(attention, s, h, lengths).g.tolist() == want
    assert incremental(attention, s, h, lengths).g.tolist() == want


@torch.no_grad()
def test_k_can_be_changed_for_decoding() -> None:
    attention = build("waitk", OPTIONS._replace(k=1))
    attention.stop.k = 4  # type: ignore[assignment]
    s, h, lengths = batch()
    want = incremental(build("waitk", OPTIONS._replace(k=4)), s, h, lengths).g
    assert torch.equal(incremental(attention, s, h, lengths).g, want)
    assert torch.equal(expected(attention, s, h, lengths).g, want)


@torch.no_grad()
def test_mass_that_is_not_preserved_runs_off_the_end() -> None:
    attention = build("milk", OPTIONS._replace(preserve_mass=False), bias=-3.0)
    s, h, lengths = batch()
    soft = expected(attention, s, h, lengths)
    assert (soft.alpha.sum(-1) < 1).all() and (soft.alpha.sum(-1).diff(dim=1) < 0).all()
    torch.testing.assert_close(soft.beta.sum(-1), soft.alpha.sum(-1))
    hard = expected(attention, s, h, lengths, hard=True)
    assert torch.equal(hard.alpha.sum(-1), torch.ones_like(hard.g)), "a decoder at the end of the source writes"


@torch.no_grad()
def test_the_exact_alignment_is_the_default_and_keeps_a_burst() -> None:
    """A head that waited for token 20 and then writes five times: the published form loses its position."""
    exact = build("monotonic", scale=0.0, bias=-1e3)
    published = twin("monotonic", exact, exact_alignment=False)
    _, h, lengths = batch([30], tgt_size=0)
    stops = {}
    for key, attention in (("exact", exact), ("published", published)):
        memory = attention.remember(h, lengths)
        state = attention.begin(memory)
        state = state._replace(alpha=state.alpha.roll(19, dims=1))
        attention.head.r.fill_(3.0)  # p = 0.95 everywhere
        memory = attention.remember(h, lengths)
        out, _ = attention.expected(torch.zeros(1, OPTIONS.query_dim, dtype=h.dtype), memory, state, False)
        stops[key] = float(Run(out.c, out.beta, out.alpha).g)
    assert stops["exact"] == pytest.approx(20 + 0.05 / 0.95, abs=0.01)
    assert stops["published"] > 29


# --- refusals -----------------------------------------------------------------------------------------------------


def test_an_unknown_name_lists_the_five() -> None:
    with pytest.raises(ValueError, match="'infinite'.* soft, waitk, monotonic, mocha, milk$"):
        build_attention("infinite", OPTIONS)


@pytest.mark.parametrize(
    "name, options",
    [
        ("mocha", {"chunk_size": 0}),
        ("mocha", {"chunk_size": -3}),
        ("waitk", {"k": 0}),
        ("waitk", {"k": -1}),
        ("waitk", {"rate": 0.0}),
        ("waitk", {"rate": -1.0}),
        ("waitk", {"rate": math.inf}),
        ("waitk", {"rate": math.nan}),
    ],
)
def test_options_out_of_range_are_refused(name: str, options: Any) -> None:
    (value,) = options.values()
    with pytest.raises(ValueError, match=f"got {value}"):
        build_attention(name, OPTIONS._replace(**options))


# --- torch alone --------------------------------------------------------------------------------------------------

WITHOUT_FAIRSEQ = """
import sys

class NotInstalled:
    '''Every finder there was, but for what is not installed.'''

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        missing = "fairseq fairseq_cli hydra omegaconf sacrebleu matplotlib simuleval".split()
        return None if name.split(".")[0] in missing else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [NotInstalled(finder) for finder in sys.meta_path if hasattr(finder, "find_spec")]

import torch
import fairseq_milk.functional as F
from fairseq_milk.attention import ATTENTIONS, AttentionOptions, build_attention

alpha = F.expected_alignment(torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 0.0]]))
assert F.expected_delays(alpha).tolist() == [1.75]
for name in ATTENTIONS:
    build_attention(name, AttentionOptions(2, 2, 2))
"""


@pytest.mark.slow  # imports torch
def test_the_mathematics_needs_torch_alone() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_FAIRSEQ], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
