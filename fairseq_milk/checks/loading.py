"""Builds the subject of the checks from a checkpoint, or from the arguments of a training."""

import os
import warnings
from typing import List, Sequence

from fairseq import options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

from ..console.errors import UserError
from ..generation import attention_of
from ..generation.loading import load_with_configuration
from ..host.command_line import command_line
from ..host.registration import register
from .subject import Subject, subject


def from_checkpoint(checkpoint: str, data: str, subset: str) -> Subject:
    model, task, cfg = load_with_configuration(checkpoint, data)
    task.load_dataset(subset)
    weight = OmegaConf.select(cfg, "criterion.latency_weight") or 0.0  # criteria of fairseq have none
    return subject(model, task, task.datasets[subset], data, trained=True, latency_weight=weight)


def from_training(arguments: Sequence[str]) -> Subject:
    """The model, data and criterion with which `fairseq-train ARGUMENTS` would start; nothing is written."""
    if not any(argument.split("=")[0] in ("-a", "--arch") for argument in arguments):
        raise UserError("--train takes the arguments of fairseq-train, and there is no --arch among them")
    register()
    with command_line(["fairseq-train", *without_plugin(arguments)]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hydra warns about the defaults of fairseq
        args = options.parse_args_and_arch(options.get_training_parser())
        cfg = convert_namespace_to_omegaconf(args)
    utils.set_torch_seed(cfg.common.seed)
    task = tasks.setup_task(cfg.task)
    model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
    if attention_of(model) is None:
        raise UserError(f"--arch {args.arch} is not a model of fairseq_milk (--arch milk_rnmt)")
    split, data = cfg.dataset.train_subset, utils.split_paths(cfg.task.data)[0]
    task.load_dataset(split, epoch=1)
    weight = getattr(criterion, "latency_weight", 0.0)
    return subject(model, task, task.datasets[split], data, trained=False, latency_weight=weight)


def without_plugin(arguments: Sequence[str]) -> List[str]:
    """The arguments without `--user-dir fairseq_milk`: it is already imported, and fairseq refuses a second copy."""
    kept: List[str] = []
    for argument in arguments:
        if kept[-1:] == ["--user-dir"] and is_plugin(argument):
            kept.pop()
        elif not (argument.startswith("--user-dir=") and is_plugin(argument.split("=", 1)[1])):
            kept.append(argument)
    return kept


def is_plugin(path: str) -> bool:
    return os.path.basename(path.rstrip("/")) == "fairseq_milk"
