"""Reading logs of fairseq-generate, with and without subwords, and our JSON lines; faults are reported by line."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest

from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.texts import texts_of

# As fairseq_cli/generate.py prints them: length-sorted, so not in the order of the ids.
LOG = """\
2026-01-01 00:00:00 | INFO | fairseq_cli.generate | loading model(s) from model.pt
S-1\tich ha@@ be ge@@ sehen
T-1\tI saw it
H-1\t-0.25\tI ha@@ ve se@@ en it
D-1\t-0.25\tI ha@@ ve se@@ en it
P-1\t-0.1 -0.2 -0.3 -0.1 -0.2 -0.3 -0.5
I-1\t1 2 3 3 4 6 6
S-0\tja
T-0\ty@@ es
H-0\t-1.5e-01\ty@@ es
D-0\t-1.5e-01\ty@@ es
P-0\t-0.1 -0.2 -0.3
A-0\t0-0 0-1
I-0\t1 1 2
Generate test with beam=1: BLEU = 12.34
"""
RECORDS = [
    Record(0, ["ja"], ["y@@", "es"], [1, 1, 2], ["y@@", "es"]),
    Record(
        1, "ich ha@@ be ge@@ sehen".split(), "I ha@@ ve se@@ en it".split(), [1, 2, 3, 3, 4, 6, 6], "I saw it".split()
    ),
]


def read(path: Path, text: str):  # type: ignore[no-untyped-def]
    file = path / "generate-test.txt"
    file.write_text(text, encoding="utf-8")
    return read_generate_log(str(file))


def test_log_with_subwords(tmp_path: Path) -> None:
    log = read(tmp_path, LOG)
    assert log.no_latency is None
    assert log.records == RECORDS
    assert texts_of(log.records) == (["yes", "I have seen it"], ["yes", "I saw it"])


def test_json_lines_say_the_same(tmp_path: Path) -> None:
    lines = [json.dumps({**record.to_dict(), "AP": 0.5, "DAL": 1.0}) for record in reversed(RECORDS)]
    log = read(tmp_path, "\n".join(lines) + "\n\n")
    assert log.records == RECORDS
    assert texts_of(log.records) == (["yes", "I have seen it"], ["yes", "I saw it"])


def test_json_lines_with_detokenised_text(tmp_path: Path) -> None:
    record = RECORDS[1]._replace(text="I have seen it.", reference_text="I saw it.")
    log = read(tmp_path, json.dumps(record.to_dict()))
    assert texts_of(log.records) == (["I have seen it."], ["I saw it."])


def test_log_of_remove_bpe_gives_bleu_only(tmp_path: Path) -> None:
    log = read(tmp_path, LOG.replace("@@ ", ""))
    assert log.no_latency is not None and "jsonl" in log.no_latency and "\n" not in log.no_latency
    assert texts_of(log.records) == (["yes", "I have seen it"], ["yes", "I saw it"])
    assert [list(record.delays) for record in log.records] == [[], []]


def test_log_of_bpe_and_tokenizer_options_gives_bleu_of_the_detokenised_lines(tmp_path: Path) -> None:
    """With --bpe and --tokenizer only the H lines have subwords, so that there is no latency."""
    text = "S-0\tJa, ja.\nT-0\tYes, yes.\nH-0\t-1\ty@@ es , y@@ es .\nD-0\t-1\tYes, yes.\nI-0\t1 1 1 1 1 1 1\n"
    log = read(tmp_path, text)
    assert log.no_latency is not None and "H- lines" in log.no_latency
    assert texts_of(log.records) == (["Yes, yes."], ["Yes, yes."])


def test_log_without_delays_or_source_gives_bleu_only(tmp_path: Path) -> None:
    without_delays = "\n".join(line for line in LOG.split("\n") if not line.startswith("I-"))
    log = read(tmp_path, without_delays)
    assert log.no_latency is not None and "I- line" in log.no_latency
    assert texts_of(log.records)[0] == ["yes", "I have seen it"]
    assert "S- line" in (read(tmp_path, LOG.replace("S-1\t", "X-1\t")).no_latency or "")


def test_only_the_best_hypothesis_counts(tmp_path: Path) -> None:
    nbest = LOG.replace("I-0\t1 1 2", "I-0\t1 1 2\nH-0\t-2\tno\nD-0\t-2\tno\nI-0\t2 2")
    assert read(tmp_path, nbest).records == RECORDS


def test_empty_sentences_and_no_references(tmp_path: Path) -> None:
    log = read(tmp_path, "S-3\t\nH-3\t-1\t\nD-3\t-1\t\nI-3\t1\nS-4\nH-4\t-1\nI-4\t\n")
    assert log.records == [Record(3, [], [], [1]), Record(4, [], [], [])]
    assert texts_of(log.records) == (["", ""], None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LOG.replace("1 2 3 3 4 6 6", "1 2 x"), "generate-test.txt, line 7: the delays"),
        (LOG.replace("H-0\t-1.5e-01\t", "H-0\t"), "generate-test.txt, line 10: a score"),
        (LOG + "S-0\tja\n", "line 16: sentence 0 appears a second time"),
        (LOG.replace("H-0", "X-0"), "sentence 0 has no H- line"),
        (LOG.replace("I-0\t1 1 2", "I-0\t1 -1 2"), "generate-test.txt: sentence 0 has delays from -1"),
        ("", "generate-test.txt has no translations"),
        ("Generate test with beam=1: BLEU = 3\n", "generate-test.txt has no translations"),
    ],
)
def test_faults_of_a_log_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        read(tmp_path, text)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delays": [1, 1]}, None),  # a hypothesis that was cut
        ({"delays": [1, 1, 3]}, "sentence 0 has delays from 1 to 3"),
        ({"delays": [1]}, "sentence 0 has 1 delays"),
        ({"attention": [[1.0], [1.0]]}, "sentence 0 has 2 rows of attention for 3 delays"),
        ({"delays": [1, 1.5, 2]}, "'delays' must be a list of whole numbers"),
        ({"delays": [True, 1, 2]}, "'delays' must be a list of whole numbers"),
        ({"delays": "1 1 2"}, "'delays' must be a list of whole numbers"),
        ({"source": "ja"}, "'source' must be a list of strings"),
        ({"hypothesis": None}, "'hypothesis' must be a list of strings"),
        ({"reference": [1]}, "'reference' must be a list of strings"),
        ({"id": "0"}, "'id' must be a whole number"),
    ],
)
def test_faults_of_json_lines_are_named(tmp_path: Path, change: Dict[str, Any], message: str) -> None:
    lines = json.dumps(RECORDS[1].to_dict()) + "\n" + json.dumps({**RECORDS[0].to_dict(), **change})
    if message is None:
        assert len(read(tmp_path, lines).records) == 2
        return
    with pytest.raises(ValueError) as error:
        read(tmp_path, lines)
    assert f"generate-test.txt, line 2: {message}" in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": 5', "line 2"),
        ("[1]", "line 2: not a JSON object"),
        ('{"id": 5}', "line 2: no field 'source'"),
        (json.dumps(RECORDS[0].to_dict()), "line 2: sentence 0 appears a second time"),
    ],
)
def test_bad_json_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, json.dumps(RECORDS[0].to_dict()) + "\n" + line)


def test_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    file.write_bytes(b"\x80\x02\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8"):
        read_generate_log(str(file))
