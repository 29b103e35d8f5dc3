"""Sweep files: their meaning, and one sentence with file and key for every mistake."""

import os
import textwrap
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml
from fairseq.options import get_training_parser
from hypothesis import given
from hypothesis import strategies as st

from fairseq_milk.console.errors import UserError
from fairseq_milk.sweep import spec as spec_file
from fairseq_milk.sweep.options import check_options, problem
from fairseq_milk.sweep.runs import make_runs
from fairseq_milk.sweep.spec import Spec, read_spec, words
from tests.support.fairseq_commands import CRITERION
from tests.support.fake_fairseq import write_data

GOOD = """
data: data-bin
train: {arch: milk_rnmt_tiny, lr: 1e-3, no-epoch-checkpoints: true}
generate: {batch-size: 64, remove-bpe: true}
seeds: [1, 2]
systems:
  start: {train: {attention: milk}}
  milk: {after: start, train: {attention: milk}, grid: {latency-weight: [0.1, 0.2], noise: [2]}}
  offline: {train: {attention: soft}, generate: {beam: 20, remove-bpe: false}}
"""


def write(folder: Path, text: str) -> Path:
    write_data(folder / "data-bin")
    path = folder / "sweep.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str) -> Spec:
    return read_spec(write(folder, text))


def test_what_a_file_means(tmp_path: Path) -> None:
    spec = read(tmp_path, GOOD)
    assert (spec.name, spec.data, spec.seeds) == ("sweep", tmp_path / "data-bin", (1, 2))
    assert spec.checkpoint == "checkpoint_best.pt"
    keys = ["start", "milk-latency-weight=0.1,noise=2", "milk-latency-weight=0.2,noise=2", "offline"]
    assert [point.key for point in spec.points] == keys
    start, milk, _, offline = spec.points
    shared = "--task simultaneous_translation --log-format json --arch milk_rnmt_tiny --lr 0.001 --no-epoch-checkpoints"
    assert words(start.train) == f"{shared} --attention milk".split()
    assert words(milk.train) == f"{shared} --attention milk --latency-weight 0.1 --noise 2".split()
    assert words(start.generate) == "--task simultaneous_translation --batch-size 64 --remove-bpe".split()
    assert words(offline.generate) == "--task simultaneous_translation --batch-size 64 --beam 20".split()
    assert (start.after, milk.after) == ("", "start")


def test_a_start_with_a_seed_is_the_start_of_all_seeds(tmp_path: Path) -> None:
    """Without a seed each run starts from the run of its own seed; a system whose name looks like a run is a system."""
    starts = {"start-s2": ["start-s2"] * 4, "start": ["start-s1", "start-s1", "start-s2", "start-s2"]}
    for after, expected in starts.items():
        spec = read(tmp_path, GOOD.replace("after: start", f"after: {after}"))
        found = [run.before.name for run in make_runs(spec, tmp_path) if run.before]
        assert found == expected
    named = GOOD.replace("after: start", "after: start-s2") + "  start-s2: {train: {attention: soft}}\n"
    found = [run.before.name for run in make_runs(read(tmp_path, named), tmp_path) if run.before]
    assert found == ["start-s2-s1", "start-s2-s1", "start-s2-s2", "start-s2-s2"]


def test_a_system_can_have_seeds_of_its_own(tmp_path: Path) -> None:
    """Systems that decode its models have the same seeds."""
    more = "  more: {after: start-s1, seeds: [3, 1]}\n  on-val: {model: more, generate: {gen-subset: valid}}\n"
    names = [run.name for run in make_runs(read(tmp_path, GOOD.replace("offline:", "last:") + more), tmp_path)]
    assert [name for name in names if not name.startswith("milk")] == (
        "start-s1 last-s1 more-s1 on-val-s1 start-s2 last-s2 more-s3 on-val-s3".split()
    )


def test_the_example_in_the_documentation_is_one(tmp_path: Path) -> None:
    text = textwrap.dedent((spec_file.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0])
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "test.en").touch()
    spec = read(tmp_path, text)
    assert len(spec.points) == 15 and spec.name == "multi30k-de-en"
    check_options(spec)


def test_a_system_that_decodes_the_models_of_another(tmp_path: Path) -> None:
    """All points of its grid or one; in the order of the file, also before the system itself."""
    text = GOOD.replace("systems:\n", "systems:\n  first: {model: offline, grid: {beam: [1, 5]}}\n")
    spec = read(tmp_path, text + "  on-val: {model: milk, generate: {gen-subset: valid}}\n")
    points = {point.key: point for point in spec.points}
    assert [point.system for point in spec.points] == ["first", "first", "start", "milk", "milk", "offline"] + [
        "on-val"
    ] * 2
    on_val, source = points["on-val-latency-weight=0.2,noise=2"], points["milk-latency-weight=0.2,noise=2"]
    assert (on_val.model, on_val.after, on_val.train) == (source.key, "", source.train)
    assert on_val.generate == {**source.generate, "gen-subset": "valid"}
    five = points["first-beam=5"]
    assert (five.model, five.generate["beam"], five.generate["remove-bpe"]) == ("offline", 5, True)


def test_words_that_yaml_1_1_would_convert_stay_words(tmp_path: Path) -> None:
    text = GOOD + "  x: {train: {target-lang: no, arch: on, source-lang: 010, lr: 1e-5, dropout: .5, noise: -2}}"
    train = read(tmp_path, text).points[-1].train
    assert [train[key] for key in ("target-lang", "arch", "source-lang")] == ["no", "on", "010"]
    assert [train[key] for key in ("lr", "dropout", "noise")] == [1e-5, 0.5, -2]


def test_what_several_systems_share(tmp_path: Path) -> None:
    """YAML anchors and merges, also nested ones."""
    text = """
data: data-bin
systems:
  a: {train: &base {lr: 1, noise: 2}}
  b: {train: &more {<<: *base, lr: 3}}
  c: {train: {<<: *more, noise: 4}}
  d: {<<: {train: *more}, generate: {beam: 1}}
"""
    spec = read(tmp_path, text)
    assert [(point.train["lr"], point.train["noise"]) for point in spec.points] == [(1, 2), (3, 2), (3, 4), (3, 2)]


def test_a_name_and_absolute_paths(tmp_path: Path) -> None:
    data = write_data(tmp_path / "elsewhere")
    spec = read(tmp_path, GOOD.replace("data-bin", str(data)) + "name: mine\ncheckpoint: checkpoint_last.pt\n")
    assert (spec.name, spec.data, spec.checkpoint) == ("mine", data, "checkpoint_last.pt")


def test_what_a_run_asks_of_slurm(tmp_path: Path) -> None:
    spec = read(tmp_path, GOOD + "slurm: {gres: gpu:1, time: 24:00:00, mem: 8G, exclusive: true}\n")
    assert spec.slurm == {"gres": "gpu:1", "time": "24:00:00", "mem": "8G", "exclusive": True}
    assert read(tmp_path, GOOD).slurm == {}


MISTAKES = [
    # unknown keys
    ("sytems: {}", "unknown key 'sytems', did you mean 'systems'?"),
    ("42: 1", "the key 42 should be text"),
    ("systems: {a: {trian: {}}}", "systems.a: unknown key 'trian', did you mean 'train'?"),
    ("systems: {a: {seed: [1]}}", "systems.a: unknown key 'seed', did you mean 'seeds'?"),
    ("systems: {a: {x: 1}}", "systems.a: unknown key 'x' (there are after, train, generate, grid, seeds)"),
    ("systems: {a: {seeds: [1, 1]}}", "systems.a.seeds: "),
    # wrong types
    ("data: 3", "data: text is expected here, got 3"),
    ("data:", "data: text is expected here, got nothing"),
    ("data: [a]", "data: text is expected here, got a list"),
    ("data: nowhere", "data: there is no folder"),
    ("train: [lr]", "train: 'key: value' lines are expected here, got a list"),
    ("train: {lr: [1, 2]}", "train.lr: a list of values belongs under 'grid'"),
    ("train: {lr: {a: 1}}", "train.lr: a number, a text, true or false is expected here, got 'key: value' lines"),
    ("train: {lr: }", "train.lr: a number, a text, true or false is expected here, got nothing"),
    ("train: {lr: ''}", "train.lr: a text that is not empty is expected here, got ''"),
    ("train: {lr: 1e999}", "train.lr: a finite number is expected here, got inf"),
    ("seeds: 1", "seeds: a list of whole numbers is expected here, got 1"),
    ("seeds: []", "seeds: a list of whole numbers is expected here, got a list"),
    ("seeds: [1, true]", "seeds: a seed is a whole number from 0 to 2147483647, got True"),
    ("seeds: [-1]", "seeds: a seed is a whole number"),
    ("seeds: [1.5]", "seeds: a seed is a whole number"),
    ("systems: [a]", "systems: 'key: value' lines are expected here, got a list"),
    ("systems: {}", "systems: there is no system"),
    ("systems: {a: 3}", "systems.a: 'key: value' lines are expected here, got 3"),
    ("systems: {a: {grid: {wait-k: 3}}}", "systems.a.grid.wait-k: a list of values is expected here, got 3"),
    ("systems: {a: {grid: {wait-k: []}}}", "systems.a.grid.wait-k: a list of values is expected here"),
    ("systems: {a: {grid: {wait-k: [[1]]}}}", "systems.a.grid.wait-k: a list of values belongs under"),
    # options that are not for the file
    ("train: {save-dir: x}", "train: 'save-dir' cannot be given: the sweep chooses it"),
    ("train: {seed: 3}", "train: 'seed' cannot be given: list the seeds under 'seeds'"),
    ("systems: {a: {grid: {seed: [1, 2]}}}", "systems.a.grid: 'seed' cannot be given"),
    ("generate: {results-path: x}", "generate: 'results-path' cannot be given"),
    ("train: {--lr: 3}", "train: write 'lr' for the option --lr"),
    ("train: {l r: 3}", "train: 'l r' is not an option"),
    ("systems: {a: {train: {wait-k: 1}, grid: {wait-k: [1]}}}", "a.grid.wait-k: the system gives the option at every"),
    ("slurm: [gpus]", "slurm: 'key: value' lines are expected here, got a list"),
    ("slurm: {gres: [gpu]}", "slurm.gres: one line is expected here, got a list"),
    ("slurm: {gres: {gpu: 1}}", "slurm.gres: a number, a text, true or false is expected here"),
    ("slurm: {--gres: gpu:1}", "slurm: write 'gres' for the option --gres"),
    ("slurm: {array: 0-3}", "slurm: 'array' cannot be given: the sweep numbers its runs"),
    ("slurm: {ntasks: 8}", "slurm: 'ntasks' cannot be given: a run is one task"),
    ('slurm: {comment: "a\\nrm -r x"}', "slurm.comment: one line is expected here, got 'a\\nrm -r x'"),
    # duplicates
    ("seeds: [1, 1]", "seeds: a seed appears twice"),
    ("train: {lr: 1, lr: 2}", "the key 'lr' appears twice"),
    ("train: &a {lr: 1}\ngenerate: {<<: *a, lr: 3, lr: 4}", "the key 'lr' appears twice"),
    ("systems: {a: {}, a: {}}", "the key 'a' appears twice"),
    ("systems: {a: {grid: {lr: [0.1, 0.10]}}}", "systems.a: the run a-lr=0.1-s1 appears twice"),
    ("systems: {a: {}, A: {}}", "systems.A: the run A-s1 appears twice (the other is systems.a)"),
    ("systems: {a-lr=1: {}, a: {grid: {lr: [1]}}}", "systems.a: the run a-lr=1-s1 appears twice"),
    # paths outside
    ("name: ../x", "name: '../x' cannot be a name"),
    ("name: /tmp/x", "name: '/tmp/x' cannot be a name"),
    ("checkpoint: ../../x.pt", "checkpoint: '../../x.pt' cannot be a name"),
    ("systems: {..: {}}", "systems...: '..' cannot be a name"),
    ("systems: {a/b: {}}", "systems.a/b: 'a/b' cannot be a name"),
    ("systems: {a..b: {}}", "'a..b' cannot be a name"),
    ("systems: {.hidden: {}}", "'.hidden' cannot be a name"),
    ("systems: {-rf: {}}", "'-rf' cannot be a name"),
    ("systems: {'a*': {}}", "'a*' cannot be a name"),
    ("systems: {a: {grid: {lr: ['../..']}}}", "systems.a.grid.lr: 'lr=../..' cannot be a name"),
    (f"systems: {{{'a' * 300}: {{}}}}", "cannot be a name"),
    (f"systems: {{{'a' * 150}: {{grid: {{lr: [{'b' * 90}]}}}}}}", "is too long for the name of a folder"),
    # the models of other systems
    ("systems: {a: {}, b: {model: c}}", "systems.b.model: there is no trained system 'c' (there are a)"),
    ("systems: {a: {model: b}, b: {model: a}}", "systems.a.model: there is no trained system 'b'"),
    ("systems: {a: {}, b: {model: [a]}}", "systems.b.model: text is expected here, got a list"),
    ("systems: {a: {}, b: {model: a, train: {lr: 1}}}", "b: unknown key 'train' (there are model, generate, grid)"),
    (
        "systems: {a: {}, b: {model: a, generate: {beam: 2}, grid: {beam: [1]}}}",
        "b.grid.beam: the system gives the opt",
    ),
    ("systems: {a: {}, b: {model: a, grid: {path: [x]}}}", "systems.b.grid: 'path' cannot be given"),
    ("references: {test: nowhere.en}", "references.test: there is no file"),
    ("references: [test.en]", "references: 'key: value' lines are expected here, got a list"),
    ("references: {test: 3}", "references.test: text is expected here, got 3"),
    # warm starts
    ("systems: {a: {after: b}, b1: {}}", "systems.a.after: there is no run 'b', did you mean 'b1'?"),
    ("systems: {a: {after: b-s3}, b: {}}", "systems.a.after: there is no run 'b-s3'"),  # there is no such seed
    ("systems: {a: {after: b, seeds: [3]}, b: {}}", "systems.a.after: there is no run 'b-s3': name one with its seed"),
    ("systems: {a: {after: a-s1}}", "systems.a.after: the systems start from one another: a after a"),
    ("systems: {a: {after: a}}", "systems.a.after: the systems start from one another: a after a"),
    ("systems: {a: {after: b}, b: {after: c}, c: {after: b}}", "start from one another"),
    ("systems: {a: {after: b}, b: {grid: {lr: [1, 2]}}}", "no run 'b': it has a grid: name one of b-lr=1, b-lr=2"),
    ("systems: {a: {after: [b]}}", "systems.a.after: text is expected here, got a list"),
]


@pytest.mark.parametrize("change, problem", MISTAKES)
def test_mistakes(tmp_path: Path, change: str, problem: str) -> None:
    """The change replaces what the good file has under its key."""
    key = change.partition(":")[0]
    kept = GOOD if key not in yaml.safe_load(GOOD) else without(GOOD, key)
    path = write(tmp_path, kept + change + "\n")
    with pytest.raises(UserError) as error:
        read_spec(path)
    said = str(error.value)
    assert problem in said and said.startswith(str(path)) and "\n" not in said


def without(text: str, key: str) -> str:
    document = yaml.safe_load(text)
    del document[key]
    return str(yaml.safe_dump(document, sort_keys=False))


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"", "'key: value' lines are expected here, got nothing"),
        (b"- a\n", "'key: value' lines are expected here, got a list"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"data: a\x00b", "special characters are not allowed"),
        (b"data: [", "line 1"),
        (b"a: 1\n---\nb: 2\n", "single document"),
        (b"data: !!python/object/apply:os.system ['touch mark']", "could not determine a constructor"),
        (b"{a: b}: c", "unhashable"),
        (b"[" * 600, "nested too deeply"),
        (b"seeds: [" + b"9" * 5000 + b"]", ""),
        (b"train: &a {x: *a}\n", "it contains itself"),
    ],
)
def test_files_that_are_not_sweeps(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_spec(path)
    assert problem in str(error.value) and str(error.value).startswith(str(path)) and len(str(error.value)) < 500


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_spec(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        read_spec(tmp_path)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = ["a", "b", "lr", "wait-k", "after", "train", "generate", "grid", "..", "a/b"]
names = st.sampled_from(keys) | st.text(max_size=4)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(names, v, max_size=3), max_leaves=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


@given(key=st.sampled_from(spec_file.KEYS), value=values)
def test_anything_is_a_sweep_or_a_sentence(folder: Path, key: str, value: Any) -> None:
    document = {**yaml.safe_load(GOOD), key: value}
    try:
        spec = read(folder, yaml.safe_dump(document, allow_unicode=True))
    except UserError as error:
        assert str(error).startswith(str(folder / "sweep.yaml"))
        return
    for point in spec.points:
        assert (folder / f"{point.key}-s1").parent == folder
        assert all(isinstance(word, str) for word in words(point.train))


@pytest.mark.parametrize(
    "words_, problem_",
    [
        ("--latncy-weight 1", "there is no option --latncy-weight, did you mean --latency-weight?"),
        ("--optimizer sdg", "argument --optimizer: invalid choice: 'sdg'"),
        ("--arch milk_rnnt", "argument --arch/-a: invalid choice: 'milk_rnnt'"),
        ("--max-update many", "argument --max-update: invalid int value: 'many'"),
        ("--attention", "argument --attention: expected one argument"),
        ("--chunk-size 3", None),
    ],
)
def test_options_that_fairseq_does_not_know(words_: str, problem_: Optional[str]) -> None:
    known = f"data-bin --task simultaneous_translation --arch milk_rnmt_tiny --criterion {CRITERION} {words_}"
    assert problem(get_training_parser, known.split()) == problem_
    assert problem(get_training_parser, ["data-bin"]) == "there is no --arch"


def test_the_system_with_an_unknown_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        check_options(read(tmp_path, "data: data-bin\ntrain: {arch: lstm}\nsystems: {a: {generate: {bean: 3}}}"))
    said = "fairseq-generate: there is no option --bean, did you mean --beam?"
    assert str(error.value) == f"{tmp_path / 'sweep.yaml'}: systems.a: {said}"


# ---- hostile files --------------------------------------------------------------------------------------------------

HOSTILE_OPTIONS = [
    ('{source-lang: "--user-dir=/evil"}', "train.source-lang: '--user-dir=/evil' cannot be a value"),
    ('{source-lang: "--user-dir"}', "cannot be a value: fairseq would take it for an option"),
    ('{lr: "-x"}', "cannot be a value"),
    ("{user-dir=evil: true}", "'user-dir=evil' is not an option"),
    ("{user-dir=evil: 1}", "'user-dir=evil' is not an option"),
    ('{"a,b": 1}', "'a,b' is not an option"),
]


@pytest.mark.parametrize("options, problem", HOSTILE_OPTIONS)
@pytest.mark.parametrize("kind", ["train", "generate"])
def test_a_value_gives_no_other_option(tmp_path: Path, kind: str, options: str, problem: str) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "sweep.yaml"
    path.write_text(f"data: data\n{kind}: {options}\nsystems: {{a: {{}}}}\n")
    with pytest.raises(UserError) as raised:
        read_spec(path)
    assert problem.replace("train.", f"{kind}.") in str(raised.value) and str(path) in str(raised.value)


@pytest.mark.parametrize("value", ["-8", "-0.5", "-.5"])
def test_negative_numbers_are_values(tmp_path: Path, value: str) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "sweep.yaml"
    path.write_text(f"data: data\nsystems: {{a: {{train: {{energy-bias: {value}}}}}}}\n")
    assert float(read_spec(path).points[0].train["energy-bias"]) == float(value)


def laughs(depth: int) -> str:
    """Each line stands for ten of the one before."""
    lines = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, depth)]
    return "\n".join(lines) + "\n"


def merges(depth: int) -> str:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, depth)]
    return "\n".join(lines) + "\n"


HOSTILE_FILES = [
    (laughs(30), "line 1: it stands for more than 100000 values"),
    (merges(30), "line 1: it stands for more than 100000 values"),
    ("seeds: &a [*a]\n", "it contains itself"),
    ("a: &a {b: *a}\n", "it contains itself"),
    ("[" * 20_000, "nested too deeply"),
    ("# " + "x" * (1 << 20), "has more than 1048576 bytes"),
    (
        "data: data\nsystems: {a: {grid: {" + "".join(f"o{n}: [1, 2], " for n in range(200)) + "}}}\n",
        "1606938044258990",
    ),
    (f"data: data\nseeds: {list(range(10_001))}\nsystems: {{a: {{}}}}\n", "there are 10001 seeds"),
    ("data: data\nseeds: [[[1]]]\nsystems: {a: {}}\n", "a seed is a whole number from 0 to 2147483647, got a list"),
]


@pytest.mark.parametrize("text, problem", HOSTILE_FILES)
@pytest.mark.timeout(60)
def test_the_size_of_a_sweep_is_bounded(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as raised:
        read_spec(path)
    assert problem in str(raised.value) and str(path) in str(raised.value) and len(str(raised.value)) < 1000


def test_a_path_that_is_not_a_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UserError, match="is not a regular file"):
            read_spec(path)
