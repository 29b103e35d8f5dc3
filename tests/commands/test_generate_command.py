"""`fairseq-generate` and `fairseq-interactive`: what they print and which files they write."""

import json
import re
from pathlib import Path
from typing import Any, List
from unittest import mock

import pytest

from fairseq_milk.console.errors import UserError
from fairseq_milk.generation import DecodingOptions, StreamingSession, load_model
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.latency import SIMULEVAL, corpus_latency, sentence_latency
from tests.support.fairseq_commands import Finished, run
from tests.support.generate_output import hypotheses, lines_of
from tests.support.tiny_models import FIVE
from tests.support.tiny_translators import SENTENCES, Translators


def generate(translators: Translators, attention: str, *more: Any) -> Finished:
    return run("fairseq-generate", *translators.decoding(attention, *more))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_json_lines(path: Path) -> List[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# ---- sentences ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", ["milk", "soft"])
def test_every_sentence_comes_out_whatever_the_batch(translators: Translators, attention: str) -> None:
    beam = ["--beam", 1] if attention == "soft" else []
    runs = [generate(translators, attention, *beam, *size) for size in (["--batch-size", 64], ["--max-tokens", 40])]
    for done in runs:
        written, delays = hypotheses(done.stdout), lines_of("I", done.stdout)
        assert sorted(written) == sorted(delays) == list(range(SENTENCES))
        assert all(len(delays[i].split()) == len(written[i].split()) + 1 for i in written)
        assert "Generate test with beam=1: BLEU = " in done.stdout
        assert (written, delays) == (hypotheses(runs[0].stdout), lines_of("I", runs[0].stdout))


@pytest.mark.parametrize("attention", FIVE)
def test_the_command_and_the_session_agree(translators: Translators, attention: str) -> None:
    done = generate(translators, attention, "--batch-size", 16, "--min-wait", 2, "--beam", 1)
    written, delays = hypotheses(done.stdout), lines_of("I", done.stdout)
    model, task = load_model(str(translators.checkpoint(attention)), str(translators.corpus.bin))
    options = DecodingOptions(min_wait=2, max_len_b=10)
    for i, line in enumerate(translators.corpus.lines("test", "de")):
        session = StreamingSession(model, options)
        tokens = task.source_dictionary.encode_line(line, add_if_not_exist=False).tolist()
        output = [w for token in tokens for w in session.push(token)]
        assert " ".join(task.target_dictionary[w.token] for w in output[:-1]) == written[i]
        assert " ".join(str(w.delay) for w in output) == delays[i]


@pytest.mark.parametrize("attention", ["milk", "soft"])
@pytest.mark.parametrize(
    "option, value", [("max-len-a", "nan"), ("max-len-a", "inf"), ("max-len-b", -1), ("min-len", 9999), ("beam", -3)]
)
def test_meaningless_limits_are_refused(
    translators: Translators,
    attention: str,
    option: str,
    value: Any,
) -> None:
    with pytest.raises(UserError, match=f"--{option} must"):
        generate(translators, attention, f"--{option}", value)


def test_interactive_accepts_any_lines(translators: Translators, tmp_path: Path) -> None:
    """Empty lines, single words, unknown words and lines of a thousand tokens in the same batches."""
    thousand = " ".join(translators.corpus.lines("test", "de") * 20).split()[:1000]
    lines = ["", "der", "xyzzy plugh", " ".join(thousand), "die hund", ""]
    source = tmp_path / "source"
    source.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    options = ["--input", source, "--max-len-a", 0.01]
    done = run("fairseq-interactive", *translators.decoding("milk", *options, "--buffer-size", 6, "--batch-size", 6))
    alone = run("fairseq-interactive", *translators.decoding("milk", *options))
    assert sorted(hypotheses(done.stdout)) == list(range(6))
    assert hypotheses(done.stdout) == hypotheses(alone.stdout)
    hard = run("fairseq-interactive", *translators.decoding("milk", *options, "--print-alignment"))
    assert sorted(lines_of("A", hard.stdout)) == list(range(6))


# ---- what it leaves behind ---------------------------------------------------------------------------------------


def test_results_as_json(translators: Translators, tmp_path: Path) -> None:
    options = ["--results-path", tmp_path, "--remove-bpe", "--tokenizer", "moses", "-s", "de", "-t", "en"]
    done = generate(translators, "milk", *options, "--write-attention", "--max-consecutive-writes", 2)
    text = (tmp_path / "generate-test.txt").read_text(encoding="utf-8")
    summary, lines = read_json(tmp_path / "generate-test.json"), read_json_lines(tmp_path / "generate-test.jsonl")
    assert [line["id"] for line in lines] == list(range(SENTENCES))
    detokenised, delays = lines_of("D", text), lines_of("I", text)
    for line in lines:
        assert line["text"] == detokenised[line["id"]].split("\t", 1)[1]
        assert " ".join(map(str, line["delays"])) == delays[line["id"]]
        assert line["id"] == 5 or line["source"] == translators.corpus.lines("test", "de")[line["id"]].split()
        assert [len(row) for row in line["attention"]] == line["delays"]
        assert 0 < line["AP"] <= 1 and line["DAL"] > 0 and line["signature"].startswith("unit:subword|eos:yes")
    assert any("@@" in token for line in lines for token in line["hypothesis"])  # the subwords are there
    final = text.splitlines()[-1]
    assert f"BLEU = {summary['BLEU']['score']:.2f}" in final and summary["BLEU"]["signature"] in final
    latency = summary["latency"]
    assert f"AP {latency['AP']:.3f} AL {latency['AL']:.2f} DAL {latency['DAL']:.2f} ({latency['signature']}" in final
    assert {"LAAL", "CW", "initial"} <= set(latency) and summary["sentences"] == SENTENCES
    assert summary["options"]["max_consecutive_writes"] == 2 and summary["options"]["beam"] == 1
    assert summary["checkpoint"] == str(translators.checkpoint("milk")) and summary["attention"] == "milk"
    log = read_generate_log(str(tmp_path / "generate-test.jsonl"))
    assert log.no_latency is None and corpus_latency(log.records).mean.DAL == pytest.approx(latency["DAL"])
    assert not list(tmp_path.glob("*.partial"))
    assert f"test: BLEU = {summary['BLEU']['score']:.2f}" in done.log, "printed, although standard output is the file"
    assert 0 < summary["chrF"]["score"] < 100 and summary["chrF"]["signature"].startswith("nrefs:1")
    assert 0 <= latency["minimal_reads"] <= 1 and 0 <= latency["full_reads"] <= 1


def test_the_summary_counts_as_the_scorer_does(translators: Translators, tmp_path: Path) -> None:
    """The options of our scorer work without --scoring; a rerun replaces the files."""
    (tmp_path / "generate-test.json").write_text("old")
    convention = ["--latency-unit", "word", "--latency-eos", "no", "--latency-length", "reference"]
    generate(translators, "milk", "--results-path", tmp_path, *convention, "--sacrebleu-tokenizer", "char")
    summary = read_json(tmp_path / "generate-test.json")
    assert summary["latency"]["signature"] == SIMULEVAL.signature() and "tok:char" in summary["BLEU"]["signature"]
    records = read_generate_log(str(tmp_path / "generate-test.jsonl")).records
    assert corpus_latency(records, SIMULEVAL).mean.AL == pytest.approx(summary["latency"]["AL"])


def test_without_results_path_nothing_is_written(translators: Translators, tmp_path: Path) -> None:
    with mock.patch("fairseq_milk.generation.results.write_atomically") as write:
        done = generate(translators, "milk", "--scoring", "sacrebleu")
    write.assert_not_called()
    assert re.search(r"test: AP \d\.\d+ AL -?\d+\.\d+ DAL \d+\.\d+ \(unit:subword\|eos:yes\|len:hyp", done.log)


def test_without_references_there_is_still_latency(translators: Translators, tmp_path: Path) -> None:
    corpus = translators.corpus
    dictionaries = ["--srcdict", corpus.bin / "dict.de.txt", "--tgtdict", corpus.bin / "dict.en.txt"]
    prefix = f"--testpref={corpus.folder / 'bpe'}.test"
    folder = tmp_path / "bin"
    run("fairseq-preprocess", "-s", "de", "-t", "en", "--only-source", prefix, *dictionaries, "--destdir", folder)
    arguments = translators.decoding("milk", "-s", "de", "-t", "en", "--results-path", tmp_path)
    (folder / "dict.en.txt").write_text((corpus.bin / "dict.en.txt").read_text())
    done = run("fairseq-generate", folder, *arguments[1:])
    assert re.search(r"test: AP \d\.\d+ AL", done.log)
    summary, lines = read_json(tmp_path / "generate-test.json"), read_json_lines(tmp_path / "generate-test.jsonl")
    assert summary["BLEU"] is None and summary["latency"]["DAL"] > 0 and len(lines) == SENTENCES
    assert all(line["reference"] is None and line["text"] for line in lines)


def test_latency_is_computed_once(translators: Translators, tmp_path: Path) -> None:
    """Once for the printed line, the JSON lines and the summary."""
    with mock.patch("fairseq_milk.scoring.score.sentence_latency", side_effect=sentence_latency) as measured:
        generate(translators, "milk", "--results-path", tmp_path, "--batch-size", 5)
    assert measured.call_count == 1 and len(measured.call_args[0][0]) == SENTENCES


def test_a_failed_rerun_leaves_nothing_old(translators: Translators, tmp_path: Path) -> None:
    generate(translators, "milk", "--results-path", tmp_path)
    with mock.patch("fairseq_milk.generation.generator.translate", side_effect=RuntimeError("power failure")):
        with pytest.raises(RuntimeError, match="power failure"):
            generate(translators, "milk", "--results-path", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["generate-test.txt"]


@pytest.mark.parametrize("undo", [["--remove-bpe"], ["--bpe", "subword_nmt"], []], ids=["remove", "bpe", "none"])
def test_bleu_is_of_words(translators: Translators, tmp_path: Path, undo: List[str]) -> None:
    codes = ["--bpe-codes", translators.corpus.codes] if "--bpe" in undo else []
    generate(translators, "milk", "--results-path", tmp_path, *undo, *codes)
    lines = read_json_lines(tmp_path / "generate-test.jsonl")
    references = translators.corpus.lines("test", "en", "tok" if undo else "bpe")
    assert lines[0]["reference_text"] == references[0]
    assert any("@@" in line["text"] for line in lines) != bool(undo)


# ---- knobs and searches ------------------------------------------------------------------------------------------


def test_knobs_reach_the_decoder(translators: Translators) -> None:
    def delays(attention: str, *knobs: Any) -> List[List[int]]:
        found = lines_of("I", generate(translators, attention, "--batch-size", 16, *knobs).stdout)
        return [list(map(int, found[i].split())) for i in sorted(found)]

    lengths = [len(line.split()) + 1 for line in translators.corpus.lines("test", "de")]
    assert [d[0] for d in delays("waitk", "--decode-k", 4)] == [min(4, n) for n in lengths]
    assert all(d[0] == n for d, n in zip(delays("milk", "--head-threshold", 0.999), lengths))
    assert all(d[0] >= min(3, n) for d, n in zip(delays("milk", "--min-wait", 3), lengths))
    assert all(d[-1] == n for d, n in zip(delays("waitk", "--no-early-eos"), lengths))


@pytest.mark.parametrize(
    "attention, options, sentence",
    [
        ("milk", ["--beam", 4], "--beam 4 needs the whole source"),
        ("milk", ["--task", "translation"], "with --task simultaneous_translation"),
        ("milk", ["--prefix-size", 1], "--prefix-size cannot be used with a simultaneous model"),
        ("milk", ["--decode-k", 3], "--decode-k is for models trained with --attention waitk"),
        ("soft", ["--decode-k", 3], "--decode-k is for models trained with --attention waitk"),
        ("waitk", ["--head-threshold", 0.4], "--head-threshold is for models with a learned head"),
        ("milk", ["--head-threshold", 1.5], "--head-threshold must lie between 0 and 1, got 1.5"),
        ("milk", ["--min-wait", 0], "--min-wait must be at least 1, got 0"),
        ("milk", ["--max-consecutive-writes", -1], "--max-consecutive-writes must be 0 or a positive number"),
        ("waitk", ["--decode-k", 0], "--decode-k must be at least 1, got 0"),
    ],
)
def test_invalid_options_are_reported_in_a_sentence(
    translators: Translators,
    attention: str,
    options: List[Any],
    sentence: str,
) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)) as error:
        generate(translators, attention, *options)
    assert "\n" not in str(error.value)


def test_an_ensemble_is_refused(translators: Translators) -> None:
    twice = f"{translators.checkpoint('milk')}:{translators.checkpoint('milk')}"
    with pytest.raises(UserError, match="ensemble"):
        generate(translators, "milk", "--path", twice)


def test_an_offline_model_is_searched(translators: Translators, tmp_path: Path) -> None:
    """With fairseq's default beam of 5; all delays are the length of the source."""
    done = generate(translators, "soft", "--results-path", tmp_path, "--write-attention", "--print-alignment", "soft")
    text = (tmp_path / "generate-test.txt").read_text(encoding="utf-8")
    assert "Generate test with beam=5: BLEU" in text and done.stdout == ""
    lengths = [len(line.split()) + 1 for line in translators.corpus.lines("test", "de")]
    for line in read_json_lines(tmp_path / "generate-test.jsonl"):
        length = lengths[line["id"]]
        assert set(line["delays"]) == {length}
        assert [len(row) for row in line["attention"]] == line["delays"]
        rows = lines_of("A", text)[line["id"]].split()
        assert [len(row.split(",")) for row in rows] == line["delays"]
        printed = [list(map(float, row.split(","))) for row in rows]
        assert printed == [pytest.approx(row, abs=2e-6) for row in line["attention"]]
    stock = ["--task", "translation", "--beam", 4, "--required-batch-size-multiple", 1]
    theirs = hypotheses(generate(translators, "soft", *stock).stdout)
    assert theirs == hypotheses(generate(translators, "soft", "--beam", 4, "--max-len-a", 0).stdout)


def test_greedy_search_of_an_offline_model_is_fairseqs(translators: Translators) -> None:
    options = ["--beam", 1, "--max-len-a", 0]
    stock = ["--task", "translation", "--required-batch-size-multiple", 1]
    theirs = generate(translators, "soft", *stock, *options)
    assert hypotheses(theirs.stdout) == hypotheses(generate(translators, "soft", *options).stdout)


def test_alignments_are_printed(translators: Translators) -> None:
    hard = generate(translators, "milk", "--print-alignment")
    soft = generate(translators, "milk", "--print-alignment", "soft")
    lengths = [len(line.split()) + 1 for line in translators.corpus.lines("test", "de")]
    written = hypotheses(hard.stdout)
    for i, line in lines_of("A", hard.stdout).items():
        pairs = [tuple(map(int, pair.split("-"))) for pair in line.split()]
        assert len(pairs) == (len(written[i].split()) if lengths[i] > 1 else 0)
        assert all(0 <= j < lengths[i] - 1 for j, _ in pairs)
    for i, line in lines_of("A", soft.stdout).items():
        assert {len(row.split(",")) for row in line.split()} == {lengths[i]}


def test_references_can_be_scored(translators: Translators) -> None:
    done = generate(translators, "milk", "--score-reference")
    assert sorted(hypotheses(done.stdout)) == list(range(SENTENCES))
