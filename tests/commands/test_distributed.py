"""Data parallel, with real processes: gloo ranks on CPU, also through the script that examples/README.md gives."""

import os
import re
import shlex
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from fairseq import options as fairseq_options
from fairseq.dataclass.configs import DistributedTrainingConfig
from fairseq.distributed import ModuleProxyWrapper
from fairseq.distributed.utils import infer_init_method
from torch.nn.parallel import DistributedDataParallel

from fairseq_milk.models.config import MilkRNMTConfig
from fairseq_milk.optim.rnmt_plus import rnmt_plus_multiplier
from tests.support import fairseq_commands as commands
from tests.support import tiny_models as tiny
from tests.support.ranks import train_ranks

RECIPES = ("wmt15_de_en", "wmt14_en_fr")
SCRIPT = commands.ROOT / "scripts" / "train_cpu_ranks.sh"
WITNESS = str(Path(__file__).resolve().parents[1] / "support" / "rank_witness")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return commands.make_corpus(tmp_path_factory.mktemp("distributed"))


QUIET = ["--noise", 0, "--dropout", 0]  # one process draws other random numbers than two ranks do


def arguments(data: Path, save_dir: Path, max_update: int, *more: Any, arch: str = commands.RNMT) -> List[str]:
    """Arguments of a training of MILk with lambda > 0."""
    options = ["--latency-weight", 0.3, "--decoder-layers", 2, "--disable-validation", *more]
    witnessed = {"simultaneous_translation": "witnessed_translation", commands.PLUGIN: WITNESS}
    arguments = commands.training(data, save_dir, *options, max_update=max_update, arch=arch)
    return [witnessed.get(argument, argument) for argument in arguments]


def witnesses(stdout: str, what: str = "parameters") -> Dict[int, Dict[int, str]]:
    """update -> rank -> digest of all parameters, or of the state of the random numbers ("drawn")."""
    found: Dict[int, Dict[int, str]] = {}
    for update, rank, digest in re.findall(rf"witness update=(\d+) rank=(\d+) .*?{what}=(\w+)", stdout):
        found.setdefault(int(update), {})[int(rank)] = digest
    return found


def by_script(arguments: List[str], folder: Path) -> str:
    finished = commands.shell(SCRIPT, 2, *arguments)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout


@pytest.mark.parametrize("arch, start", [(commands.RNMT, by_script), (commands.TRANSFORMER, train_ranks)])
def test_two_ranks_agree_with_each_other_and_with_one_process(
    arch: str, start: Callable[[List[str], Path], str], data: Path, tmp_path: Path
) -> None:
    """The training is interrupted after two updates and resumed, which tests loading too."""
    seen: Dict[int, Dict[int, str]] = {}
    for max_update, train in ((2, start), (4, train_ranks)):
        printed = train(arguments(data, tmp_path / "ranks", max_update, *QUIET, arch=arch), tmp_path)
        assert "training on 2 devices" in printed
        seen.update(witnesses(printed))
    assert sorted(seen) == [1, 2, 3, 4]
    for update, ranks in seen.items():
        assert sorted(ranks) == [0, 1] and ranks[0] == ranks[1], f"the ranks differ after update {update}"
    commands.run("fairseq-train", *arguments(data, tmp_path / "one", 4, *QUIET, "--update-freq", 2, arch=arch))
    two, one = (commands.parameters(tmp_path / name / "checkpoint_last.pt") for name in ("ranks", "one"))
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=0, atol=1e-7, msg=name)
    (r,) = (value for name, value in two.items() if name.endswith("attention.head.r"))
    assert float(r) != -1.0, "nothing has been learned"


def test_ranks_draw_different_numbers_and_a_resumed_run_the_same(data: Path, tmp_path: Path) -> None:
    """Noise and dropout on two ranks; three updates at once, and one and then two."""
    noisy = ["--noise", 4, "--dropout", 0.3, "--update-freq", 2]
    whole: Dict[int, Dict[int, str]] = {}
    parts: Dict[int, Dict[int, str]] = {}
    for seen, folder, limits in ((whole, "whole", [3]), (parts, "parts", [1, 3])):
        for max_update in limits:
            printed = train_ranks(arguments(data, tmp_path / folder, max_update, *noisy), tmp_path)
            seen.update(witnesses(printed))
            for update, drawn in witnesses(printed, "drawn").items():
                assert drawn[0] != drawn[1], f"the ranks drew the same numbers in update {update}"
    assert sorted(whole) == [1, 2, 3] and whole == parts
    assert all(ranks[0] == ranks[1] for ranks in whole.values())


def connects_torchrun() -> bool:
    """Whether fairseq connects the processes of torchrun without being told of them, as 0.12.2 does."""
    cfg = DistributedTrainingConfig(distributed_world_size=1, tpu=False)
    launched = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT="1", WORLD_SIZE="2", RANK="0")
    with mock.patch.dict(os.environ, launched):
        infer_init_method(cfg)
    return bool(cfg.distributed_world_size == 2)


@pytest.mark.skipif(connects_torchrun(), reason="this fairseq connects the processes of torchrun")
def test_torchrun_alone_is_refused(data: Path, tmp_path: Path) -> None:
    """Otherwise two separate models would be trained in one folder, with exit code 0."""
    torchrun = ["torchrun", "--standalone", "--local-addr", "127.0.0.1", "--nproc_per_node", 2, "--no_python"]
    more = ["--distributed-backend", "gloo", "--distributed-no-spawn"]
    finished = commands.shell(*torchrun, "fairseq-train", *commands.training(data, tmp_path, *more))
    assert finished.returncode != 0 and not list(tmp_path.glob("*.pt"))
    assert "torchrun started 2 processes but fairseq was told of one" in finished.stderr
    assert "add --distributed-world-size 2" in finished.stderr


def test_the_script_says_how_it_is_used() -> None:
    finished = commands.shell(SCRIPT, "two")
    assert finished.returncode == 2 and finished.stderr.startswith("usage: scripts/train_cpu_ranks.sh RANKS DATA")


# ---- fairseq's default back-end, which needs GPUs ---------------------------------------------------------------


@pytest.fixture
def a_group_of_one(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("build", [tiny.model, tiny.transformer])
def test_pytorch_s_ddp_sees_every_gradient(build: Any, shared: bool, a_group_of_one: None) -> None:
    """Also the gradients of the output layer, which the criterion uses outside the forward that DDP wraps."""
    model = build(decoder_layers=2, share_decoder_input_output_embed=shared).train()
    criterion, sample = tiny.criterion(latency_weight=0.5), tiny.batch(tiny.pairs(8))
    criterion(model, sample)[0].backward()
    alone = tiny.gradients(model)
    wrapped = ModuleProxyWrapper(DistributedDataParallel(model))
    for _ in range(2):  # the second forward fails if the first left gradients out
        wrapped.zero_grad()
        criterion(wrapped, sample)[0].backward()
    assert commands.different(tiny.gradients(model), alone) is None


# ---- the launch scripts of the paper's systems ------------------------------------------------------------------


def dry_run(*command: Any, **changes: str) -> List[List[str]]:
    finished = commands.shell("bash", *command, **changes)
    assert finished.returncode == 0, finished.stderr
    return [shlex.split(line) for line in finished.stdout.splitlines()]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_launch_scripts_have_the_paper_s_settings(recipe: str) -> None:
    """The printed command is read by fairseq's own parser, so that no option in it is unknown."""
    script, more = f"examples/{recipe}/train.sh", ["--emission-rate", "1.1"]
    (command,) = dry_run(script, "--dry-run", *more, NNODES="4", NODE_RANK="3")
    launcher, train = command[: command.index("fairseq-train")], command[command.index("fairseq-train") + 1 :]
    assert launcher[:7] == "torchrun --nnodes 4 --nproc_per_node 8 --node_rank 3".split()
    args = fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), train)
    assert (args.arch, args.attention) == ("milk_rnmt", "milk")
    assert (args.optimizer, args.lr_scheduler) == ("rnmt_adam", "rnmt_plus")
    assert args.batch_size * args.update_freq[0] * args.distributed_world_size == 4096
    assert (args.lr, args.lr_replicas, args.lr_warmup) == ([1e-4], 32, 500)
    assert (args.lr_decay_start, args.lr_decay_end) == (600_000, 1_200_000)
    assert (args.adam_betas, args.adam_eps) == ("(0.9, 0.999)", 1e-6)
    assert (args.label_smoothing, args.dropout, args.latency_weight, args.noise) == (0.1, 0.2, 0.2, 4.0)
    assert args.sentence_avg and args.emission_rate == 1.1
    assert (args.max_source_positions, args.max_target_positions, args.grouped_shuffling) == (98, 98, True)
    assert args.skip_invalid_size_inputs_valid_test, "a longer sentence of the development set ends no training"


@pytest.mark.parametrize("recipe", RECIPES)
def test_fewer_gpus_make_more_steps_per_update(recipe: str) -> None:
    (command,) = dry_run(f"examples/{recipe}/train.sh", "--dry-run", GPUS="2", LATENCY_WEIGHT="0.1")
    for option, value in (("--update-freq", "16"), ("--distributed-world-size", "2"), ("--latency-weight", "0.1")):
        assert command[command.index(option) + 1] == value
    refused = commands.shell("bash", f"examples/{recipe}/train.sh", "--dry-run", GPUS="3")
    assert refused.returncode == 2 and "must divide 32" in refused.stderr


@pytest.mark.parametrize("recipe", RECIPES)
def test_another_system_has_a_folder_of_its_own(recipe: str) -> None:
    """In the same folder it would continue from MILk's checkpoints: MoChA has the same parameters."""
    folders = []
    for more in ([], ["--attention", "mocha", "--chunk-size", "8"], ["--attention", "mocha", "--chunk-size", "4"]):
        (command,) = dry_run(f"examples/{recipe}/train.sh", "--dry-run", *more)
        folders.append(command[command.index("--save-dir") + 1])
    assert len(set(folders)) == 3 and folders[0].endswith(f"examples/{recipe}/checkpoints/milk-0.2")
    (command,) = dry_run(f"examples/{recipe}/train.sh", "--dry-run", "--fp16", SAVE="here")
    assert command[command.index("--save-dir") + 1] == "here"


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_head_waits_first_or_starts_as_in_the_paper(recipe: str) -> None:
    script = f"examples/{recipe}/train.sh"
    (waiting,), (literal,) = dry_run(script, "--dry-run"), dry_run(script, "--dry-run", HEAD="literal")
    assert "--energy-bias" not in waiting, "the default, -8"
    for option, value in (("--head-after", "6000"), ("--latency-after", "6000"), ("--latency-ramp", "3000")):
        assert waiting[waiting.index(option) + 1] == value
    for option, value in (("--energy-bias", "-1"), ("--latency-after", "0"), ("--head-after", "0")):
        assert literal[literal.index(option) + 1] == value
    assert literal[literal.index("--save-dir") + 1].endswith("checkpoints/milk-0.2-literal")
    refused = commands.shell("bash", script, "--dry-run", HEAD="other")
    assert refused.returncode == 2 and "HEAD is 'other'" in refused.stderr


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_head_has_enough_of_the_learning_rate_left_to_come_back(recipe: str) -> None:
    """docs/explanation/recipe.md: the sum of its learning rates times its pace is between 30 and 60."""
    (command,) = dry_run(f"examples/{recipe}/train.sh", "--dry-run")
    train = command[command.index("fairseq-train") + 1 :]
    args = fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), train)
    schedule = args.lr_replicas, args.lr_warmup, args.lr_decay_start, args.lr_decay_end
    rates = [args.lr[0] * rnmt_plus_multiplier(t, *schedule) for t in range(args.max_update)]
    pace = getattr(args, "head_pace", MilkRNMTConfig.head_pace)
    assert 30 < pace * sum(rates[int(args.head_after) :]) < 60
    assert sum(rates[: int(args.head_after)]) > 1.3, "the translator has learned as much as on Europarl before"


@pytest.mark.parametrize("recipe", RECIPES)
def test_slurm_starts_the_same_command_on_every_node(recipe: str) -> None:
    nodes = dry_run(f"examples/{recipe}/train.slurm", "--dry-run", "--fp16")
    assert [command[command.index("--node_rank") + 1] for command in nodes] == ["0", "1", "2", "3"]
    for command in nodes:
        assert command[command.index("--master_addr") + 1] == "first-node" and "--fp16" in command


SCRIPTS = ("run_recipe", "train_32_ranks", "train_cpu_ranks", "train_nodes", "train_paper", "train_slurm")


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scripts_parse(script: str) -> None:
    assert commands.shell("bash", "-n", f"scripts/{script}.sh").returncode == 0
