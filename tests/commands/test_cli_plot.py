"""`fairseq-milk plot`: figures from a sweep and from generations, and its error messages."""

import re
from pathlib import Path
from typing import Any, List

import pytest

from fairseq_milk import cli
from fairseq_milk.analysis.systems import LATENCIES, choose, comparable, curves, distinct_names, group, read_systems
from fairseq_milk.scoring.latency import PAPER, corpus_latency
from fairseq_milk.scoring.table import read_results, write_results
from tests.support import stand_in_sweep as stand_in

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(stand_in.sweep(tmp_path_factory.mktemp("sweep")))


@pytest.fixture
def logs(tmp_path: Path) -> List[str]:
    return [
        stand_in.write_log(tmp_path / name / "results" / "generate-test.jsonl", stand_in.records(wait))
        for name, wait in (("milk", 3), ("wait-6", 6))
    ]


def plot(*arguments: object) -> int:
    return cli.main(["plot", *map(str, arguments)])


@pytest.mark.parametrize("suffix", MAGIC)
@pytest.mark.parametrize("kind", [["plane", "--paper", "deen"], ["schedule", "--sentence", 2], ["delays"]], ids=str)
def test_every_kind_in_every_format(kind: List[Any], suffix: str, table: str, tmp_path: Path) -> None:
    out = tmp_path / f"a.b.{suffix}"
    assert plot(kind[0], table, *kind[1:], "--out", out, "--title", "<$5>") == 0
    assert out.read_bytes().startswith(MAGIC[suffix])


def interrupted(*args: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("suffix", MAGIC)
def test_an_interruption_leaves_the_old_picture(
    suffix: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / f"plane.{suffix}"
    out.write_bytes(b"old")
    monkeypatch.setattr("os.replace", interrupted)
    assert plot("plane", table, "--out", out) == 130
    assert list(tmp_path.iterdir()) == [out] and out.read_bytes() == b"old"


@pytest.mark.parametrize("latency", LATENCIES)
def test_plane_shows_every_point(latency: str, table: str, tmp_path: Path) -> None:
    out = tmp_path / "plane.svg"
    assert plot("plane", table, "--latency", latency, "--out", out) == 0
    text = out.read_text(encoding="utf-8")
    assert all(
        f">{label}<" in text for label in ("λ=0.05", "λ=0.4", "k=2", "k=8", "MILk", "wait-k", LATENCIES[latency])
    )


def test_generations_are_named_by_what_tells_them_apart(logs: List[str], tmp_path: Path) -> None:
    out = tmp_path / "delays.svg"
    assert plot("delays", *logs, "--out", out) == 0
    text = out.read_text(encoding="utf-8")
    assert ">MILk (mean" in text and ">wait-6 (mean" in text


def test_results_on_other_sentences_stay_out(table: str, tmp_path: Path, caplog: Any, capsys: Any) -> None:
    results = read_results(table)
    for number, result in enumerate(results):
        if result.system == "wait-k":
            results[number] = result._replace(log=result.log.replace("generate-test", "generate-valid"))
    both, _ = write_results(results, tmp_path)
    subsets = {result.subset for result in results}
    assert subsets == {"test", "valid"}
    counts = {name: sum(result.subset == name for result in results) for name in subsets}
    shown = read_systems([str(both)])
    assert {result.subset for system in shown for result in system.results} == {max(counts, key=lambda n: counts[n])}
    assert "left out" in caplog.text
    assert {system.name for system in read_systems([str(both)], "valid")} == {"wait-k"}
    assert plot("plane", both, "--subset", "dev", "--out", tmp_path / "plane.svg") == 2
    assert "--subset dev: the tables have results on" in capsys.readouterr().err


def test_tables_are_told_apart_by_their_names(table: str, tmp_path: Path, capsys: Any) -> None:
    old = read_systems([table])
    both = read_systems([f"old={table}", f"new={table}"])
    assert [system.key for system in both] == [f"{name}/{system.key}" for name in ("old", "new") for system in old]
    assert all(len(system.results) == 1 for system in both)
    assert list(curves(both, "dal")) == ["old/soft", "old/milk", "old/wait-k", "new/soft", "new/milk", "new/wait-k"]
    for inputs in ([table, table], [f"a={table}", f"a={table}"], [table, Path(table).with_suffix(".json")]):
        assert plot("plane", *inputs, "--out", tmp_path / "plane.svg") == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert re.search("soft with seed 1 appears twice, in .*results.csv and .*results", line)


def test_other_seeds_of_another_table_are_seeds(table: str, tmp_path: Path) -> None:
    more, _ = write_results([result._replace(seed=2) for result in read_results(table)], tmp_path)
    assert [len(system.results) for system in read_systems([table, str(more)])] == [2] * len(read_systems([table]))


def test_tables_are_of_one_subset_together(tmp_path: Path) -> None:
    """Although in each table another subset is the most frequent."""

    def rows(folder: str, subset: str, count: int) -> str:
        made = [stand_in.result(setting=f"latency-weight={n}", log=f"x/generate-{subset}.jsonl") for n in range(count)]
        (tmp_path / folder).mkdir()
        return f"{folder}={write_results(made, tmp_path / folder)[0]}"

    tables = [rows("a", "test", 2), rows("b", "valid", 3)]
    assert {system.name for system in read_systems(tables)} == {"b/milk"}
    assert {system.name for system in read_systems(tables, "test")} == {"a/milk"}


def test_names_of_generations(logs: List[str]) -> None:
    """'SYSTEM SETTING' names a point of a curve; the same name twice means two seeds."""
    systems = read_systems([f"milk λ=0.1={logs[0]}", f"milk λ=0.2={logs[1]}", f"soft={logs[0]}", f"soft={logs[1]}"])
    assert [(system.label, len(system.results)) for system in systems] == [
        ("milk λ=0.1", 1),
        ("milk λ=0.2", 1),
        ("soft", 2),
    ]
    assert [len(points) for points in curves(systems, "dal").values()] == [2, 1]


def test_generations_are_measured_as_by_score(logs: List[str]) -> None:
    result = read_systems([logs[0]])[0].results[0]
    mean = corpus_latency(stand_in.records(3)).mean
    assert (result.dal, result.al, result.ap) == pytest.approx((mean.DAL, mean.AL, mean.AP))
    assert result.dal_low < result.dal < result.dal_high and result.latency_signature == PAPER.signature()
    assert result.bleu_low <= result.bleu <= result.bleu_high


@pytest.mark.parametrize(
    "paths, names",
    [
        (["a/milk/out.jsonl", "a/wait-4/out.jsonl"], ["milk", "wait-4"]),
        (["milk.jsonl", "wait.log"], ["milk", "wait"]),
        (["a/b/out.jsonl", "a/out.jsonl"], ["b/out", "out"]),
        (["a/x/1/out.jsonl", "a/y/2/out.jsonl"], ["x/1", "y/2"]),
        (["a/out.jsonl"], ["out"]),
        ([], []),
    ],
)
def test_distinct_names(paths: List[str], names: List[str]) -> None:
    assert distinct_names(paths) == names


def test_seeds_give_the_mean_and_their_range() -> None:
    (system,) = group([stand_in.result(seed=1, bleu=30, dal=5), stand_in.result(seed=2, bleu=32, dal=6)])
    (point,) = curves([system], "dal")["milk"]
    assert point == (5.5, 31, "λ=0.1", (5, 6), (30, 32))
    (one,) = curves(group([stand_in.result(bleu=30, dal=5)]), "al")["milk"]
    assert one == (4, 30, "λ=0.1", None, (29.2, 30.9))


@pytest.mark.parametrize("latency", LATENCIES)
def test_every_latency_has_its_interval(latency: str, logs: List[str]) -> None:
    (system,) = read_systems([f"milk={logs[0]}"])
    (point,) = curves([system], latency)["milk"]
    assert point.latency_range is not None
    low, high = point.latency_range
    assert low < point.latency < high


def test_an_older_table_has_no_intervals_of_al(tmp_path: Path) -> None:
    """A table written before these columns existed can be read."""
    table, _ = write_results([stand_in.result(al_low=1.0, al_high=9.0)], tmp_path)
    (point,) = curves(read_systems([str(table)]), "al")["milk"]
    assert point.latency_range == (1.0, 9.0)
    lines = table.read_text(encoding="utf-8").splitlines()
    old = lines[0].split(",").index("al_low")  # the first of the columns that came later
    table.write_text("\n".join(",".join(line.split(",")[:old]) for line in lines), encoding="utf-8")
    (point,) = curves(read_systems([str(table)]), "al")["milk"]
    assert point.latency_range is None and point.quality_range is not None


@pytest.mark.parametrize("latency", LATENCIES)
def test_the_shipped_table_can_be_plotted(latency: str, tmp_path: Path) -> None:
    table, out = Path(__file__).parents[2] / "examples" / "multi30k" / "results" / "results.csv", tmp_path / "plane.svg"
    assert plot("plane", table, "--latency", latency, "--out", out) == 0
    text = out.read_text(encoding="utf-8")
    assert all(f">{name}<" in text for name in ("MILk", "wait-k", LATENCIES[latency]))


def test_the_table_of_a_study_can_be_plotted(tmp_path: Path) -> None:
    """By a column that sweeps do not have."""
    table, out = Path(__file__).parents[2] / "examples" / "verb_final" / "results" / "study.csv", tmp_path / "plane.svg"
    assert plot("plane", table, "--quality", "exact", "--out", out) == 0
    text = out.read_text(encoding="utf-8")
    assert all(f">{name}<" in text for name in ("MILk", "wait-k", "exact", "λ=0.12", "k=4", "oracle"))
    assert plot("plane", table, "--quality", "nothing", "--out", out) == 2


def test_systems_without_figures_are_not_on_the_plane() -> None:
    assert curves(group([stand_in.result(bleu=float("nan"))]), "dal") == {}


def test_comparable_systems() -> None:
    """By default, MILk in the middle of its range and the system whose lag is nearest to it."""
    systems = group(
        [stand_in.result("soft", "", dal=6.1)]
        + [stand_in.result("milk", f"latency-weight={dal / 10}", dal=dal) for dal in (9.0, 6.0, 3.0)]
        + [stand_in.result("wait-k", f"wait-k={dal}", dal=dal) for dal in (2.0, 5.95, 9.0)]
    )
    assert [system.key for system in comparable(systems)] == ["milk-latency-weight=0.6", "wait-k-wait-k=5.95"]
    assert [system.label for system in choose(systems, ["soft", "milk λ=0.6"])] == ["soft", "milk λ=0.6"]


def test_schedule_of_chosen_systems(table: str, tmp_path: Path) -> None:
    out = tmp_path / "schedule.svg"
    names = ["milk-latency-weight=0.05", "wait-k-wait-k=4", "soft"]
    assert plot("schedule", table, "--sentence", 0, "--show", *names, "--out", out) == 0
    text = out.read_text(encoding="utf-8")
    assert all(f">{label}<" in text for label in ("MILk λ=0.05", "wait-k k=4", "soft"))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["plane", "TABLE", "--out", "x.gif"], "--out must end in .png or .svg or .pdf, got x.gif"),
        (["plane", "TABLE", "--out", "nowhere/x.png"], "there is no folder nowhere"),
        (["plane", "nothing.jsonl", "--out", "x.png"], "nothing.jsonl: No such file"),
        (["plane", "nothing.csv", "--out", "x.png"], "nothing.csv cannot be read"),
        (["schedule", "TABLE", "--sentence", "999", "--out", "x.png"], "--sentence 999: .* has the sentences 0 to 11"),
        (["delays", "TABLE", "--show", "milk", "--out", "x.png"], "--show milk: .* there are soft, milk-latency"),
    ],
)
def test_faults_are_reported_in_a_sentence(
    arguments: List[str], message: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert plot(*(table if word == "TABLE" else word for word in arguments)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fairseq-milk plot: ")
    assert re.search(message, line), line


def test_an_empty_table_and_missing_logs_are_reported(tmp_path: Path, capsys: Any) -> None:
    write_results([], tmp_path)
    assert plot("plane", tmp_path / "results.csv", "--out", tmp_path / "x.png") == 2
    write_results([stand_in.result(log=str(tmp_path / "gone.jsonl"))], tmp_path)
    assert plot("delays", tmp_path / "results.csv", "--out", tmp_path / "x.png") == 2
    assert plot("delays", tmp_path / "results.csv", "--show", "milk λ=0.1", "--out", tmp_path / "x.png") == 2
    empty, missing, named = capsys.readouterr().err.splitlines()
    assert "there are no results" in empty and "not here" in missing and "gone.jsonl: No such file" in named
