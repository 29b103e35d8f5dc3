"""The objective: two sums over sentences, the weight of the second, what is logged, and the alarm."""

import logging
import math
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics

from fairseq_milk.attention.energy import MonotonicEnergy
from fairseq_milk.console.errors import UserError
from fairseq_milk.criterions import LatencyAugmentedCriterion, collapse
from fairseq_milk.criterions.collapse import ALARM, CollapseAlarm
from fairseq_milk.functional import differentiable_average_lagging, expected_delays
from fairseq_milk.host.training_length import length_of_run, tell_length
from fairseq_milk.models.milk_rnmt import MilkRNMT
from fairseq_milk.scoring import collapse as scoring_collapse
from tests.support import tiny_models as tiny

PAIRS = tiny.pairs(8, longest=6)


def gradient(model: MilkRNMT, criterion: Any, batches: List[Dict[str, Any]]) -> Dict[str, torch.Tensor]:
    """Gradients as in fairseq's trainer: summed over all (micro-)batches, divided by the total sample size."""
    model.zero_grad()
    size = 0
    for sample in batches:
        loss, sample_size, _ = criterion(model, sample)
        loss.backward()
        size += sample_size
    return {name: grad / size for name, grad in tiny.gradients(model).items()}


def assert_same(one: Dict[str, torch.Tensor], other: Dict[str, torch.Tensor], factor: float = 1.0) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], factor * other[name], rtol=1e-4, atol=1e-6, msg=name)


# ---- the objective ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("label_smoothing, prefix", [(0.0, 0), (0.1, 0), (0.1, 1)])
def test_without_latency_it_equals_the_criterion_of_fairseq(
    sentence_avg: bool, label_smoothing: float, prefix: int
) -> None:
    model, sample = tiny.model(noise=0.0).train(), tiny.batch(PAIRS)
    theirs = LabelSmoothedCrossEntropyCriterion(tiny.task(), sentence_avg, label_smoothing, prefix, True)
    ours = LatencyAugmentedCriterion(tiny.task(), sentence_avg, label_smoothing, prefix, True)
    (loss_t, size_t, log_t), (loss_o, size_o, log_o) = theirs(model, sample), ours(model, sample)
    assert float(loss_o) == pytest.approx(float(loss_t), rel=1e-5) and size_o == size_t
    for name in log_t:
        assert float(log_o[name]) == pytest.approx(float(log_t[name]), rel=1e-5), name
    assert_same(gradient(model, ours, [sample]), gradient(model, theirs, [sample]))


@pytest.mark.parametrize("metric", ["dal", "ap"])
def test_the_latency_term_is_a_sum_over_sentences(metric: str) -> None:
    model = tiny.model().train()
    weighted = tiny.criterion(latency_weight=0.7, latency_metric=metric)
    loss, _, log = weighted(model, tiny.batch(PAIRS))
    plain, _, _ = tiny.criterion()(model, tiny.batch(PAIRS))
    cost = 0.0
    for pair in PAIRS:  # one by one, without padding, by the definition
        alpha = model(**tiny.batch([pair])["net_input"])[1]["alpha"][0]
        g = [sum((j + 1) * float(p) for j, p in enumerate(row)) for row in alpha]
        x, y = len(pair.source) + 1, len(pair.target) + 1
        if metric == "ap":
            cost += sum(g) / (x * y)
            continue
        previous, total = 0.0, 0.0
        for i, g_i in enumerate(g):
            previous = g_i if i == 0 else max(g_i, previous + x / y)
            total += previous - i * x / y
        cost += total / y
    assert float(loss) == pytest.approx(float(plain) + 0.7 * cost, rel=1e-5)
    assert float(log["latency"]) == pytest.approx(cost, rel=1e-5)


@pytest.mark.parametrize("sentence_avg", [False, True])
def test_batch_size_update_freq_and_padding_do_not_change_the_gradient(sentence_avg: bool) -> None:
    model, criterion = tiny.model().train(), tiny.criterion(sentence_avg, latency_weight=0.5)
    whole = gradient(model, criterion, [tiny.batch(PAIRS)])
    assert_same(gradient(model, criterion, [tiny.batch(PAIRS[:3]), tiny.batch(PAIRS[3:])]), whole)
    assert_same(gradient(model, criterion, [tiny.batch([pair]) for pair in PAIRS]), whole)
    assert_same(gradient(model, criterion, [tiny.batch(PAIRS, left_pad_source=True, pad_to=17)]), whole)


def test_sentence_avg_scales_both_terms_alike() -> None:
    model, sample = tiny.model().train(), tiny.batch(PAIRS)
    tokens = gradient(model, tiny.criterion(False, latency_weight=0.5), [sample])
    sentences = gradient(model, tiny.criterion(True, latency_weight=0.5), [sample])
    assert_same(sentences, tokens, factor=sample["ntokens"] / len(PAIRS))


@pytest.mark.parametrize("attention", tiny.LEARNED)
def test_latency_alone_trains_the_head(attention: str) -> None:
    model = tiny.model(attention=attention, noise=1.0).train()
    criterion = tiny.criterion(latency_weight=1.0)
    _, cost = criterion._latency(model(**tiny.batch(PAIRS)["net_input"])[1], tiny.batch(PAIRS)["target"])
    cost.backward()
    for name, p in model.decoder.attention.head.named_parameters():
        assert p.grad is not None and p.grad.abs().sum() > 0, name
    assert model.decoder.attention.head.r.grad < 0, "stopping earlier must be cheaper"


def test_the_schedule_of_lambda() -> None:
    criterion = tiny.criterion(latency_weight=0.8, latency_after=10, latency_ramp=3)
    weights = [criterion.current_weight(update) for update in (0, 9, 10, 11, 12, 13, 14, 1000)]
    assert weights == pytest.approx([0, 0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.8])
    at_once = tiny.criterion(latency_weight=0.8)
    assert [at_once.current_weight(update) for update in (0, 5)] == [0.8, 0.8]


def test_thresholds_below_1_are_shares_of_the_training(caplog: pytest.LogCaptureFixture) -> None:
    task = tiny.task()
    task.cfg = SimpleNamespace(max_update=200)
    caplog.set_level(logging.INFO, "fairseq_milk")
    shares: Dict[str, Any] = dict(latency_weight=0.8, latency_after=0.3, latency_ramp=0.05)
    criterion = LatencyAugmentedCriterion(task, False, 0.1, **shares)
    assert (criterion.latency_after, criterion.latency_ramp) == (60, 10)
    model = MilkRNMT.build_model(tiny.options(noise=4.0, noise_ramp=0.25, head_after=0.1), task)
    assert (model.decoder.attention.stop.noise_ramp, model.decoder.attention.stop.head_after) == (50, 20)
    assert not caplog.records
    tell_length(100, [model, criterion])
    assert (criterion.latency_after, criterion.latency_ramp, ALARM.patience) == (30, 5, 20)
    assert (model.decoder.attention.stop.noise_ramp, model.decoder.attention.stop.head_after) == (25, 10)
    assert "of 100 updates --head-after 0.1 is 10, --noise-ramp 0.25 is 25, --latency-after 0.3 is 30" in caplog.text
    tell_length(0, [model, criterion])
    assert criterion.latency_after == 0 and "Give --max-update or --max-epoch" in caplog.text


def test_without_a_learned_schedule_shares_are_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    parts = [tiny.model(attention="waitk", head_after=0.3), tiny.criterion(latency_after=0.3)]  # lambda is 0
    tell_length(0, parts)
    tell_length(0, [tiny.model(attention="mocha", head_after=0.3)])  # which has no such phase
    assert not caplog.records


@pytest.mark.parametrize(
    "options, batches, length",
    [
        (dict(max_update=200), 0, 200),
        (dict(max_update=200, max_epoch=3), 10, 30),
        (dict(max_update=20, max_epoch=3), 10, 20),
        (dict(max_epoch=3), 10, 30),
        (dict(max_epoch=3), 0, 0),
        (dict(max_epoch=3, update_freq=[4]), 10, 9),
        (dict(max_epoch=4, update_freq=[1, 2]), 10, 25),
        (dict(max_epoch=1, update_freq=[1, 2]), 10, 10),
        (dict(max_epoch=10**12), 10, 10**13),
        (dict(max_epoch=2, update_freq=[0]), 10, 20),
        (dict(max_update=None, max_epoch=None), 10, 0),
        ({}, 10, 0),
    ],
)
def test_the_length_of_a_training(options: Dict[str, Any], batches: int, length: int) -> None:
    assert length_of_run(SimpleNamespace(cfg=SimpleNamespace(**options)), batches) == length
    assert length_of_run(SimpleNamespace(), batches) == 0


def test_the_schedule_of_lambda_follows_the_updates_in_training_and_is_over_in_evaluation() -> None:
    model, sample = tiny.model(), tiny.batch(PAIRS)
    criterion = tiny.criterion(latency_weight=0.8, latency_after=10)
    for update, weight in ((9, 0.0), (10, 0.8)):
        model.train().set_num_updates(update)
        assert criterion(model, sample)[2]["latency_weight"] == pytest.approx(weight * len(PAIRS))
    model.eval().set_num_updates(0)
    assert criterion(model, sample)[2]["latency_weight"] == pytest.approx(0.8 * len(PAIRS))


@pytest.mark.parametrize(
    "option, value",
    [
        ("latency_weight", -0.1),
        ("latency_weight", math.nan),
        ("latency_after", -1),
        ("latency_after", 10.5),
        ("latency_ramp", -1),
    ],
)
def test_options_out_of_range_are_refused_by_name(option: str, value: float) -> None:
    options: Dict[str, Any] = {option: value}
    with pytest.raises(UserError, match=f"^--{option.replace('_', '-')} must be"):
        tiny.criterion(**options)


def test_label_smoothing_out_of_range_is_refused() -> None:
    with pytest.raises(UserError, match="^--label-smoothing must be"):
        tiny.criterion(label_smoothing=1.0)


def test_a_model_without_delays_is_refused() -> None:
    class Transformer(torch.nn.Module):
        def forward(self, features_only: bool, **net_input: Any) -> Any:
            return torch.zeros(1), {"attn": None}

    with pytest.raises(UserError, match="--arch milk_rnmt"):
        tiny.criterion()(Transformer(), tiny.batch(PAIRS))


# ---- what is logged ---------------------------------------------------------------------------------------------


def logged(criterion: LatencyAugmentedCriterion, logs: List[Dict[str, Any]]) -> Dict[str, float]:
    with metrics.aggregate(new_root=True) as aggregator:
        criterion.__class__.reduce_metrics(logs)
    return aggregator.get_smoothed_values()


def test_the_figures_of_wait_k_by_hand() -> None:
    """wait-2: |x| = 4 and |y| = 3 gives g = 2 3 4, |x| = 2 and |y| = 2 gives g = 2 2."""
    model = tiny.model(attention="waitk", wait_k=2).eval()
    criterion = tiny.criterion(latency_weight=0.5, label_smoothing=0.0)
    pairs = [tiny.Pair([4, 5, 6], [7, 8]), tiny.Pair([4], [5])]
    log = criterion(model, tiny.batch(pairs))[2]
    figures = logged(criterion, [log])
    assert figures["ap"] == pytest.approx(((2 + 3 + 4) / 12 + 1) / 2, abs=5e-4)
    assert figures["al"] == pytest.approx(((2 + (3 - 4 / 3) + (4 - 8 / 3)) / 3 + 2) / 2, abs=5e-4)
    assert figures["dal"] == pytest.approx((2 + (2 + (2 - 0)) / 2) / 2, abs=5e-4)
    assert figures["latency"] == figures["dal"] and figures["latency_weight"] == 0.5
    assert figures["certainty"] == 1 and figures["last_mass"] == pytest.approx(3 / 5)
    nll = sum(float(criterion(model, tiny.batch([pair]))[2]["nll_loss"]) for pair in pairs)
    assert figures["nll_loss"] == pytest.approx(nll / 5 / math.log(2), abs=5e-4)
    assert figures["loss"] == pytest.approx((nll + 0.5 * 2 * figures["dal"]) / 5 / math.log(2), abs=2e-3)
    assert figures["ppl"] == pytest.approx(2 ** figures["nll_loss"], abs=0.02)
    assert not [name for name in figures if name.startswith("expected")]


def test_evaluation_is_hard_with_the_expected_figures_beside_it() -> None:
    model, criterion = tiny.model(noise=4.0).eval(), tiny.criterion(latency_weight=0.5)
    sample = tiny.batch(PAIRS)
    figures = logged(criterion, [criterion(model, sample)[2]])
    assert figures["certainty"] == 1
    for hard, prefix in ((True, ""), (False, "expected_")):
        logits, extra = model(**sample["net_input"], hard=hard)
        lengths = [torch.tensor([len(side) + 1 for side in sides]) for sides in zip(*PAIRS)]
        dal = differentiable_average_lagging(expected_delays(extra["alpha"]), *lengths).mean()
        assert figures[f"{prefix}dal"] == pytest.approx(float(dal), abs=1e-3)
        nll = torch.nn.functional.cross_entropy(logits.flatten(0, 1), sample["target"].flatten(), ignore_index=1)
        assert figures[f"{prefix}nll_loss"] == pytest.approx(float(nll) / math.log(2), abs=1e-3)
    assert figures["expected_certainty"] < 1 and figures["expected_dal"] != figures["dal"]


def test_figures_are_means_over_everything_not_over_batches() -> None:
    model, criterion = tiny.model().eval(), tiny.criterion(latency_weight=0.5)
    one = logged(criterion, [criterion(model, tiny.batch(PAIRS))[2]])
    parts = [criterion(model, tiny.batch(part))[2] for part in (PAIRS[:1], PAIRS[1:])]
    assert logged(criterion, parts) == pytest.approx(one, abs=2e-3)


def test_logs_can_be_summed_by_fairseq() -> None:
    """Scalars, detached, the same names for every batch: what fairseq's ranks exchange."""
    criterion = tiny.criterion(latency_weight=0.5)
    assert criterion.logging_outputs_can_be_summed()
    for mode in (True, False):
        log = criterion(tiny.model().train(mode), tiny.batch(PAIRS))[2]
        for value in log.values():
            assert not torch.is_tensor(value) or (value.dim() == 0 and not value.requires_grad)


# ---- the alarm --------------------------------------------------------------------------------------------------


def total(**changes: float) -> Dict[str, float]:
    """The sums of a healthy update."""
    healthy = dict(loss=10.0, ntokens=100.0, nsentences=10.0, latency_weight=0.5, training=1.0, learned=1.0)
    return {**healthy, "last_mass": 30.0, "first_mass": 20.0, **changes}


WAITS, HURRIES, NAN = dict(last_mass=100.0), dict(first_mass=82.0), dict(loss=math.nan)


@pytest.mark.parametrize("symptom, words", [(WAITS, "raise --latency-weight"), (HURRIES, "lower --latency-weight")])
def test_a_collapse_is_reported_once(symptom: Dict[str, float], words: str, caplog: pytest.LogCaptureFixture) -> None:
    alarm = CollapseAlarm()
    for _ in range(collapse.PATIENCE - 1):
        alarm.watch(total(**symptom))
    assert not caplog.records
    for _ in range(3 * collapse.PATIENCE):
        alarm.watch(total(**symptom))
    assert len(caplog.records) == 1 and caplog.records[0].levelno == logging.WARNING
    assert "the schedule has collapsed" in caplog.text and words in caplog.text


@pytest.mark.parametrize("updates, patience, hard", [(0, 500, 2000), (300, 60, 150), (30, 20, 20), (10**6, 500, 2000)])
def test_the_patience_scales_with_the_run(
    updates: int, patience: int, hard: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The alarm comes after at most a fixed share of the training."""
    alarm = CollapseAlarm()
    alarm.reset(updates)
    assert (alarm.patience, alarm.hard_patience) == (patience, hard)
    for _ in range(patience - 1):
        alarm.watch(total(**HURRIES))
    assert not caplog.records
    alarm.watch(total(**HURRIES))
    assert f"for {patience} updates the head has written nearly everything" in caplog.text


def test_the_criterion_takes_the_length_from_the_task() -> None:
    task = tiny.task()
    task.cfg = SimpleNamespace(max_update=300)
    LatencyAugmentedCriterion(task, False, 0.1)
    assert ALARM.patience == 60
    tiny.criterion()
    assert ALARM.patience == collapse.PATIENCE


def test_a_hard_schedule_hurries_when_all_its_quartiles_are_one(caplog: pytest.LogCaptureFixture) -> None:
    """87 % of the words after one token, in every validation."""
    assert collapse.HARD_HURRIES == scoring_collapse.HURRIES and collapse.WAITS == scoring_collapse.WAITS
    alarm = CollapseAlarm()
    alarm.reset(300)
    for _ in range(160):
        alarm.watch(total(first_mass=78.0))  # of 90 words
        alarm.watch(total(training=0.0, first_mass=78.0))
    assert len(caplog.records) == 1 and "in every validation of 150 updates" in caplog.text


def test_the_first_sign_is_in_the_log() -> None:
    """first_mass is the share of words written after one source token, last_mass that of tokens after all of them."""
    for bias, first, last in ((-100.0, 0.0, 1.0), (100.0, 1.0, 0.0)):
        model, criterion = tiny.model(energy_bias=bias, spread=0).train(), tiny.criterion(latency_weight=0.1)
        log = logged(criterion, [criterion(model, tiny.batch(PAIRS))[2]])
        assert log["first_mass"] == first and log["last_mass"] == last


def test_al_is_logged_for_hard_schedules_alone() -> None:
    """AL needs the first position at which everything has been read, which expected delays do not have."""
    model, criterion = tiny.model(), tiny.criterion(latency_weight=0.1)
    assert "al" not in logged(criterion, [criterion(model.train(), tiny.batch(PAIRS))[2]])
    log = logged(criterion, [criterion(model.eval(), tiny.batch(PAIRS))[2]])
    assert "al" in log and "expected_dal" in log and "expected_al" not in log


def test_nan_is_reported_at_once(caplog: pytest.LogCaptureFixture) -> None:
    alarm = CollapseAlarm()
    for _ in range(3):
        alarm.watch(total(**NAN))
    assert len(caplog.records) == 1 and "rnmt_adam" in caplog.text
    assert caplog.messages[0].startswith("the loss is not finite")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict(last_mass=98.0),
        dict(WAITS, latency_weight=0.0),  # lambda is 0: nothing shortens the delay
        dict(WAITS, learned=0.0),  # soft attention
        dict(HURRIES, learned=0.0),
        dict(first_mass=80.0),
    ],
)
def test_no_false_alarm(changes: Dict[str, float], caplog: pytest.LogCaptureFixture) -> None:
    alarm = CollapseAlarm()
    for _ in range(2 * collapse.PATIENCE):
        alarm.watch(total(**changes))
    assert not caplog.records


def test_one_healthy_update_starts_the_count_again(caplog: pytest.LogCaptureFixture) -> None:
    alarm = CollapseAlarm()
    for update in range(3 * collapse.PATIENCE):
        alarm.watch(total(**({} if update % (collapse.PATIENCE - 1) == 0 else WAITS)))
    assert not caplog.records


def test_validation_is_judged_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    """A hard schedule that reads everything raises the alarm after a while, even if training looks healthy."""
    alarm = CollapseAlarm()
    for update in range(1, collapse.HARD_PATIENCE + 1):
        alarm.watch(total())
        if update % 100 == 0:
            assert not caplog.records
            alarm.watch(total(training=0.0, **WAITS))
    assert len(caplog.records) == 1 and "in every validation" in caplog.text


def test_a_head_that_waits_only_before_eos_has_collapsed() -> None:
    """A collapse that the mean delay (2.8 here) does not show."""
    sample = tiny.batch([tiny.Pair([5] * 9, [6] * 4)] * 2)
    alpha = torch.zeros(2, 5, 10)
    alpha[:, :4, 0], alpha[:, 4, 9] = 1.0, 1.0
    lengths = sample["net_input"]["src_lengths"]
    extra = {"alpha": alpha, "alphas": alpha.unsqueeze(1), "src_lengths": lengths}
    log = tiny.criterion()._latency(extra, sample["target"])[0]
    logged_sums = total(ntokens=10.0, nsentences=2.0, first_mass=float(log["first_mass"]), last_mass=2.0)
    assert log["first_mass"] == 8 and CollapseAlarm()._symptoms(logged_sums) == {"waits": False, "hurries": True}


def test_a_head_that_is_still_inactive_is_no_collapse(caplog: pytest.LogCaptureFixture) -> None:
    """With --head-after above --latency-after the options let everything be read for a while."""
    model = tiny.model(head_after=100, energy_bias=-100.0, spread=0).train()
    criterion = tiny.criterion(latency_weight=0.1)
    ALARM.reset(100)
    for update in range(150):
        model.set_num_updates(update)
        logged(criterion, [criterion(model, tiny.batch(PAIRS))[2]])
        assert bool(caplog.records) == (update >= 119), update


def test_only_the_first_rank_warns(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    CollapseAlarm().watch(total(**NAN))
    assert not caplog.records


def test_the_criterion_feeds_the_alarm(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that always wait or always write, run through the criterion as a trainer does."""
    monkeypatch.setattr(collapse, "PATIENCE", 3)
    for bias, words in ((-100.0, "read the whole source"), (100.0, "after the first source token"), (0.0, "")):
        model, criterion = tiny.model(energy_bias=bias, spread=0).train(), tiny.criterion(latency_weight=0.1)
        caplog.clear()
        for _ in range(5):
            logged(criterion, [criterion(model, tiny.batch(PAIRS))[2]])
        assert words in caplog.text and len(caplog.records) == (1 if words else 0)
    assert criterion is not None and ALARM.updates == 5, "a new criterion starts a new count"


# ---- learning ---------------------------------------------------------------------------------------------------


def delays_of_a_burst(published: bool, monkeypatch: pytest.MonkeyPatch) -> Dict[str, float]:
    """Hard and expected DAL of a model whose head waits for 20 tokens, then writes ten target tokens at once.

    It has passed the 20 with p close to 0. From the second target token on their p is close to 1, which matters only to
    a closed form that divides by the product of all (1 - p).
    """
    model, criterion = tiny.model(published_alignment=published).eval(), tiny.criterion(latency_weight=0.5)
    e = torch.full((10, 24), 6.0)
    e[0, :20] = -12.0
    rows = iter([*e, *e])  # the hard schedule, then the expected one
    monkeypatch.setattr(MonotonicEnergy, "forward", lambda *_: next(rows).unsqueeze(0))
    return logged(criterion, [criterion(model, tiny.batch([tiny.Pair([4] * 23, [5] * 9)]))[2]])


def test_a_burst_keeps_its_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = delays_of_a_burst(False, monkeypatch)
    assert exact["dal"] == 21 and exact["expected_dal"] == pytest.approx(21, abs=0.05)
    assert exact["ap"] == 21 / 24 and exact["expected_ap"] == pytest.approx(21 / 24, abs=0.005)


def test_the_published_closed_form_loses_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected stop is then the last token instead of the 21st."""
    published = delays_of_a_burst(True, monkeypatch)
    assert published["ap"] == 21 / 24 and published["expected_ap"] > 0.95
    assert published["last_mass"] == 0 and published["expected_last_mass"] > 0.8


@pytest.mark.slow
def test_the_delay_falls_as_lambda_rises() -> None:
    """Copying four words: the hard DAL of each lambda is not above that of the one before, and falls over them all."""
    sentences = torch.randint(4, 10, (32, 4), generator=torch.Generator().manual_seed(0)).tolist()
    sample = tiny.batch([tiny.Pair(words, words) for words in sentences])
    sizes = dict(hidden_size=24, embed_dim=16, energy_dim=16)
    dal = []
    for lam in (0.0, 0.05, 0.2, 0.5):
        torch.manual_seed(1)
        model = tiny.model(noise=1.0, energy_bias=-1.0, head_pace=5.0, spread=0, **sizes)
        criterion = tiny.criterion(latency_weight=lam, label_smoothing=0.0)
        nll, log = tiny.overfit(model, criterion, sample, updates=70, lr=2e-2)
        dal.append(float(log["dal"]) / len(sentences))
        assert lam > 0.05 or nll < 0.2, "it has not learned to translate"
    assert dal == sorted(dal, reverse=True) and dal[0] > dal[-1] + 0.5, dal


@pytest.mark.slow
@pytest.mark.parametrize("attention", tiny.FIVE)
def test_a_batch_can_be_learned_by_heart(attention: str) -> None:
    sizes = dict(hidden_size=24, embed_dim=16, energy_dim=8)
    model = tiny.model(attention=attention, noise=1.0, energy_bias=-1.0, spread=0, **sizes)
    sample = tiny.batch(tiny.pairs(32, shortest=2, longest=3))
    nll, _ = tiny.overfit(model, tiny.criterion(label_smoothing=0.0), sample, updates=70, lr=3e-2)
    assert nll < 0.1
