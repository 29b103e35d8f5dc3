"""The sweep files of the corpora: read by fairseq-milk sweep, options known to fairseq, grids as in the paper."""

import re
import shlex
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List

import pytest
from fairseq import options as fairseq_options

from examples.europarl_de_en import prepare as europarl_de_en
from examples.multi30k import prepare as multi30k
from examples.multi30k.precision import PAIRS
from examples.wmt14_en_fr import prepare as wmt14_en_fr
from examples.wmt15_de_en import prepare as wmt15_de_en
from fairseq_milk.sweep.options import check_options
from fairseq_milk.sweep.spec import Point, Spec, read_spec, words
from tests.support import fairseq_commands as commands

CORPORA = {
    "multi30k": multi30k.CORPORA[0],
    "europarl_de_en": europarl_de_en.CORPUS,
    "wmt15_de_en": wmt15_de_en.CORPUS,
    "wmt14_en_fr": wmt14_en_fr.CORPUS,
}
K = [2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 300]
LAMBDA = [0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01, 0]


def read(recipe: str, folder: Path) -> Spec:
    """Make folders that look like prepared data; reading the sweep needs no more."""
    corpus = CORPORA[recipe]
    data = folder / "data" / corpus.pair
    for name in ("bin", "raw"):
        (data / name).mkdir(parents=True)
    for bitext in corpus.bitexts():
        (data / "raw" / f"{bitext.name}.{corpus.target}").touch()
    return read_spec(shutil.copy(commands.ROOT / "examples" / recipe / "sweep.yaml", folder))


def systems(spec: Spec) -> Dict[str, List[Point]]:
    found: Dict[str, List[Point]] = defaultdict(list)
    for point in spec.points:
        found[point.system].append(point)
    return found


def values(points: List[Point], option: str) -> List[Any]:
    return [point.train[option] for point in points]


@pytest.mark.parametrize("recipe", CORPORA)
def test_fairseq_knows_the_options(recipe: str, tmp_path: Path) -> None:
    check_options(read(recipe, tmp_path))


@pytest.mark.parametrize(
    ("recipe", "lambdas", "rate"), [("wmt15_de_en", [0.75, *LAMBDA], 1), ("wmt14_en_fr", LAMBDA, 1.1)]
)
def test_the_paper_s_grids(recipe: str, lambdas: List[float], rate: float, tmp_path: Path) -> None:
    found = systems(read(recipe, tmp_path))
    assert values(found["wait-k"], "wait-k") == K and set(values(found["wait-k"], "emission-rate")) == {rate}
    assert values(found["milk"], "latency-weight") == lambdas and set(values(found["milk"], "noise")) == {4}
    assert values(found["mocha"], "chunk-size") == [2, 4, 8, 16] and len(found["monotonic"]) == 1
    (offline,) = found["offline"]
    assert offline.generate["beam"] == 20 and {p.generate["beam"] for p in found["milk"] + found["wait-k"]} == {1}
    if recipe == "wmt15_de_en":
        assert values(found["noise"], "noise") == [0, 1, 2, 3, 6]  # 4 is `milk` at lambda = 0.2, trained once
        assert values(found["unpreserved"], "latency-weight") == [0, 0.1, 0.2]
        assert {p.model for p in found["preserved"]} >= {f"milk-latency-weight={value}" for value in (0, 0.1, 0.2)}


@pytest.mark.parametrize("recipe", ["wmt15_de_en", "wmt14_en_fr"])
def test_a_sweep_trains_as_the_launcher_does(recipe: str, tmp_path: Path) -> None:
    """On 8 GPUs with lambda = 0.2, fairseq parses the same options from both."""
    (point,) = [point for point in read(recipe, tmp_path).points if point.key == "milk-latency-weight=0.2"]
    command = shlex.split(commands.shell("bash", f"examples/{recipe}/train.sh", "--dry-run", GPUS="8").stdout)
    by_launcher = parse(command[command.index("fairseq-train") + 1 :])
    by_sweep = parse(["data", "--user-dir", commands.PLUGIN, *words(point.train)])
    different = {name for name in by_launcher if by_launcher[name] != by_sweep.get(name)}
    assert different == {"data", "save_dir", "distributed_world_size", "distributed_no_spawn"}


@pytest.mark.parametrize("recipe", ["wmt15_de_en", "wmt14_en_fr"])
def test_a_task_of_the_array_has_the_gpus_that_the_batch_was_made_for(recipe: str, tmp_path: Path) -> None:
    spec = read(recipe, tmp_path)
    asked = parse_slurm((commands.ROOT / "examples" / recipe / "train.slurm").read_text())
    assert {name: str(spec.slurm[name]) for name in ("gpus-per-node", "cpus-per-task")}.items() <= asked.items()
    assert spec.slurm["nodes"] == 1 and str(spec.slurm["time"]).endswith("-00:00:00")
    gpus = int(asked["gpus-per-node"])
    assert {int(p.train["batch-size"]) * int(p.train["update-freq"]) * gpus for p in spec.points} == {4096}


def parse_slurm(script: str) -> Dict[str, str]:
    return dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", script, flags=re.MULTILINE))


def parse(arguments: List[str]) -> Dict[str, Any]:
    return vars(fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), arguments))


def test_multi30k_has_every_system_of_the_paper(tmp_path: Path) -> None:
    found = systems(read("multi30k", tmp_path))
    assert {"offline", "soft", "monotonic", "unpreserved"} <= set(found)
    assert len(found["milk"]) >= 4 and len(found["wait-k"]) >= 4 and len(found["mocha"]) == 2
    assert values(found["noise"], "noise") == [0, 1, 2, 3, 4, 6]
    (preserved,) = [point for point in found["noise"] if point.train["noise"] == 4]
    (unpreserved,) = found["unpreserved"]
    assert unpreserved.train == {**preserved.train, "unpreserved-mass": True}, "they differ in the mass alone"
    assert {point.generate["gen-subset"] for point in [*found["noise"], unpreserved]} == {"valid"}
    for exact, rounded in PAIRS.items():
        ((one,), (other,)) = found.pop(exact), found.pop(rounded)
        assert other.train == {**one.train, "product-precision": "bf16"}, "they differ in the precision alone"
        assert (one.after, other.after) in (("", ""), ("soft-short", "soft-short-bf16"))
    settings = []
    for family, arch in (("lstm", "milk_rnmt_small"), ("transformer", "milk_transformer_small")):
        points = [point for name in list(found) if name.startswith(f"{family}-") for point in found.pop(name)]
        assert {point.train["arch"] for point in points} == {arch}
        assert [point.after for point in points] == ["", *[f"{family}-soft"] * (len(points) - 1)]
        settings.append([point.key[len(family) :] for point in points])
    assert settings[0] == settings[1], "the same systems in both families"
    trained = [point for points in found.values() for point in points if not point.model]
    assert {point.after for point in trained if point.system not in ("offline", "soft")} == {"soft"}
    models = {point.model for point in [*found["wait-k-val"], *found["milk-val"]]}
    assert models == {point.key for point in [*found["wait-k"], *found["milk"]]}, "both curves on val as well"
    for year, subset in (("flickr17", "test1"), ("mscoco17", "test2")):
        for system in ("offline", "soft", "wait-k", "milk"):
            later = found[f"{system}-{year}"]
            assert [point.model for point in later] == [point.key for point in found[system]]
            decoded = [{**point.generate, "gen-subset": subset} for point in found[system]]
            assert [point.generate for point in later] == decoded, "as on test, but for the data set"
    budget = {p.train["max-update"] for p in found["milk"] + found["wait-k"]}
    assert len(budget) == 1, "both curves have as many updates after their warm start"


def test_europarl_has_both_curves_warm_and_a_pair_from_scratch(tmp_path: Path) -> None:
    found = systems(read("europarl_de_en", tmp_path))
    assert {"offline", "soft", "monotonic", "mocha"} <= set(found)
    assert len(found["milk"]) >= 5 and len(found["wait-k"]) >= 5
    curves = found["milk"] + found["wait-k"]
    assert {point.after for point in curves} == {"soft-s1"}
    for option in ("max-update", "lr", "max-tokens"):
        pair = found["milk-scratch"] + found["wait-k-scratch"]
        for points in (curves, pair, pair + found["soft"] if option != "max-update" else pair):
            assert len(set(values(points, option))) == 1, "what is compared has the same training"
    assert {point.after for point in [*found["milk-scratch"], *found["wait-k-scratch"]]} == {""}
    for system in ("soft", "milk", "wait-k"):
        models = {point.model for point in found[f"{system}-dev"]}
        assert models == {point.key for point in found[system]}, "everything is chosen on dev"


@pytest.mark.parametrize("recipe", ["multi30k", "europarl_de_en"])
@pytest.mark.parametrize("option", ["--dry-run", "--slurm=jobs", "--out"])
def test_run_sh_refuses_what_it_would_do_wrong_before_it_begins(recipe: str, option: str) -> None:
    result = commands.shell("bash", f"examples/{recipe}/run.sh", "--jobs", "2", option)
    assert result.returncode == 2 and f"run.sh: {option} is for 'fairseq-milk sweep" in result.stderr
    assert not result.stdout
