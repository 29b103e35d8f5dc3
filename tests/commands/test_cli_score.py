"""`fairseq-milk score` and the command around it: conventions side by side, intervals, comparisons, faults."""

import json
import random
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest
import sacrebleu

from fairseq_milk import cli
from fairseq_milk.scoring.bootstrap import corpus_sample, difference, interval, mean_sample
from fairseq_milk.scoring.latency import CONVENTIONS, PAPER, SIMULEVAL, corpus_latency
from fairseq_milk.scoring.records import Record

WORDS = ["ein", "Ha@@", "us", "steht", "am", "Wa@@", "ld", "und", "fällt"]


def translations(accuracy: float, wait: int, size: int = 60) -> List[Record]:
    """Translations with `accuracy` of the words right, by a system that waits for `wait` subwords."""
    records = []
    for i in range(size):
        rng = random.Random(i)
        source = rng.choices(WORDS, k=rng.randint(4, 12))
        hypothesis = [word if rng.random() < accuracy else rng.choice(WORDS) for word in source]
        delays = [min(j + wait, len(source) + 1) for j in range(len(source) + 1)]
        records.append(Record(i, source, hypothesis, delays, source))
    return records


def write(path: Path, records: List[Record]) -> str:
    path.write_text("\n".join(json.dumps(record.to_dict()) for record in records), encoding="utf-8")
    return str(path)


@pytest.fixture
def better(tmp_path: Path) -> str:
    return write(tmp_path / "better.jsonl", translations(0.95, 6))


@pytest.fixture
def worse(tmp_path: Path) -> str:
    return write(tmp_path / "worse.jsonl", translations(0.7, 2))


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> Dict[str, Any]:
    assert cli.main(["score", *arguments, "--json"]) == 0
    result: Dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_all_conventions_side_by_side(better: str, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = report(capsys, better)["files"]
    rows = {row["signature"]: row for row in file["latency"]}
    assert len(rows) == 8 and file["sentences"] == 60
    for name, convention in CONVENTIONS.items():
        row = rows[convention.signature()]
        assert row["convention"] == name
        expected = corpus_latency(translations(0.95, 6), convention)
        assert {key: row[key] for key in expected.mean._fields} == pytest.approx(expected.mean._asdict())
    assert file["DAL"]["signature"] == PAPER.signature()
    assert file["DAL"]["low"] < file["DAL"]["score"] < file["DAL"]["high"]


def test_text_shows_figures_intervals_and_signatures(better: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["score", better]) == 0
    out = capsys.readouterr().out
    for convention in CONVENTIONS.values():
        assert convention.signature() in out
    mean = corpus_latency(translations(0.95, 6), SIMULEVAL).mean
    (line,) = [line for line in out.split("\n") if line.startswith("simuleval ")]
    figures = line.split()[1:]
    assert figures[:3] == [f"{mean.AP:.3f}", f"{mean.AL:.2f}", f"{mean.DAL:.2f}"]
    (line,) = [line for line in out.split("\n") if line.startswith("BLEU ")]
    assert "[" in line and "tok:13a" in line


def test_bleu_is_that_of_sacrebleu(better: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [" ".join(r.hypothesis).replace("@@ ", "").replace("@@", "") for r in translations(0.95, 6)]
    references = [" ".join(r.source).replace("@@ ", "").replace("@@", "") for r in translations(0.95, 6)]
    bleu = sacrebleu.BLEU()
    expected = bleu.corpus_score(texts, [references])
    (file,) = report(capsys, better)["files"]
    assert file["BLEU"]["score"] == pytest.approx(expected.score, abs=1e-9)
    assert file["BLEU"]["signature"] == str(bleu.get_signature())
    (file,) = report(capsys, better, "--lowercase", "--tokenize", "intl")["files"]
    assert "case:lc|eff:no|tok:intl" in file["BLEU"]["signature"]


def test_a_convention_can_be_chosen_and_changed(better: str, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = report(capsys, better, "--convention", "simuleval")["files"]
    assert [row["signature"] for row in file["latency"]] == [SIMULEVAL.signature()]
    assert file["DAL"]["score"] == pytest.approx(corpus_latency(translations(0.95, 6), SIMULEVAL).mean.DAL)
    (file,) = report(capsys, better, "--convention", "simuleval", "--eos", "yes", "--unit", "subword")["files"]
    assert file["latency"][0]["signature"].startswith("unit:subword|eos:yes|len:ref")
    (file,) = report(capsys, better, "--eos", "no")["files"]
    assert file["latency"][0]["signature"].startswith("unit:subword|eos:no|len:hyp")


def test_comparison_is_paired(worse: str, better: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = report(capsys, worse, better)
    first, second = result["files"]
    for name in ("BLEU", "DAL"):
        value = result["difference"][name]
        assert value["score"] == pytest.approx(second[name]["score"] - first[name]["score"])
        assert 0 < value["low"] < value["score"] < value["high"] and value["p"] < 0.01
    same = report(capsys, better, better)["difference"]
    assert same["BLEU"] == {"score": 0.0, "low": 0.0, "high": 0.0, "p": 1.0}
    assert cli.main(["score", worse, better]) == 0
    assert "p = 0.001" in capsys.readouterr().out


def test_seed_and_number_of_resamples(better: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(capsys, better) == report(capsys, better)
    assert report(capsys, better) != report(capsys, better, "--seed", "1")
    (file,) = report(capsys, better, "--bootstrap", "0")["files"]
    assert "low" not in file["BLEU"]
    assert cli.main(["score", better, better, "--bootstrap", "0"]) == 0
    assert "[" not in capsys.readouterr().out


def test_intervals_agree_with_sacrebleu_and_with_theory() -> None:
    records = translations(0.8, 3, size=400)
    hypotheses, references = [" ".join(r.hypothesis) for r in records], [" ".join(r.source) for r in records]
    ours = interval(corpus_sample(sacrebleu.BLEU(), hypotheses, references), 1000, seed=1)
    theirs = sacrebleu.BLEU(force=True).corpus_score(hypotheses, [references], n_bootstrap=1000)
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=0.15)
    values = np.random.default_rng(0).normal(5, 2, size=400)
    mean = interval(mean_sample([None, *values.tolist()]), 1000, seed=1)
    assert mean.score == pytest.approx(values.mean())
    assert (mean.high - mean.low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.15)


def test_p_value_is_fair_without_a_difference() -> None:
    """Under the null hypothesis p < 0.1 happens in a tenth of the cases (here 200; three standard deviations)."""
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(200, 2, 50)).tolist()
    p = [difference(mean_sample(a), mean_sample(b), 200, seed=i).p for i, (a, b) in enumerate(pairs)]
    assert 0.04 < np.mean(np.array(p) < 0.1) < 0.17


def test_without_references(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.jsonl", [record._replace(reference=None) for record in translations(0.9, 3)])
    assert cli.main(["score", path]) == 0
    out = capsys.readouterr().out
    assert "no BLEU" in out
    (line,) = [line for line in out.split("\n") if line.startswith("simuleval ")]
    assert line.split()[1] == "-"
    assert cli.main(["score", path, "--convention", "simuleval"]) == 2
    assert "without one" in capsys.readouterr().err


def test_log_without_subwords(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_text("S-0\thabe\nT-0\thave\nH-0\t-1\thave\nD-0\t-1\thave\nI-0\t1 2 3\n")
    assert cli.main(["score", str(path)]) == 0
    assert "no latency: the delays of sentence 0" in capsys.readouterr().out
    assert cli.main(["score", str(path), "--unit", "word"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fairseq-milk score: the delays of sentence 0") and error.count("\n") == 1


def test_tokenised_text_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = Record(0, ["ja", "."], ["yes", "."], [1, 2, 3], ["yes", "."])
    assert cli.main(["score", write(tmp_path / "a.jsonl", [record])]) == 0
    assert "warning: BLEU is of tokenised text" in capsys.readouterr().out
    detokenised = record._replace(text="Yes.", reference_text="Yes.")
    assert cli.main(["score", write(tmp_path / "a.jsonl", [detokenised])]) == 0
    assert "warning" not in capsys.readouterr().out


def test_faults_end_with_one_sentence(tmp_path: Path, better: str, capsys: pytest.CaptureFixture[str]) -> None:
    short = write(tmp_path / "short.jsonl", translations(0.9, 3)[:10])
    other = write(tmp_path / "other.jsonl", [r._replace(source=r.source[::-1]) for r in translations(0.9, 3)])
    for arguments, message in (
        (["missing.jsonl"], "missing.jsonl: No such file or directory"),
        ([str(tmp_path)], "Is a directory"),
        ([better, short], "short.jsonl has 10"),
        ([better, other], "translate different sentences"),
        ([better, "--bootstrap", "-1"], "--bootstrap"),
        ([better, "--seed", "-1"], "--seed"),
    ):
        assert cli.main(["score", *arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("fairseq-milk score: ") and message in error and error.count("\n") == 1
    with pytest.raises(SystemExit, match="2"):
        cli.main(["score"])
    with pytest.raises(SystemExit, match="2"):
        cli.main(["nonsense"])


def test_help_imports_no_verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(cli.VERBS, "draw", "draws")
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    out = capsys.readouterr().out
    assert "score" in out and "draws" in out


def test_interrupt_and_the_code_of_a_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("some_verb")
    monkeypatch.setitem(sys.modules, "fairseq_milk.cli.some_verb", module)
    monkeypatch.setitem(cli.VERBS, "some_verb", "")
    module.add_arguments = lambda parser: parser.add_argument("code", type=int)  # type: ignore[attr-defined]
    module.run = lambda args: args.code  # type: ignore[attr-defined]
    assert cli.main(["some_verb", "3"]) == 3

    def interrupted(args: Any) -> int:
        raise KeyboardInterrupt

    module.run = interrupted  # type: ignore[attr-defined]
    assert cli.main(["some_verb", "3"]) == 130


def test_a_closed_pipe_gives_no_error(better: str) -> None:
    code = "import sys; from fairseq_milk.cli import main; sys.exit(main())"
    command = [sys.executable, "-W", "ignore", "-c", code, "score", better]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    error = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == 0
    assert "Traceback" not in error and "Exception ignored" not in error and "fairseq-milk score" not in error
