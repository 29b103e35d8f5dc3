"""The paper's objective (section 3.3): the label-smoothed NLL of every sentence plus the cost of its delays.

    L = sum_(x,y)  -log p(y|x)  +  lambda C(g)

Both terms are sums over sentences, so their ratio does not depend on the batch size, --update-freq, --sentence-avg,
padding or the number of workers.  In evaluation the schedule is hard: `valid_loss` is the loss of the system that is
decoded.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Tuple

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from torch import Tensor

from ..console.errors import UserError, check_numbers, require
from ..functional import (
    average_lagging,
    average_proportion,
    differentiable_average_lagging,
    expected_delays,
    last_position,
    padding_mask,
)
from ..functional.heads import delay_variance, weighted_delay
from ..functional.output_loss import label_smoothed_nll
from ..host.registration import release_criterion
from ..host.training_length import check_threshold, length_of_run, thresholds_in_updates
from .collapse import ALARM

NAME = "latency_augmented_label_smoothed_cross_entropy"
HEAD_LATENCIES = {"weighted": weighted_delay, "maximum": None}  # None: the expected delay of the last head to stop
LATENCIES = {"dal": differentiable_average_lagging, "ap": average_proportion}
PER_SENTENCE = ("ap", "dal")  # logged as a mean over sentences
PER_TOKEN = ("certainty", "last_mass")  # logged as a mean over target tokens


@dataclass
class LatencyAugmentedConfig(LabelSmoothedCrossEntropyCriterionConfig):
    label_smoothing: float = field(
        default=0.1, metadata={"help": "epsilon for label smoothing, 0 means no label smoothing"}
    )
    latency_weight: float = field(default=0.0, metadata={"help": "lambda, the weight of the latency term"})
    latency_metric: ChoiceEnum(list(LATENCIES)) = field(  # type: ignore[valid-type]
        default="dal", metadata={"help": "C, the metric of the delays"}
    )
    latency_after: float = field(
        default=0.3,
        metadata={"help": "updates before the latency term is switched on, or below 1 a share of the training"},
    )
    latency_ramp: float = field(
        default=0.05,
        metadata={
            "help": "updates over which lambda then grows linearly to its value, or below 1 a share of the training; "
            "0: at once"
        },
    )
    head_latency: ChoiceEnum(list(HEAD_LATENCIES)) = field(  # type: ignore[valid-type]
        default="weighted",
        metadata={
            "help": "the delay of a token with several schedules: weighted, an average that favours slow ones "
            "(Ma et al. 2020), or maximum, the expected delay of the head that stops last"
        },
    )
    head_variance_weight: float = field(
        default=0.0,
        metadata={"help": "weight of the variance of the delays of several schedules (Ma et al. 2020)"},
    )


release_criterion(NAME)


@register_criterion(NAME, dataclass=LatencyAugmentedConfig)
class LatencyAugmentedCriterion(LabelSmoothedCrossEntropyCriterion):
    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        latency_weight: float = 0.0,
        latency_metric: str = "dal",
        latency_after: float = 0,
        latency_ramp: float = 0,
        head_latency: str = "weighted",
        head_variance_weight: float = 0.0,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        positive = 0 <= latency_weight < float("inf")
        require(positive, "latency_weight", latency_weight, "must be 0 or a positive number")
        require(0 <= label_smoothing < 1, "label_smoothing", label_smoothing, "must be at least 0 and below 1")
        thresholds = {"latency_after": latency_after, "latency_ramp": latency_ramp}
        for option, value in thresholds.items():
            check_threshold(option, value)
        require(ignore_prefix_size >= 0, "ignore_prefix_size", ignore_prefix_size, "must be 0 or a number of tokens")
        check_numbers({**thresholds, "latency_weight": latency_weight, "ignore_prefix_size": ignore_prefix_size})
        variance = head_variance_weight
        require(0 <= variance < float("inf"), "head_variance_weight", variance, "must be 0 or a positive number")
        self.head_latency, self.head_variance_weight = HEAD_LATENCIES[str(head_latency)], variance
        self.latency_weight = latency_weight
        self.latency_cost = LATENCIES[str(latency_metric)]
        self.thresholds: Mapping[str, float] = thresholds if latency_weight > 0 else dict.fromkeys(thresholds, 0)
        self.set_length(length_of_run(task))

    def set_length(self, updates: int) -> None:
        """Set the length of the training, of which thresholds can be shares; 0 if it is not known."""
        ALARM.reset(updates)
        self.latency_after, self.latency_ramp = thresholds_in_updates(self.thresholds, updates).values()

    def current_weight(self, num_updates: int) -> float:
        """lambda at this update: 0 until `latency_after`, then a linear ramp."""
        since = num_updates - self.latency_after
        if since < 0:
            return 0.0
        return self.latency_weight * min(1.0, (since + 1) / (self.latency_ramp + 1))

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, Any, Dict[str, Any]]:
        features, extra = model(**sample["net_input"], features_only=True)
        if "alpha" not in extra:
            raise UserError(f"--criterion {NAME} needs the delays of --arch milk_rnmt or milk_transformer")
        nll, target = self._likelihood(model, features, sample), sample["target"]
        lengths = target.ne(self.padding_idx).sum(1)
        log, cost = self._latency(extra, target)
        lam = self.current_weight(model.num_updates) if model.training else self.latency_weight
        loss = nll.loss + lam * cost if lam > 0 else nll.loss
        if self.head_variance_weight > 0:
            loss = loss + self.head_variance_weight * self._variance(extra, target)
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        learned = model.decoder.attention.learned
        log.update(
            loss=loss.data,
            nll_loss=nll.nll.data,
            ntokens=sample["ntokens"],
            nsentences=target.size(0),
            sample_size=sample_size,
            latency_weight=lam * target.size(0),
            training=int(model.training),
            learned=int(learned and model.decoder.attention.stop.active),
        )
        if self.report_accuracy:
            counted = target[:, self.ignore_prefix_size :].ne(self.padding_idx)
            log.update(n_correct=nll.correct, total=counted.sum())
        if not model.training:  # a hard schedule: the argmin in AL is not defined for expected delays
            log["al"] = average_lagging(expected_delays(extra["alpha"]), extra["src_lengths"], lengths).sum()
            if learned:
                log.update(self._expected(model, sample))
        return loss, sample_size, log

    def _likelihood(self, model: Any, features: Tensor, sample: Dict[str, Any]) -> Any:
        """Output layer and label-smoothed NLL in one function, which never holds the logits of a whole batch.

        Padding is removed first: it is sorted to the end, and the number of words is known without synchronisation.
        """
        target, output = sample["target"][:, self.ignore_prefix_size :].flatten(), model.decoder.output
        words = target.ne(self.padding_idx).byte().argsort(descending=True)[: sample["ntokens"]]
        features = output.project(features[:, self.ignore_prefix_size :].flatten(0, 1).index_select(0, words))
        return label_smoothed_nll(features, output.factor(), output.bias, target[words], self.eps, self.padding_idx)

    def _latency(self, extra: Dict[str, Tensor], target: Tensor) -> Tuple[Dict[str, Any], Tensor]:
        """The logged figures of the schedule, and C(g), both summed over the batch."""
        alpha, src_lengths = extra["alpha"], extra["src_lengths"]
        tgt_lengths = target.ne(self.padding_idx).sum(1)
        g = expected_delays(alpha)  # (B, I)
        g_cost = g
        if self.head_latency is not None and extra["alphas"].size(1) > 1:
            g_cost = self.head_latency(expected_delays(extra["alphas"]))
        cost = self.latency_cost(g_cost, src_lengths, tgt_lengths).sum()
        with torch.no_grad():
            written, words = (~padding_mask(n, alpha.size(1)) for n in (tgt_lengths, tgt_lengths - 1))  # (B, I)
            at_the_end = alpha.masked_fill(~last_position(src_lengths, alpha[:, 0]).unsqueeze(1), 0.0).sum(-1)
            log = {
                "latency": cost.data,
                "ap": average_proportion(g, src_lengths, tgt_lengths).sum(),
                "dal": differentiable_average_lagging(g, src_lengths, tgt_lengths).sum(),
                "first_mass": (alpha[..., 0] * words).sum(),
                "certainty": (alpha.max(-1).values * written).sum(),
                "last_mass": (at_the_end * written).sum(),
            }
        return log, cost

    def _variance(self, extra: Dict[str, Tensor], target: Tensor) -> Tensor:
        """The variance of the delays of the schedules: averaged over a sentence, summed over the batch."""
        variance = delay_variance(expected_delays(extra["alphas"]))  # (B, I)
        written = target.ne(self.padding_idx)
        return ((variance * written).sum(1) / written.sum(1)).sum()

    def _expected(self, model: Any, sample: Dict[str, Any]) -> Dict[str, Any]:
        """The figures of the batch under the expected schedule, which evaluation logs beside the hard one."""
        features, extra = model(**sample["net_input"], features_only=True, hard=False)
        log = self._latency(extra, sample["target"])[0]
        log["nll_loss"] = self._likelihood(model, features, sample).nll.data / math.log(2)
        return {f"expected_{name}": log[name] for name in (*PER_SENTENCE, *PER_TOKEN, "nll_loss")}

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        total = {name: sum(log.get(name, 0) for log in logging_outputs) for name in logging_outputs[0]}

        def average(names: Iterable[str], over: str) -> None:
            for name in names:
                if name in total:
                    metrics.log_scalar(name, total[name] / total[over], total[over], round=3)

        total["words"] = total["ntokens"] - total["nsentences"]
        if total["words"] > 0:
            average(("first_mass",), "words")
        average(("latency", "al", *PER_SENTENCE, *(f"expected_{name}" for name in PER_SENTENCE)), "nsentences")
        average((*PER_TOKEN, "expected_nll_loss", *(f"expected_{name}" for name in PER_TOKEN)), "ntokens")
        weight = total["latency_weight"] / total["nsentences"]
        metrics.log_scalar("latency_weight", weight, total["nsentences"], round=6)
        ALARM.watch({name: float(total[name]) for name in ALARM.names})


@register_criterion("latency_augmented", dataclass=LatencyAugmentedConfig)
class LatencyAugmentedAlias(LatencyAugmentedCriterion):
    """The criterion under a new name, for fairseq-hydra-train, which looks up names before it loads plugins."""
