"""examples/prepare and the recipes on it, end to end on stand-in archives: through the launchers down to BLEU."""

import gzip
import io
import json
import logging
import re
import socket
import stat
import tarfile
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterable, List, Tuple

import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.dataset import DATASETS

from examples.europarl_de_en.prepare import CORPUS as EUROPARL
from examples.europarl_de_en.spelling import NEW_GERMAN
from examples.multi30k.prepare import CORPORA as MULTI30K
from examples.prepare import text
from examples.prepare.extract import extract, write_lines
from examples.prepare.lengths import Length, mean_length
from examples.prepare.lines import map_lines, read_lines
from examples.prepare.pipeline import Preparation, main
from examples.prepare.recipe import Bitext, Corpus, both
from examples.prepare.steps import Progress, alone
from examples.wmt14_en_fr.prepare import CORPUS as WMT14
from examples.wmt15_de_en.prepare import CORPUS as WMT15
from fairseq_milk import cli
from fairseq_milk.console.errors import UserError
from fairseq_milk.console.progress import Line
from tests.support import fairseq_commands as commands
from tests.support.stand_in_corpora import LINES, pairs, serve, stand_in

RECIPES = {"multi30k": MULTI30K[0], "europarl_de_en": EUROPARL, "wmt15_de_en": WMT15, "wmt14_en_fr": WMT14}


def prepare(corpus: Corpus, out: Path, base: Any, workers: int = 1) -> str:
    """The output of a preparation."""
    stream = io.StringIO()
    Preparation(corpus, out, str(base), workers, Line(stream)).run()
    return stream.getvalue()


def quiet(what: str = "") -> Progress:
    return Progress(Line(io.StringIO()), what, 0)


def lines_of(path: Path) -> List[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


# ---- the recipes ----------------------------------------------------------------------------------------------------


# SLURM's commands, with two nodes that are both this machine. Each has one rank, to be told its number on a CPU.
SLURM = {
    "scontrol": "echo 127.0.0.1",
    "srun": """while [[ $1 == --* ]]; do shift; done
SLURM_NODEID=1 "$@" --distributed-rank 1 &
SLURM_NODEID=0 "$@" --distributed-rank 0 && wait $!""",
}
SIZES = "--arch milk_rnmt_tiny --embed-dim 8 --hidden-size 8 --energy-dim 8"
# fairseq 0.12.2 makes a group of ranks for torchrun's processes even if there is one; its default back-ends want GPUs.
RANKS = "--ddp-backend legacy_ddp --distributed-backend gloo"
TINY = f"--cpu {SIZES} {RANKS} --batch-size 8 --update-freq 1 --max-update 3"


def launch(script: str, data: Path, save: Path, *options: str, **variables: str) -> str:
    """A launcher as a user calls it, with options at its end that make it small enough for a CPU; what it prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        variables["MASTER_PORT"] = str(free.getsockname()[1])
    arguments = ["bash", f"examples/{script}", *TINY.split(), *options]
    finished = commands.shell(*arguments, DATA=str(data), SAVE=str(save), **variables)
    assert finished.returncode == 0, finished.stderr[-3000:]
    return finished.stdout


def launch_with_slurm(script: str, data: Path, save: Path, folder: Path) -> str:
    folder.mkdir()
    for name, body in SLURM.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (folder / name).chmod(stat.S_IRWXU)
    path = f"{folder}:{commands.environment()['PATH']}"
    job = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "1", "PATH": path}
    return launch(script, data, save, "--distributed-init-method", "env://", **job)


def train(name: str, data: Path, save: Path) -> None:
    """Three updates as the recipe has them: by fairseq-train as in a sweep, the paper's corpora by a launcher."""
    if name in ("multi30k", "europarl_de_en"):
        commands.run("fairseq-train", *commands.training(data, save, "-s", "de", "-t", "en", max_update=3))
    elif name == "wmt14_en_fr":
        assert "training on 1 devices" in launch("wmt14_en_fr/train.sh", data, save, GPUS="1")
    else:
        log = launch_with_slurm("wmt15_de_en/train.slurm", data, save, save.with_name("slurm"))
        assert "training on 2 devices" in log


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_from_its_archives_to_training_and_bleu(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = stand_in(RECIPES[name], tmp_path / "mirror")
    with serve(tmp_path / "mirror", 5000) as server:  # the first download breaks off
        base = {"multi30k": tmp_path / "mirror", "wmt15_de_en": server.url}.get(name, (tmp_path / "mirror").as_uri())
        prepare(corpus, tmp_path / "out", base, workers=2)
    assert not logging.getLogger("fairseq_cli.preprocess").handlers  # the log file is closed
    out, source, target = tmp_path / "out", corpus.source, corpus.target
    assert len(lines_of(out / "bpe" / f"train.{source}")) == LINES["train"] * len(corpus.train)
    assert len(lines_of(out / "bpe" / f"valid.{target}")) == LINES["valid"] * len(corpus.valid)
    assert "".join(lines_of(out / "bpe" / f"test.{source}")).count("@@ ") > 0
    dictionaries = [lines_of(out / "bin" / f"dict.{language}.txt") for language in (source, target)]
    assert (dictionaries[0] == dictionaries[1]) == corpus.joined
    for number, bitext in enumerate(corpus.more_tests, start=1):
        assert len(lines_of(out / "raw" / f"{bitext.name}.{target}")) == LINES[f"test{number}"]
        assert (out / "bin" / f"test{number}.{corpus.pair}.{source}.bin").stat().st_size > 0

    train(name, out / "bin", tmp_path / "ckpt")
    checkpoint = tmp_path / "ckpt" / "checkpoint_best.pt"
    state: Dict[str, Any] = torch.load(checkpoint)
    assert state["optimizer_history"][-1]["num_updates"] == 3
    if name.startswith("wmt"):  # options of the launcher that were not overridden
        assert (state["cfg"]["model"]["noise"], state["cfg"]["criterion"]["latency_weight"]) == (4, 0.2)

    undone = ["--remove-bpe", "--tokenizer", "moses", "--max-len-a", 1, "--max-len-b", 5, "-s", source, "-t", target]
    decoding = commands.decoding(out / "bin", checkpoint, "--batch-size", 64, *undone)
    commands.run("fairseq-generate", *decoding, "--results-path", tmp_path / "results")
    references = out / "raw" / f"{corpus.test[0].name}.{target}"
    assert lines_of(references) == [pair[1] for pair in pairs(LINES["test"], 0)]
    generation = str(tmp_path / "results" / "generate-test.jsonl")
    capsys.readouterr()
    assert cli.main(["score", generation, "--references", str(references)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("BLEU ")]
    bleu = sacrebleu.BLEU()
    hypotheses = [json.loads(line)["text"] for line in lines_of(Path(generation))]
    assert f"{bleu.corpus_score(hypotheses, [lines_of(references)]).score:.2f}" in line


@pytest.mark.parametrize("corpus", [*MULTI30K, EUROPARL, WMT15, WMT14], ids=lambda corpus: corpus.name + corpus.pair)
def test_a_recipe_names_archives_that_it_has(corpus: Corpus) -> None:
    named = {path for bitext in corpus.bitexts() for path in bitext.archives()}
    assert named == {archive.path for archive in corpus.archives}
    names = [bitext.name for bitext in corpus.bitexts()]
    assert len(set(names)) == len(names)


MD5_ALONE = {"wmt12/test.tgz", "wmt13/test.tgz", "wmt14/test-full.tgz", "wmt15/test.tgz"}  # sacreBLEU lists no other


@pytest.mark.parametrize("corpus", [*MULTI30K, WMT15, WMT14], ids=lambda corpus: corpus.name + corpus.pair)
def test_every_archive_has_a_digest_and_every_address_a_version(corpus: Corpus) -> None:
    for archive in corpus.archives:
        if archive.path in MD5_ALONE:
            assert re.fullmatch("md5:[0-9a-f]{32}", archive.digest)
        else:
            assert re.fullmatch("sha256:[0-9a-f]{64}", archive.digest) and archive.size
    if "githubusercontent" in corpus.base_url:
        assert re.search("/[0-9a-f]{40}/", corpus.base_url)


@pytest.mark.parametrize("corpus", [WMT15, WMT14], ids=lambda corpus: corpus.name)
def test_the_md5_of_a_test_set_is_sacrebleu_s(corpus: Corpus) -> None:
    listed = {f"md5:{md5}": url for known in DATASETS.values() for md5, url in zip(known.md5 or (), known.data or ())}
    for archive in corpus.archives:
        if archive.path in MD5_ALONE:
            assert listed[archive.digest].endswith(f"statmt.org/{archive.path}")


def test_the_paper_s_figures() -> None:
    assert (WMT15.merges, WMT15.types, WMT15.joined, WMT15.full_read["test"]) == (32000, 32000, True, 27.9)
    assert (WMT14.merges, WMT14.types, WMT14.joined, WMT14.full_read["test"]) == (32000, 32000, True, 28.8)
    assert [bitext.name for bitext in WMT15.valid + WMT15.test] == ["newstest2013", "newstest2015"]
    assert [bitext.name for bitext in WMT14.valid + WMT14.test] == ["newstest2012", "newstest2013", "newstest2014"]
    pairs_of = [sum(bitext.lines for bitext in corpus.train) for corpus in (WMT15, WMT14)]
    assert pairs_of[0] == pytest.approx(4.5e6, rel=0.01) and pairs_of[1] == pytest.approx(40.8e6, rel=0.002)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--dry-run prints the steps; the exit code says that the sources are not as long as the paper's."""
    assert main([WMT15], tmp_path, ["--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "wmt13/training-parallel-europarl-v7.tgz (658 MB, sha256)" in said and not list(tmp_path.iterdir())
    corpus = stand_in(WMT15, tmp_path / "mirror")
    arguments = ["--base-url", str(tmp_path / "mirror"), "--workers", "1", "--out", str(tmp_path / "out")]
    assert main([corpus], tmp_path, arguments) == 3
    assert "more than 3% apart, so latency on these data cannot be compared" in capsys.readouterr().out
    length = mean_length(tmp_path / "out" / "bpe" / "test.de")
    assert main([corpus._replace(full_read={"test": length * 1.02})], tmp_path, arguments) == 0
    assert main([corpus], tmp_path, [*arguments, "--workers", "0"]) == 2
    assert "--workers must be at least 1, got 0" in capsys.readouterr().err


# ---- what is kept ---------------------------------------------------------------------------------------------------


def test_an_interrupted_preparation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = stand_in(MULTI30K[0], tmp_path / "mirror")

    def interrupted(*args: Any, **kwargs: Any) -> List[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(text, "segment", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare(corpus, tmp_path / "out", tmp_path / "mirror")
    said = prepare(corpus, tmp_path / "out", tmp_path / "mirror")
    assert "learn bpe: kept" in said and "segment train.de: done" in said
    assert prepare(corpus, tmp_path / "out", tmp_path / "nowhere").count(": kept\n") == len(said.splitlines())

    said = prepare(corpus._replace(merges=50), tmp_path / "out", tmp_path / "nowhere")
    assert "clean: kept" in said and "learn bpe: done" in said and "binarise: done" in said
    assert len(lines_of(tmp_path / "out" / "codes")) == 51


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(UserError, match="in use by another process"):
        with alone(tmp_path):
            pass


# ---- archives -------------------------------------------------------------------------------------------------------


def write_gz(path: Path, data: bytes) -> str:
    path.write_bytes(gzip.compress(data))
    return path.name


@pytest.mark.parametrize(
    ("source", "target", "lines", "problem"),
    [
        (b"a\nb\n", b"c\n", 2, "a.gz has 2 lines and b.gz has 1: they are not the two sides"),
        (b"a\nb\n", b"c\nd\n", 3, "a.gz has 2 lines, the public release has 3"),
        (b"a\nb\n", b"c\n\xff\n", 2, "b.gz is not UTF-8 text: 1 of its 2 lines"),
    ],
)
def test_an_incomplete_corpus_is_refused(
    source: bytes, target: bytes, lines: int, problem: str, tmp_path: Path
) -> None:
    bitext = Bitext("x", write_gz(tmp_path / "a.gz", source), write_gz(tmp_path / "b.gz", target), lines)
    with pytest.raises(UserError, match=problem):
        extract(bitext, tmp_path, (tmp_path / "x.de", tmp_path / "x.en"), 0.0)


def test_a_damaged_archive_and_another_one(tmp_path: Path) -> None:
    stand_in(WMT15, tmp_path)
    outputs = tmp_path / "x.de", tmp_path / "x.en"
    (bitext,) = WMT15.test
    with pytest.raises(UserError, match="has no file test/none.de"):
        extract(both(bitext.archives()[0], "test/none.{de,en}", 1), tmp_path, outputs, 0.0)
    archive = tmp_path / bitext.archives()[0]
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(UserError, match="damaged"):
        extract(bitext, tmp_path, outputs, 0.0)
    archive.write_bytes(b"<html>404</html>")
    with pytest.raises(UserError, match="damaged"):
        extract(bitext, tmp_path, outputs, 0.0)


def test_what_is_not_utf8_is_dropped_with_its_pair(tmp_path: Path) -> None:
    good = b"ein Hund\n" * 2000
    source, target = write_gz(tmp_path / "a.gz", good + b"\xff\n"), write_gz(tmp_path / "b.gz", good + b"c\n")
    bitext = Bitext("x", source, target, 2001)
    assert extract(bitext, tmp_path, (tmp_path / "x.de", tmp_path / "x.en"), 0.01) == 2001
    last = lines_of(tmp_path / "x.de")[-1]
    assert not text.is_clean(last, "c", 100, 9) and text.is_clean("ein Hund", "c", 100, 9)


def test_segments_of_marked_up_text(tmp_path: Path) -> None:
    """Several segments on a line, segments over several lines, and entities."""
    markup = b'<DOC><hl><seg id="1"> a &amp;\nb </seg></hl><SEG id="2">c\xc2\xa0d</SEG>\n<seg id="3"></seg></DOC>'
    with tarfile.open(tmp_path / "t.tgz", "w:gz") as tar:
        for language in ("de", "en"):
            entry = tarfile.TarInfo(f"n.{language}.sgm")
            entry.size = len(markup)
            tar.addfile(entry, io.BytesIO(markup))
    bitext = Bitext("n", "t.tgz!n.de.sgm", "t.tgz!n.en.sgm", 3)
    extract(bitext, tmp_path, (tmp_path / "n.de", tmp_path / "n.en"), 0.0)
    assert lines_of(tmp_path / "n.de") == ["a & b", "c d", ""]


def write_tar(path: Path, entries: Iterable[Tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for entry, data in entries:
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_only_regular_files_of_an_archive_are_read(kind: bytes, tmp_path: Path) -> None:
    """A link under the expected name, to another file of the archive or out of it, is not followed."""
    other, link = tarfile.TarInfo("other"), tarfile.TarInfo("n.de")
    link.type, link.linkname = kind, "other"
    write_tar(tmp_path / "t.tgz", [(other, b"a\n"), (link, b""), (tarfile.TarInfo("n.en"), b"b\n")])
    with pytest.raises(UserError, match="t.tgz: n.de in it is not a regular file"):
        extract(both("t.tgz", "n.{de,en}", 1), tmp_path, (tmp_path / "x.de", tmp_path / "x.en"), 0.0)


def test_a_member_has_the_very_name_that_is_wanted(tmp_path: Path) -> None:
    members = [(tarfile.TarInfo(name), b"a\n") for name in ("/n.de", "../n.de", "x/../n.de", "n.en")]
    write_tar(tmp_path / "t.tgz", members)
    before = set(tmp_path.parent.iterdir())
    with pytest.raises(UserError, match="has no file n.de"):
        extract(both("t.tgz", "n.{de,en}", 1), tmp_path, (tmp_path / "x.de", tmp_path / "x.en"), 0.0)
    assert set(tmp_path.parent.iterdir()) == before


@pytest.mark.parametrize("archived", [True, False])
def test_what_unpacks_to_more_than_the_corpus_is_stopped(
    archived: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small archives of many lines, of one long line and of one long marked-up file."""
    monkeypatch.setattr("examples.prepare.extract.LONGEST", 1000)
    monkeypatch.setattr("examples.prepare.extract.MOST_MARKED_UP", 1000)
    outputs = tmp_path / "x.de", tmp_path / "x.en"

    def bitext(name: str, data: bytes) -> Bitext:
        if archived:
            write_tar(tmp_path / "t.tgz", [(tarfile.TarInfo(f"{side}{name}"), data) for side in "ab"])
            return Bitext("x", f"t.tgz!a{name}", f"t.tgz!b{name}", 3)
        return Bitext("x", write_gz(tmp_path / "a.gz", data), write_gz(tmp_path / "b.gz", data), 3)

    with pytest.raises(UserError, match="has more than 3 lines, the public release has 3"):
        extract(bitext("n", b"\n" * 100_000), tmp_path, outputs, 0.01)
    assert outputs[0].stat().st_size < 100
    with pytest.raises(UserError, match="has a line of more than 1000 bytes"):
        extract(bitext("n", b"a" * 100_000), tmp_path, outputs, 0.0)
    if archived:
        with pytest.raises(UserError, match="n.sgm has more than 1000 bytes"):
            extract(bitext("n.sgm", b" " * 100_000), tmp_path, outputs, 0.0)


# ---- text -----------------------------------------------------------------------------------------------------------

ODD = st.text(st.sampled_from("ab \t\r\x0b\x0c\x1c\x85\xa0\u2028\u2029é"), max_size=8)


@given(st.lists(ODD, max_size=20))
def test_only_a_newline_ends_a_line(tmp_path_factory: pytest.TempPathFactory, lines: List[str]) -> None:
    """Only \\n ends a line, not the other line breaks of Python and Unicode."""
    path = tmp_path_factory.getbasetemp() / "lines"
    assert write_lines([line.encode() + b"\n" for line in lines], path).lines == len(lines)
    assert list(read_lines([path], quiet())) == [" ".join(line.split()) for line in lines]
    assert path.read_text(encoding="utf-8").splitlines() == [" ".join(line.split()) for line in lines]


@given(st.lists(st.text("ab "), min_size=1, max_size=5), st.integers(1, 3), st.sampled_from([1.0, 1.5, 9.0]))
def test_clean_pairs(words: List[str], longest: int, ratio: float) -> None:
    for source in words:
        for target in words:
            m, n = len(source.split()), len(target.split())
            expected = 1 <= m <= longest and 1 <= n <= longest and m / n <= ratio and n / m <= ratio
            assert text.is_clean(source, target, longest, ratio) == expected


OLD = "Daß der Ausschuß beim Schlußbericht über Rußland und den Prozeß bewußt Kompromißlösungen läßt, müßte er wissen"
NEW = (
    "Dass der Ausschuss beim Schlussbericht über Russland und den Prozess bewusst "
    "Kompromisslösungen lässt, müsste er wissen"
)
UNCHANGED = (
    "Maßnahmen, große Straßen in Großbritannien, außer gemäß Fuß Gruß grüßen heißt weiß hieß Ruß Muße müßig Spaß bloß "
    "Gräßle Klaß Deß Keßler Größe regelmäßig beschließen süß genießt stoßen saß Buße äußern Gefäß dreißig"
)


def test_old_german_spelling_is_modernised_in_the_training_text_alone(tmp_path: Path) -> None:
    assert text.tokenise([OLD, UNCHANGED], "de", NEW_GERMAN) == text.tokenise([NEW, UNCHANGED], "de")
    folder = tmp_path / "mirror"
    corpus = stand_in(EUROPARL, folder)._replace(archives=EUROPARL.archives)
    for bitext in corpus.bitexts():
        lines = gzip.decompress((folder / bitext.source).read_bytes()).decode().split("\n")
        (folder / bitext.source).write_bytes(gzip.compress("\n".join([OLD, *lines[1:]]).encode()))
    prepare(corpus, tmp_path / "out", folder)
    first = {split: lines_of(tmp_path / "out" / "tok" / f"{split}.de")[0] for split in ("train", "valid", "test")}
    new, old = text.tokenise([NEW, OLD], "de")
    assert first == {"train": new, "valid": old, "test": old}


def test_processes_keep_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.prepare.lines.CHUNK", 10)
    written = [" ".join([str(n), "Hund."]) for n in range(995)]
    for part in (0, 1):
        (tmp_path / f"in{part}").write_text("".join(line + "\n" for line in written[part * 500 : part * 500 + 500]))
    sources = [tmp_path / "in0", tmp_path / "in1"]
    for workers in (1, 3):
        map_lines(partial(text.tokenise, language="de"), sources, tmp_path / str(workers), workers, quiet())
        assert lines_of(tmp_path / str(workers)) == [line.replace(".", " .") for line in written]


def test_subwords_are_learned_from_words_seen_often_enough_and_undone(tmp_path: Path) -> None:
    """Fifty words that occur once each make "q x" a frequent pair unless rare words are left out."""
    lines = [line for pair in pairs(200, 1) for line in pair]
    tokens = text.tokenise(lines, "de")
    words = text.count_words(tokens)
    words.update(f"qx{n}" for n in range(50))
    for learn_from in (1, 2):
        codes = tmp_path / f"codes{learn_from}"
        with open(codes, "w", encoding="utf-8") as file:
            text.learn(words, 100, learn_from, file)
        assert ("q x" in lines_of(codes)) == (learn_from == 1)
        segmented = text.segment(tokens, codes)
        assert [line.replace("@@ ", "") for line in segmented] == tokens != segmented


def test_the_sentence_on_lengths() -> None:
    assert Length("test", 28.0, 27.9).sentence().endswith("the paper's full-read DAL is 27.9 (+0.4%)")
    assert "(-10.4%): more than 3% apart" in Length("test", 25.0, 27.9).sentence()
