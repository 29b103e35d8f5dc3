"""Every numeric option either works or is refused at the start with a sentence that names the option.

The options are those that the plugin itself registers with fairseq or adds to a verb; new ones are found automatically.
Of fairseq's own options, those that the plugin checks are tested (`INHERITED`).
"""

import argparse
import contextlib
import dataclasses
import importlib
import io
import math
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Tuple, Type
from unittest import mock

import pytest
import torch
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.dataclass.configs import GenerationConfig
from fairseq.dataclass.utils import gen_parser_from_dataclass, merge_with_parent
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from fairseq.optim.lr_scheduler import LR_SCHEDULER_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES as FAIRSEQ_REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from fairseq_milk.analysis.report import Picture
from fairseq_milk.cli import VERBS, main
from fairseq_milk.console.errors import UserError
from fairseq_milk.generation import check_knobs, configure_head, translate
from fairseq_milk.models.config import MilkRNMTConfig
from fairseq_milk.models.milk_rnmt import MilkRNMT
from fairseq_milk.optim import RNMTAdam, RNMTPlusSchedule
from fairseq_milk.tasks.generators import generation_options
from tests.support import tiny_models as tiny

REGISTRIES: Dict[str, Dict[str, Any]] = {
    "model": MODEL_DATACLASS_REGISTRY,
    "criterion": CRITERION_DATACLASS_REGISTRY,
    "optimizer": OPTIMIZER_DATACLASS_REGISTRY,
    "lr_scheduler": LR_SCHEDULER_DATACLASS_REGISTRY,
    "task": TASK_DATACLASS_REGISTRY,
    "scorer": FAIRSEQ_REGISTRIES["scoring"]["dataclass_registry"],
}


class Option(NamedTuple):
    kind: str  # the registry
    dataclass: Type[Any]
    name: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


def of_ours(dataclass: Type[Any]) -> Iterator[str]:
    """The numbers among the options that a dataclass, or one that it inherits from, declares in this plugin."""
    for kind in dataclass.__mro__:
        if kind.__module__.startswith("fairseq_milk."):
            for field in dataclasses.fields(kind):
                declared = field.name in kind.__dict__.get("__annotations__", {})
                interpolated = isinstance(field.default, str) and field.default.startswith("${")
                if declared and not interpolated and ("int" in str(field.type) or "float" in str(field.type)):
                    yield field.name


def all_options() -> List[Option]:
    found = {
        Option(kind, dataclass, name)
        for kind, registry in REGISTRIES.items()
        for dataclass in registry.values()
        for name in of_ours(dataclass)
    }
    return sorted(found, key=lambda option: (option.kind, option.name))


# fairseq's own, checked by the plugin
INHERITED = [
    Option("optimizer", OPTIMIZER_DATACLASS_REGISTRY["rnmt_adam"], "weight_decay"),
    Option("criterion", CRITERION_DATACLASS_REGISTRY["latency_augmented"], "ignore_prefix_size"),
    *(Option("generation", GenerationConfig, name) for name in ("max_len_a", "max_len_b", "min_len", "unkpen")),
]
OPTIONS = all_options() + INHERITED
STRANGE = [
    "",
    " ",
    "abc",
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1",
    "2.5",
    "1e400",
    "-1e400",
    "1e-320",
    "0x10",
    "1_0",
    "٣",
    "None",
]
STRANGE += ["2147483647", "2147483648", "1" + "0" * 400, "-0.0", "0.9999999999999999", "1e9", "5e-324", "3.5e38"]
texts = st.one_of(
    st.sampled_from(STRANGE),
    st.integers().map(str),
    st.floats().map(repr),
    st.integers(-3, 40).map(str),
    st.text(max_size=5),
)


# ---- what "it works" means --------------------------------------------------------------------------------------


def trained(model: Any, criterion: Any, optimizer: Callable[[Any], Any]) -> None:
    """Two updates with finite losses and parameters, and a translation that ends."""
    sample = tiny.batch(tiny.pairs(3, longest=4))
    parameters = list(model.parameters())
    step = optimizer(parameters)
    for update in range(2):
        model.train()
        model.set_num_updates(update)
        loss, size, _ = criterion(model, sample)
        assert math.isfinite(loss.item())
        model.zero_grad()
        (loss / size).backward()
        step()
    assert all(torch.isfinite(p).all() for p in parameters)
    decoded(model)


def decoded(model: MilkRNMT, limits: Mapping[str, Any] = MappingProxyType({}), **knobs: Any) -> None:
    """The model prefers EOS, so that a large length limit does not make the test slow."""
    with torch.no_grad():
        model.decoder.output.bias[model.decoder.dictionary.eos()] = 1e4
    defaults = dict(head_threshold=0.5, min_wait=1, max_consecutive_writes=0, decode_k=None, no_early_eos=False)
    options = argparse.Namespace(**{**defaults, **knobs})
    check_knobs(options)
    configure_head(model.decoder.attention, options)
    wanted = generation_options(argparse.Namespace(**limits), options)
    outputs = translate(model.eval(), torch.tensor([[5, 6, 7, 2], [5, 2, 1, 1]]), wanted)
    assert all(output.tokens[-1] == 2 for output in outputs)


def adam(parameters: Any, **changes: Any) -> Any:
    settings = dict(lr=[0.01], tpu=False, fp16=False, bf16=False, amp=False, **changes)
    cfg = merge_with_parent(OPTIMIZER_DATACLASS_REGISTRY["rnmt_adam"](), OmegaConf.create({"o": settings}).o)
    optimizer = RNMTAdam(cfg, parameters)

    def step() -> None:
        optimizer.clip_grad_norm(0.0)
        optimizer.step()

    return step


def runs_model(**changes: Any) -> None:
    attentions = {"chunk_size": "mocha", "wait_k": "waitk", "emission_rate": "waitk"}
    (option,) = changes
    build = tiny.model if option in {field.name for field in dataclasses.fields(MilkRNMTConfig)} else tiny.transformer
    model = build(spread=0, attention=attentions.get(option, "milk"), **changes)
    trained(model, tiny.criterion(latency_weight=0.1), adam)


def runs_criterion(**changes: Any) -> None:
    weight = {"latency_weight": 0.1, **changes}
    trained(tiny.model(spread=0), tiny.criterion(**weight), adam)


def runs_optimizer(**changes: Any) -> None:
    trained(tiny.model(spread=0), tiny.criterion(), lambda parameters: adam(parameters, **changes))


def runs_lr_scheduler(**changes: Any) -> None:
    settings = OmegaConf.create({"s": {"lr": [0.1], **changes}}).s
    cfg = merge_with_parent(LR_SCHEDULER_DATACLASS_REGISTRY["rnmt_plus"](), settings)
    optimizer = RNMTAdamStub()
    schedule = RNMTPlusSchedule(cfg, optimizer)
    for update in (0, 1, 10, 10**4, 10**6, 10**9):
        assert 0 < schedule.step_update(update) <= 0.1 * max(cfg.lr_replicas, 1)


class RNMTAdamStub(RNMTAdam):
    """A learning rate and nothing else."""

    def __init__(self) -> None:
        self.lr = 0.0

    def set_lr(self, lr: float) -> None:
        self.lr = lr

    def get_lr(self) -> float:
        return self.lr


def runs_task(**changes: Any) -> None:
    decoded(tiny.model(spread=0, attention="waitk" if "decode_k" in changes else "milk"), **changes)


def runs_generation(**changes: Any) -> None:
    decoded(tiny.model(spread=0), limits=changes)


RUNS = {
    "model": runs_model,
    "criterion": runs_criterion,
    "optimizer": runs_optimizer,
    "lr_scheduler": runs_lr_scheduler,
    "task": runs_task,
    "generation": runs_generation,
}


def parsed(option: Option, text: str) -> Any:
    """As fairseq's own parser reads it; a refusal of the parser becomes a UserError with its words."""
    parser = argparse.ArgumentParser()
    gen_parser_from_dataclass(parser, option.dataclass())
    return getattr(parse(parser, [f"{option.flag}={text}", "DATA"]), option.name)


def parse(parser: argparse.ArgumentParser, arguments: List[str]) -> argparse.Namespace:
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        try:
            return parser.parse_known_args(arguments)[0]
        except SystemExit:
            raise UserError(err.getvalue()) from None


def small(option: Option, value: Any) -> bool:
    """Values that are valid but too large for a test."""
    sizes = ("encoder_layers", "decoder_layers", "embed_dim", "hidden_size", "energy_dim")
    return option.name not in sizes or value <= 12 or value > 2**16


def test_the_options_are_found() -> None:
    names = {option.name for option in OPTIONS}
    assert {
        "noise",
        "wait_k",
        "latency_weight",
        "label_smoothing",
        "adam_eps",
        "lr_warmup",
        "min_wait",
        "decode_k",
    } <= names
    assert {option.kind for option in OPTIONS} == set(RUNS)


EXAMPLES = settings().max_examples // 4  # for each option


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_number_works_or_is_refused(option: Option) -> None:
    @settings(max_examples=EXAMPLES)
    @given(texts)
    @example("2147483647")
    @example("1e-320")
    @example("0")
    @example("nan")
    def check(text: str) -> None:
        try:
            value = parsed(option, text)
            assume(value is None or small(option, value))
            RUNS[option.kind](**{option.name: value})
        except UserError as error:
            assert option.flag in str(error)

    check()


# ---- the verbs --------------------------------------------------------------------------------------------------


class VerbOption(NamedTuple):
    command: Tuple[str, ...]  # the verb, and the kind of it where there are several
    flag: str

    def __str__(self) -> str:
        return " ".join((*self.command, self.flag))


def numbers_of(parser: argparse.ArgumentParser, *command: str) -> Iterator[VerbOption]:
    """The flags that take a number, also of the kinds of a verb (plot schedule)."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for kind, subparser in action.choices.items():
                yield from numbers_of(subparser, *command, kind)
        elif action.type in (int, float):
            yield VerbOption(command, action.option_strings[0])


def options_of(verb: str) -> List[VerbOption]:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"fairseq_milk.cli.{verb}").add_arguments(parser)
    return list(numbers_of(parser, verb))


VERB_OPTIONS = [option for verb in VERBS for option in options_of(verb)]


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def asked(*arguments: Any) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as refused:  # the parser's
            code = int(refused.code or 0)
    return Answer(code, out.getvalue(), err.getvalue())


def test_the_options_of_kinds_are_found() -> None:
    assert {"plot schedule --sentence", "report --worst", "sweep --jobs"} <= set(map(str, VERB_OPTIONS))


@pytest.mark.parametrize("option", VERB_OPTIONS, ids=str)
def test_a_verb_refuses_values_that_are_not_numbers(option: VerbOption) -> None:
    answer = asked(*option.command, f"{option.flag}=abc")
    assert answer.code == 2 and option.flag in answer.err


@pytest.fixture(scope="session")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz") / "generate.jsonl"
    path.write_text('{"id": 3, "source": ["a"], "hypothesis": ["b"], "delays": [1, 2], "reference": ["b"]}\n')
    return path


@pytest.mark.parametrize("flag", [option.flag for option in options_of("stream")])
@given(text=texts)
def test_numbers_of_a_stream(flag: str, text: str) -> None:
    """The number is refused before the checkpoint is opened."""
    answer = asked("stream", "/nowhere.pt", "--data", "/nowhere", f"{flag}={text}")
    assert answer.code == 2 and (flag in answer.err or "there is no checkpoint /nowhere.pt" in answer.err)


@pytest.mark.parametrize("flag", [option.flag for option in options_of("sweep")])
@given(text=texts)
@example(text="0")
def test_numbers_of_a_sweep(flag: str, text: str) -> None:
    """The number is refused before the file is read."""
    answer = asked("sweep", "/nowhere.yaml", f"{flag}={text}")
    assert answer.code == 2 and (flag in answer.err or "/nowhere.yaml" in answer.err)
    with contextlib.suppress(ValueError):
        assert int(text) >= 1 or flag in answer.err


@pytest.mark.parametrize("flag", [option.flag for option in options_of("score")])
@given(text=texts)
def test_numbers_of_a_score(flag: str, text: str, generation: Path) -> None:
    with contextlib.suppress(ValueError):
        assume(flag != "--bootstrap" or int(text) < 50 or int(text) > 10**6)
    answer = asked("score", generation, "--bootstrap=2", f"{flag}={text}")
    assert (answer.code == 0 and "DAL" in answer.out) or (answer.code == 2 and flag in answer.err)


@pytest.mark.parametrize("option", options_of("plot") + options_of("report"), ids=str)
@given(text=texts)
@example(text="3")
@example(text="1" + "0" * 30)
def test_numbers_of_what_is_drawn(option: VerbOption, text: str, generation: Path) -> None:
    """Run the verb without drawing, which takes a second."""
    out = generation.parent / ("picture.svg" if option.command[0] == "plot" else "report.html")
    with without_pictures():
        answer = asked(*option.command, generation, "--sentence=3", f"--out={out}", f"{option.flag}={text}")
    assert answer.code == 0 or (answer.code == 2 and option.flag in answer.err), answer


@contextlib.contextmanager
def without_pictures() -> Iterator[None]:
    def nothing(*unused: Any) -> Any:
        return Picture("", "", 0.0, 0)

    plot, report = "fairseq_milk.cli.plot", "fairseq_milk.analysis.report"
    with mock.patch.multiple(plot, schedule_diagrams=nothing, save=lambda *unused: []):
        with mock.patch.multiple(report, _curves=lambda *unused: [], _delays=nothing, _diagram=nothing):
            yield
