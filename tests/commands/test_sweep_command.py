"""`fairseq-milk sweep` with fake fairseq commands: what is run again, what is refused, what is printed and written."""

import json
import os
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any, Dict, List

import pytest
import sacrebleu

from fairseq_milk import cli
from fairseq_milk.scoring.bootstrap import corpus_sample, interval
from fairseq_milk.scoring.table import Result, read_results
from tests.support.fairseq_commands import CRITERION
from tests.support.fake_fairseq import install, write_data

FILE = f"""
name: mine
data: data-bin
train: {{arch: milk_rnmt_tiny, criterion: {CRITERION}, max-update: 2, optimizer: adam, adam-betas: "(0.9, 0.98)"}}
generate: {{beam: 1}}
systems:
  start: {{train: {{attention: milk}}}}
  milk: {{after: start, train: {{attention: milk}}, grid: {{latency-weight: [0.1, 0.2]}}}}
"""
NAMES = ["start-s1", "milk-latency-weight=0.1-s1", "milk-latency-weight=0.2-s1"]


class Sweep:
    """A file and its output folder; each call of the command replaces words in the file first."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.file, self.out = folder / "my sweep.yaml", folder / "out"
        write_data(folder / "data-bin")

    def __call__(self, *arguments: Any, code: int = 0, **words: str) -> str:
        """Run the sweep; return standard output and error."""
        text = FILE
        for old, new in words.items():
            assert old in text
            text = text.replace(old, new)
        self.file.write_text(text)
        assert cli.main(["sweep", str(self.file), "--out", str(self.out), *map(str, arguments)]) == code
        return "".join(self.capsys.readouterr())

    def rows(self) -> List[Result]:
        """The table without the times."""
        results = read_results(self.out / "results.csv")
        assert results == read_results(self.out / "results.json")
        return [result._replace(train_seconds=0.0, generate_seconds=0.0) for result in results]

    def logs(self, name: str) -> Dict[str, int]:
        """The modification time of the log of each run."""
        return {run: (self.out / run / name).stat().st_mtime_ns for run in NAMES}


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sweep:
    install(tmp_path / "bin", monkeypatch)
    return Sweep(tmp_path, capsys)


def test_the_table_of_a_sweep(sweep: Sweep) -> None:
    said = sweep("--jobs", 2)
    start, first, second = sweep.rows()
    assert [start.system, first.system, second.setting] == ["start", "milk", "latency-weight=0.2"]
    assert (start.warm_start, first.warm_start) == ("", "start-s1")
    assert first.checkpoint == str(sweep.out / NAMES[1] / "checkpoints" / "checkpoint_best.pt")
    assert Path(first.log).is_file() and first.n_sentences == 6
    assert first.bleu != second.bleu and first.dal_low <= first.dal <= first.dal_high
    assert f"{first.bleu:.1f}" in said and first.latency_signature in said and "results.csv" in said
    assert "3 of 3 runs were trained and decoded before" in sweep()
    assert sweep.rows() == [start, first, second]


def test_intervals_are_those_of_the_score(sweep: Sweep) -> None:
    sweep("--only", "start")
    (row,) = sweep.rows()
    lines = [json.loads(line) for line in Path(row.log).read_text().splitlines()]
    texts, references = [line["text"] for line in lines], [line["reference_text"] for line in lines]
    expected = interval(corpus_sample(sacrebleu.BLEU(), texts, references), 1000, 12345)
    assert (row.bleu_low, row.bleu_high) == (expected.low, expected.high)


def test_bleu_against_the_published_text(sweep: Sweep) -> None:
    """References are found by sentence id, not by line of the log; other references need no decoding."""
    sweep("--only", "start")
    (before,), decoded = sweep.rows(), (sweep.out / "start-s1" / "generate.log").stat().st_mtime_ns
    written = map(json.loads, Path(before.log).read_text().splitlines())
    lines = sorted(written, key=lambda line: line["id"])  # as they are scored
    published = [f"a b c d e {number}" * (number + 1) for number in range(6)]
    file = sweep.folder / "test.en"
    words: Any = {"name: mine": "name: mine\nreferences: {test: test.en}"}
    for count in (1, 2):
        file.write_text("".join(f"{line * count}\n" for line in published), encoding="utf-8")
        sweep("--only", "start", **words)
        (row,) = sweep.rows()
        references = [published[line["id"]] * count for line in lines]
        expected = interval(corpus_sample(sacrebleu.BLEU(), [line["text"] for line in lines], references))
        assert (row.bleu, row.bleu_low, row.bleu_high) == expected != (before.bleu, before.bleu_low, before.bleu_high)
        assert row.dal == before.dal
    assert (sweep.out / "start-s1" / "generate.log").stat().st_mtime_ns == decoded
    for text, missing in (("a\nb", 3), ("a\nb\nc\nd\ne\n", 6)):  # the end of the last line is not another one
        file.write_text(text)
        said = sweep(code=2, **words)
        assert f"start-s1: {file} has no line {missing}: it is not the text of what was decoded" in said


def test_the_models_of_a_system_are_decoded_in_another_way(sweep: Sweep) -> None:
    """They are decoded once they exist, without a training; also by hand."""
    words: Any = {"systems:": "systems:\n  on-val: {model: milk, generate: {gen-subset: valid}}"}
    assert by_hand(sweep("--dry-run", "--only", "on-val-latency-weight=0.1", **words)) == 0
    assert "3 of 3 runs were trained and decoded before" in sweep("--only", "on-val-latency-weight=0.1", **words)
    trained = (sweep.out / NAMES[1] / "train.log").exists()
    sweep("--jobs", 2, **words)
    rows = {(row.system, row.setting): row for row in sweep.rows()}
    assert len(rows) == 5 and not trained
    for setting in ("latency-weight=0.1", "latency-weight=0.2"):
        row, source = rows["on-val", setting], rows["milk", setting]
        assert (row.checkpoint, row.warm_start) == (source.checkpoint, "start-s1")
        assert (row.subset, source.subset) == ("valid", "test") and row.bleu != source.bleu
    folder = sweep.out / "on-val-latency-weight=0.2-s1"
    assert not (folder / "checkpoints").exists() and not (folder / "train.log").exists()
    assert "on-val" not in sweep("--dry-run", **words)


@pytest.mark.parametrize("change", ["generate", "test set"])
def test_other_decoding_decodes_again_and_trains_nothing(sweep: Sweep, change: str) -> None:
    sweep()
    before, trained, decoded = sweep.rows(), sweep.logs("train.log"), sweep.logs("generate.log")
    if change == "test set":
        write_data(sweep.folder / "data-bin", test="other")
    words: Any = {"beam: 1": "beam: 1, lenpen: 2"} if change == "generate" else {}
    sweep(**words)
    assert sweep.logs("train.log") == trained
    assert all(sweep.logs("generate.log")[name] != decoded[name] for name in NAMES)
    assert ([row.bleu for row in sweep.rows()] != [row.bleu for row in before]) == (change == "generate")


@pytest.mark.parametrize("change", ["train", "data", "after"])
def test_other_training_is_refused_until_it_is_asked_for(sweep: Sweep, change: str) -> None:
    sweep()
    before, trained = sweep.rows(), sweep.logs("train.log")
    words: Any = {}
    if change == "train":
        words = {"max-update: 2": "max-update: 3"}
    elif change == "data":
        write_data(sweep.folder / "data-bin", train="other")
    else:
        words = {"start: {train: {attention: milk}}": "start: {train: {attention: milk, noise: 2}}"}
    said = sweep(code=2, **words)
    assert "trained with other settings" in said and "--retrain" in said
    changed = "after" if change == "after" else f"after, {change}"
    assert f"{NAMES[1]} ({changed} changed)" in said and said.count("\n") == 1
    assert sweep.logs("train.log") == trained
    sweep("--retrain", **words)
    assert all(sweep.logs("train.log")[name] != trained[name] for name in NAMES)
    assert all(new.bleu != old.bleu for new, old in zip(sweep.rows(), before)) == (change != "data")


def test_a_model_that_the_sweep_did_not_make_is_not_thrown_away(sweep: Sweep) -> None:
    model = sweep.out / NAMES[0] / "checkpoints" / "checkpoint_last.pt"
    model.parent.mkdir(parents=True)
    model.touch()
    assert "trained with other settings" in sweep(code=2)
    assert f"{NAMES[0]} (its settings are not recorded)" in sweep(code=2)
    assert model.exists()


def by_hand(script: str) -> int:
    return subprocess.run(["sh", "-uc", script], cwd="/").returncode


def test_what_the_dry_run_prints_is_taken_over_when_it_is_run_by_hand(sweep: Sweep) -> None:
    script = sweep("--dry-run")
    assert not sweep.out.exists()
    lines = script.splitlines()
    assert lines[0] == f"cd {shlex.quote(str(sweep.folder))}"
    assert [line for line in lines if line.startswith("#")] == [f"# {name}" for name in NAMES]
    assert by_hand(script) == 0
    assert "3 of 3 runs were trained and decoded before" in sweep()
    assert sweep("--dry-run").strip() == "# nothing is missing"
    rows, changed = sweep.rows(), {"max-update: 2": "max-update: 3"}
    assert f"{NAMES[0]} (train changed)" in sweep(code=2, **changed)
    os.rename(sweep.out, sweep.folder / "by hand")
    sweep()
    assert [row._replace(commit="") for row in sweep.rows()] == rows


def test_the_dry_run_of_what_has_changed(sweep: Sweep) -> None:
    sweep()
    changed: Any = {"beam: 1": "beam: 2"}
    decode_only = sweep("--dry-run", **changed)
    assert "fairseq-generate" in decode_only and "fairseq-train" not in decode_only
    assert by_hand(decode_only) == 0
    assert "3 of 3 runs were trained and decoded before" in sweep(**changed)
    changed = {"max-update: 2": "max-update: 3"}
    assert "--retrain" in sweep("--dry-run", code=2, **changed)
    anew = sweep("--dry-run", "--retrain", **changed)
    removed = anew.splitlines()[2]
    assert removed.startswith("rm -rf ") and str(sweep.out / NAMES[0] / "checkpoints") in removed
    assert by_hand(anew) == 0
    assert "3 of 3 runs were trained and decoded before" in sweep(**changed)


def test_what_fails_by_hand_is_not_taken_for_complete(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    script, folder = sweep("--dry-run", "--only", "start"), sweep.out / NAMES[0]
    with monkeypatch.context() as patch:
        patch.setenv("FAKE", "fail")
        assert by_hand(script) != 0
    assert not list(folder.glob("*.json"))
    generate, hidden = sweep.folder / "bin" / "fairseq-generate", sweep.folder / "hidden"
    os.rename(generate, hidden)
    assert by_hand(script) != 0
    os.rename(hidden, generate)
    assert (folder / "trained.json").exists() and not (folder / "done.json").exists()
    sweep("--only", "start")
    assert not (folder / "train.log").exists(), "it was trained again"


def test_what_is_run_again_by_hand_is_not_complete_before_its_end(sweep: Sweep, monkeypatch: Any) -> None:
    """The records of a removed model are still there."""
    sweep("--only", "start")
    (sweep.out / NAMES[0] / "checkpoints" / "checkpoint_best.pt").unlink()
    changed: Any = {"beam: 1": "beam: 2"}
    script = sweep("--dry-run", "--only", "start", **changed)
    monkeypatch.setenv("FAKE", "fail")
    assert by_hand(script) != 0
    assert not (sweep.out / NAMES[0] / "trained.json").exists()


def directives(script: str) -> List[str]:
    """The words of the directives that sbatch reads: those before the first line that is not a comment."""
    head = script.partition("\nset ")[0]
    return [word for line in head.splitlines() if line.startswith("#SBATCH ") for word in shlex.split(line)[1:]]


def test_a_slurm_array(sweep: Sweep) -> None:
    milk = sweep.folder / "bin" / "fairseq-milk"
    milk.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    milk.chmod(milk.stat().st_mode | stat.S_IXUSR)
    script = sweep.folder / "array.slurm"
    assert sweep("--slurm", script) == f"sbatch {script}\n"
    text = script.read_text()
    own = ["--job-name=mine", "--array=0-2", "--ntasks=1", "--requeue"]
    assert directives(text) == own
    assert f"job0=$(sbatch --parsable --array=0-0 {script})" in text
    assert f"job1=$(sbatch --parsable --dependency=afterok:$job0 --array=1-2 {script})" in text
    for task, name in enumerate(NAMES):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task)}
        done = subprocess.run(["bash", str(script)], check=True, capture_output=True, text=True, env=environment)
        assert done.stdout.splitlines() == ["sweep", str(sweep.file), "--out", str(sweep.out), "--only", name]
    asked: Any = {"systems:": "slurm: {gres: gpu:1, comment: it's mine, exclusive: true, requeue: false}\nsystems:"}
    sweep("--slurm", script, **asked)
    assert directives(script.read_text()) == [*own[:3], "--gres=gpu:1", "--comment=it's mine", "--exclusive"]
    sweep()
    assert sweep("--slurm", script) == "nothing is missing\n"
    assert sweep("--slurm", script, **asked) == "nothing is missing\n", "what is asked for changes no result"


def test_only_some_runs_and_what_they_start_from(sweep: Sweep) -> None:
    sweep("--only", "milk-*=0.2")
    assert [row.setting for row in sweep.rows()] == ["", "latency-weight=0.2"]
    assert "no run is called nothing; there are start-s1, " in sweep("--only", "nothing", code=2)


def test_a_failure_is_the_exit_code(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE", "fail")
    said = sweep(code=1)
    assert "    there is no such thing\nstart-s1: fairseq-train failed with exit code 1" in said
    assert f"failed: {', '.join(NAMES)}" in said and sweep.rows() == []


def test_bad_arguments_are_one_sentence(sweep: Sweep) -> None:
    assert sweep("--jobs", 0, code=2) == "fairseq-milk sweep: --jobs must be at least 1, got 0\n"
    said = sweep(code=2, **{"systems:": "sistems:"})
    assert said.startswith(f"fairseq-milk sweep: {sweep.file}: unknown key 'sistems'") and said.count("\n") == 1
