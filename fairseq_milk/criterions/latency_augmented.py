"""The paper's objective (section 3.3): for every sentence, its label-smoothed NLL and what its delays cost.

    L = sum_(x,y)  -log p(y|x)  +  lambda C(g)

Both terms are sums over sentences, so their ratio depends neither on the batch size, --update-freq, --sentence-avg and
padding, nor on the number of workers.  In evaluation the schedule is hard: `valid_loss` is the loss of the system that
will be decoded.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Tuple

import torch
from fairseq.criterions import CRITERION_REGISTRY, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from omegaconf.errors import OmegaConfBaseException
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
from .collapse import ALARM

NAME = "latency_augmented_label_smoothed_cross_entropy"
HEAD_LATENCIES = {"weighted": weighted_delay, "maximum": None}  # None: by the distribution of the last stop
LATENCIES = {"dal": differentiable_average_lagging, "ap": average_proportion}
A_SENTENCE = ("ap", "dal")  # logged as a mean over sentences
A_TOKEN = ("certainty", "last_mass")  # logged as a mean over target tokens


@dataclass
class LatencyAugmentedConfig(LabelSmoothedCrossEntropyCriterionConfig):
    label_smoothing: float = field(
        default=0.1, metadata={"help": "epsilon for label smoothing, 0 means no label smoothing"}
    )
    latency_weight: float = field(default=0.0, metadata={"help": "lambda, the weight of the latency term"})
    latency_metric: ChoiceEnum(list(LATENCIES)) = field(  # type: ignore[valid-type]
        default="dal", metadata={"help": "C, what the delays cost"}
    )
    latency_after: int = field(default=0, metadata={"help": "updates before the latency term is switched on"})
    latency_ramp: int = field(
        default=0, metadata={"help": "updates over which lambda then grows linearly to its value; 0: at once"}
    )
    head_latency: ChoiceEnum(list(HEAD_LATENCIES)) = field(  # type: ignore[valid-type]
        default="weighted",
        metadata={
            "help": "the delay of a token with several schedules: weighted, the average in which slow heads weigh most "
            "(Ma et al. 2020), or maximum, the expected delay of the head that stops last"
        },
    )
    head_variance_weight: float = field(
        default=0.0,
        metadata={"help": "weight of the variance of the delays of several schedules (Ma et al. 2020), per sentence"},
    )


# fairseq has a criterion of this name that needs a SimulEval of before 2022 and cannot train the schedule
CRITERION_REGISTRY.pop(NAME, None)


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
        latency_after: int = 0,
        latency_ramp: int = 0,
        head_latency: str = "weighted",
        head_variance_weight: float = 0.0,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        positive = 0 <= latency_weight < float("inf")
        require(positive, "latency_weight", latency_weight, "must be 0 or a positive number")
        require(0 <= label_smoothing < 1, "label_smoothing", label_smoothing, "must be at least 0 and below 1")
        updates = {"latency_after": latency_after, "latency_ramp": latency_ramp}
        for option, value in updates.items():
            require(value >= 0, option, value, "must be 0 or a number of updates")
        require(ignore_prefix_size >= 0, "ignore_prefix_size", ignore_prefix_size, "must be 0 or a number of tokens")
        check_numbers({**updates, "latency_weight": latency_weight, "ignore_prefix_size": ignore_prefix_size})
        variance = head_variance_weight
        require(0 <= variance < float("inf"), "head_variance_weight", variance, "must be 0 or a positive number")
        ALARM.reset(length_of_run(task))
        self.head_latency, self.head_variance_weight = HEAD_LATENCIES[str(head_latency)], variance
        self.latency_weight = latency_weight
        self.latency_cost = LATENCIES[str(latency_metric)]
        self.latency_after = latency_after
        self.latency_ramp = latency_ramp

    def current_weight(self, num_updates: int) -> float:
        """lambda at this update: 0 until `latency_after`, then a linear ramp."""
        since = num_updates - self.latency_after
        if since < 0:
            return 0.0
        return self.latency_weight * min(1.0, (since + 1) / (self.latency_ramp + 1))

    def forward(self, model: Any, sample: Dict[str, Any], reduce: bool = True) -> Tuple[Tensor, Any, Dict[str, Any]]:
        features, extra = model(**sample["net_input"], features_only=True)
        if "alpha" not in extra:
            raise UserError(f"--criterion {NAME} is for --arch milk_rnmt or milk_transformer, whose delays it can see")
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
            learned=int(learned),
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
        """Output layer and label-smoothed NLL at once, so that the logits of a batch never exist together.

        Of the words alone: padding is sorted behind them, and their number is known without asking the device.
        """
        target, output = sample["target"][:, self.ignore_prefix_size :].flatten(), model.decoder.output
        words = target.ne(self.padding_idx).byte().argsort(descending=True)[: sample["ntokens"]]
        features = output.project(features[:, self.ignore_prefix_size :].flatten(0, 1).index_select(0, words))
        return label_smoothed_nll(features, output.factor(), output.bias, target[words], self.eps, self.padding_idx)

    def _latency(self, extra: Dict[str, Tensor], target: Tensor) -> Tuple[Dict[str, Any], Tensor]:
        """Sums over the batch: what is logged of the schedule, and C(g)."""
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
        """Of the delays of the schedules, averaged over the target tokens of each sentence; a sum over the batch."""
        variance = delay_variance(expected_delays(extra["alphas"]))  # (B, I)
        written = target.ne(self.padding_idx)
        return ((variance * written).sum(1) / written.sum(1)).sum()

    def _expected(self, model: Any, sample: Dict[str, Any]) -> Dict[str, Any]:
        """The same batch under the expected schedule, beside the hard one that evaluation reports."""
        features, extra = model(**sample["net_input"], features_only=True, hard=False)
        log = self._latency(extra, sample["target"])[0]
        log["nll_loss"] = self._likelihood(model, features, sample).nll.data / math.log(2)
        return {f"expected_{name}": log[name] for name in (*A_SENTENCE, *A_TOKEN, "nll_loss")}

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
        average(("latency", "al", *A_SENTENCE, *(f"expected_{name}" for name in A_SENTENCE)), "nsentences")
        average((*A_TOKEN, "expected_nll_loss", *(f"expected_{name}" for name in A_TOKEN)), "ntokens")
        weight = total["latency_weight"] / total["nsentences"]
        metrics.log_scalar("latency_weight", weight, total["nsentences"], round=6)
        ALARM.watch({name: float(total[name]) for name in ALARM.names})


def length_of_run(task: Any) -> int:
    """--max-update, where the task knows it; else 0."""
    try:
        return int(task.cfg.max_update)
    except (AttributeError, TypeError, ValueError, OmegaConfBaseException):
        return 0


@register_criterion("latency_augmented", dataclass=LatencyAugmentedConfig)
class LatencyAugmentedAlias(LatencyAugmentedCriterion):
    """The same under a name of its own: fairseq-hydra-train looks names up before it imports plugins."""
