"""Optimisation as in RNMT+: the learning rate, and the guard that rejects abnormally large gradients."""

import math
import random
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest
import torch
from fairseq.logging import metrics
from omegaconf import OmegaConf

from fairseq_milk.console.errors import UserError
from fairseq_milk.host import precision as host_precision
from fairseq_milk.optim import GradientNormGuard, RNMTAdam, RNMTPlusSchedule, rnmt_plus_multiplier
from tests.support import fairseq_commands as commands
from tests.support.torch_features import needs_float16

# ---- the learning rate ------------------------------------------------------------------------------------------


def test_the_authors_golden_values() -> None:
    """lingvo's test of the schedule: 8 replicas, warm-up 250 000, decay from 32M to 64M."""
    multipliers = [rnmt_plus_multiplier(t * 10**6, 8, 250_000, 32 * 10**6, 64 * 10**6) for t in range(10)]
    assert multipliers == pytest.approx([1, 4.5, 8, 8, 8, 4, 2, 1, 0.5, 0.5])


@pytest.mark.parametrize(
    "t, lr",
    [(0, 1e-4), (1000, 2.9375e-4), (8000, 1.65e-3), (16000, 3.2e-3), (18750, 3.2e-3), (25000, 8e-4), (37500, 5e-5)],
)
def test_the_learning_rates_of_32_replicas(t: int, lr: float) -> None:
    assert 1e-4 * rnmt_plus_multiplier(t, 32, 500, 600_000, 1_200_000) == pytest.approx(lr)


def test_it_stays_at_half_the_base() -> None:
    assert rnmt_plus_multiplier(10**9, 32, 500, 600_000, 1_200_000) == 0.5


def test_the_decay_never_starts_before_the_warm_up_has_ended() -> None:
    """En-De in the authors' codebase: s / n = 12 500 < 16 000, the end of the warm-up."""
    multipliers = [rnmt_plus_multiplier(t, 32, 500, 400_000, 1_200_000) for t in (12500, 16000, 16001, 16002, 37499)]
    assert multipliers[0] == pytest.approx(1 + 31 * 12500 / 16000)
    assert multipliers[1:3] == [32, 32] and 31.9 < multipliers[3] < 32
    assert multipliers[4] == pytest.approx(0.5, rel=1e-3)


def test_one_replica_starts_at_the_base() -> None:
    assert [rnmt_plus_multiplier(t, 1, 10, 100, 200) for t in (0, 10, 100, 200)] == pytest.approx([1, 1, 1, 0.5])


def schedule(**changes: Any) -> RNMTPlusSchedule:
    options = dict(lr_replicas=32, lr_warmup=500, lr_decay_start=600_000, lr_decay_end=1_200_000, lr=[1e-4])
    cfg: Any = OmegaConf.create({**options, **changes})
    return RNMTPlusSchedule(cfg, RNMTAdam(adam_options(), [torch.nn.Parameter(torch.zeros(1))]))


def test_the_schedule_sets_the_optimizer() -> None:
    rnmt_plus = schedule()
    assert rnmt_plus.optimizer.get_lr() == pytest.approx(1e-4)
    assert rnmt_plus.step_update(8000) == rnmt_plus.optimizer.get_lr() == pytest.approx(1.65e-3)
    assert rnmt_plus.step(3, 1.0) == pytest.approx(1.65e-3)


@pytest.mark.parametrize(
    "changes, option",
    [
        (dict(lr_replicas=0), "--lr-replicas"),
        (dict(lr_warmup=0), "--lr-warmup"),
        (dict(lr_decay_start=-1), "--lr-decay-start"),
        (dict(lr_decay_end=600_000), "--lr-decay-end"),
        (dict(lr_decay_start=0, lr_decay_end=500 * 32 * 32), "--lr-decay-end"),
    ],
)
def test_schedules_that_cannot_be_are_refused(changes: Any, option: str) -> None:
    with pytest.raises(UserError, match=f"^{option} must"):
        schedule(**changes)


# ---- the guard --------------------------------------------------------------------------------------------------


def lingvo(norms: List[float]) -> Tuple[List[bool], List[float]]:
    """An independent implementation of GradNormTracker after model-details.md 1.2: decisions and statistics."""
    log_mean = log_mean_squared = total_weight = 0.0
    rejected = []
    for norm in norms:
        if math.isnan(norm) or math.isinf(norm):
            rejected.append(True)
            continue
        weight = max(total_weight, 1e-6)
        mean = log_mean / weight
        std = math.sqrt(max(log_mean_squared / weight - mean**2, 1e-6))
        log_norm, cap = math.log(max(norm, 1e-2) + 1.0), mean + 4 * std
        rejected.append(log_norm > cap and total_weight > 0.75)
        capped = min(log_norm, cap)
        log_mean += 0.005 * (capped - log_mean)
        log_mean_squared += 0.005 * (capped**2 - log_mean_squared)
        total_weight += 0.005 * (1.0 - total_weight)
    return rejected, [log_mean, log_mean_squared, total_weight]


def ordinary(count: int) -> List[float]:
    draw = random.Random(1)
    return [math.exp(draw.gauss(0.0, 0.2)) for _ in range(count)]


def test_the_guard_decides_as_the_authors_does() -> None:
    draw = random.Random(2)
    norms = [norm * (50 if draw.random() < 0.02 else 1) for norm in ordinary(1000)]
    norms[700:703] = [math.nan, math.inf, 0.0]
    guard = GradientNormGuard()
    decisions = [guard.rejects(norm) for norm in norms]
    expected, learned = lingvo(norms)
    assert decisions == expected
    assert [guard.mean, guard.square, guard.weight] == pytest.approx(learned)
    assert guard.rejected == sum(decisions) > 5 and not any(decisions[:277])


def test_the_guard_learns_for_277_updates_first() -> None:
    assert 1 - 0.995**276 < 0.75 < 1 - 0.995**277
    for before, rejects in ((276, False), (278, True)):
        guard = GradientNormGuard()
        assert not any(guard.rejects(norm) for norm in ordinary(before))
        assert guard.rejects(1e4) is rejects


def test_what_is_not_a_number_is_rejected_from_the_start_and_not_learned() -> None:
    guard = GradientNormGuard()
    assert guard.rejects(math.nan) and guard.rejects(math.inf) and guard.rejected == 2
    assert (guard.mean, guard.square, guard.weight) == (0, 0, 0)


def test_a_norm_of_100_000_is_rejected_from_the_first_update_on() -> None:
    guard = GradientNormGuard()
    assert guard.rejects(1e5) and not guard.rejects(9.9e4) and guard.rejected == 1
    assert guard.weight == pytest.approx(1 - 0.995**2), "both were learned"


def test_larger_gradients_are_accepted_when_they_last() -> None:
    guard = GradientNormGuard()
    for norm in ordinary(600):
        guard.rejects(norm)
    decisions = [guard.rejects(4 * norm) for norm in ordinary(600)]
    assert any(decisions[:100]) and not any(decisions[-200:])


# ---- the optimizer ----------------------------------------------------------------------------------------------


def adam_options(**changes: Any) -> Any:
    plain = dict(adam_betas="(0.9, 0.999)", adam_eps=1e-6, weight_decay=0.0, use_old_adam=True, fp16_adam_stats=False)
    plain.update(tpu=False, lr=[0.1], fp16=False, bf16=False, amp=False)
    return OmegaConf.create({**plain, **changes})


def optimizer(**changes: Any) -> RNMTAdam:
    return RNMTAdam(adam_options(**changes), [torch.nn.Parameter(torch.ones(2))])


def update(adam: RNMTAdam, gradient: Optional[float], scale: float = 1.0) -> float:
    """As the trainer does it; returns how far the first weight moves."""
    (p,) = adam.params
    before = float(p[0].detach())
    p.grad = None if gradient is None else torch.full((2,), gradient)
    norm = adam.clip_grad_norm(0)
    assert torch.isfinite(norm), "fairseq ends the training"
    adam.step(scale=scale)
    return float(p[0].detach()) - before


def test_a_rejected_step_moves_by_momentum_alone() -> None:
    adam = optimizer()
    assert update(adam, 1.0) < 0
    first_moment = adam.optimizer.state[next(iter(adam.params))]["exp_avg"].clone()
    assert -0.1 < update(adam, math.nan) < 0
    state = adam.optimizer.state[next(iter(adam.params))]
    assert torch.isfinite(next(iter(adam.params))).all()
    torch.testing.assert_close(state["exp_avg"], 0.9 * first_moment)
    assert adam.guard.rejected == 1


def test_the_number_of_rejected_steps_is_logged() -> None:
    adam = optimizer()
    with metrics.aggregate(new_root=True) as aggregator:
        for gradient in (1.0, math.inf, 1.0, math.nan):
            update(adam, gradient)
    assert aggregator.get_smoothed_values()["rejected_steps"] == 2


def test_the_state_of_the_guard_is_saved_with_the_optimizer() -> None:
    adam, resumed = optimizer(), optimizer()
    for gradient in (1.0, 2.0, math.nan):
        update(adam, gradient)
    saved = adam.state_dict()
    resumed.load_state_dict(saved)
    assert vars(resumed.guard) == vars(adam.guard) and "guard" in saved
    del saved["guard"]  # a checkpoint of plain Adam
    optimizer().load_state_dict(saved)


def test_the_guard_sees_true_norms_where_the_optimizer_unscales() -> None:
    """apex's fused Adam divides by the loss scale itself, which is its argument `scale`."""
    seen = []
    for gradient, scale in ((3.0, 1.0), (3.0 * 128, 128.0)):
        adam = optimizer(fp16=True)
        update(adam, gradient, scale)
        seen.append(adam.guard.mean)
    assert seen[0] == pytest.approx(seen[1])


def test_a_norm_that_overflows_is_left_to_the_scaler() -> None:
    adam = optimizer(fp16=True)
    (p,) = adam.params
    p.grad = torch.full((2,), math.inf)
    assert not torch.isfinite(adam.clip_grad_norm(0)) and adam.guard.rejected == 0


def test_without_gradients_nothing_happens() -> None:
    assert update(optimizer(), None) == 0


# ---- half precision, through fairseq ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return commands.make_corpus(tmp_path_factory.mktemp("optim"))


@needs_float16
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["--memory-efficient-fp16", "--fp16 --fp16-no-flatten-grads"])
def test_half_precision(precision: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half precision is refused on a CPU; this test runs it there because the arithmetic is that of a GPU."""
    monkeypatch.setattr(host_precision, "has_gpu", lambda cfg: True)
    more = [*precision.split(), "--latency-weight", 0.2, "--decoder-layers", 3, "--disable-validation"]
    log = commands.run("fairseq-train", *commands.training(data, tmp_path, *more))
    for update_ in log.json("num_updates"):
        for name in ("loss", "dal", "certainty", "gnorm"):
            assert math.isfinite(float(update_[name])), (name, update_)
        assert update_["rejected_steps"] == "0"
    state = torch.load(tmp_path / "checkpoint_last.pt")
    for name, x in state["model"].items():  # saved as float32
        assert torch.isfinite(x).all() and torch.equal(x, x.half().float()), name
    assert state["last_optimizer_state"]["guard"]["weight"] == pytest.approx(1 - 0.995**6)
