"""Quality and latency of each system over the seeds, and of the oracle."""

from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from examples.verb_final import recipe
from examples.verb_final.corpus import read_test_set
from examples.verb_final.language import KINDS, Sentence
from examples.verb_final.text import oracle_score
from fairseq_milk.console.errors import RunError
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.latency import PAPER
from fairseq_milk.scoring.records import Record
from fairseq_milk.scoring.table import Result, make_result, read_results
from fairseq_milk.sweep.runs import Run
from fairseq_milk.sweep.score import result_of

MEASURES = ("bleu", "exact", "dal", "al", "ap", *KINDS)  # columns; for a kind, the percentage of exact sentences
ORACLE = "oracle"
BEST = recipe.System(ORACLE, "best possible (oracle)", ORACLE, "", {})
SIGNATURE = PAPER.signature()


class Row(NamedTuple):
    """The results of a system, one per seed.  records: of the first seed, for the pictures."""

    system: recipe.System
    results: List[Result]
    records: List[Record]

    @property
    def seeds(self) -> List[int]:
        return [] if self.system == BEST else [result.seed for result in self.results]

    def figures(self, measure: str) -> List[float]:
        return [result.figure(measure) for result in self.results]

    def mean(self, measure: str) -> float:
        return sum(self.figures(measure)) / len(self.results)

    def range(self, measure: str) -> Tuple[float, float]:
        return min(self.figures(measure)), max(self.figures(measure))

    def exact(self, sentences: Sequence[Sentence]) -> List[bool]:
        return [is_exact(record, sentence) for record, sentence in zip(self.records, sentences)]


class Results(NamedTuple):
    """oracle: the row of the best possible schedule.  rows: the systems in the order of the recipe."""

    sentences: List[Sentence]
    oracle: Row
    rows: List[Row]

    def lag(self, row: Row) -> float:
        """DAL relative to the oracle's."""
        return row.mean("dal") / self.oracle.mean("dal")

    def table(self) -> List[Result]:
        """One row per system and seed, for results.csv."""
        return [result for row in (self.oracle, *self.rows) for result in row.results]


def collect(runs: Sequence[Run]) -> Results:
    """The results of the complete runs, which must share a test set."""
    complete = [run for run in runs if run.is_complete()]
    if not complete:
        raise RunError("there is nothing to report: no run is complete")
    sentences = read_test_set(complete[0].data.parent)
    by_key: Dict[str, List[Run]] = {}
    for run in complete:
        by_key.setdefault(run.key, []).append(run)
    order = [key for key in recipe.systems() if key in by_key]
    return Results(sentences, _oracle(sentences), [_row(by_key[key], sentences) for key in order])


def _row(runs: Sequence[Run], sentences: Sequence[Sentence]) -> Row:
    system = recipe.systems()[runs[0].key]
    records = [read_records(run.results, sentences) for run in runs]
    results = [
        result_of(run)._replace(system=system.family, setting=system.point, further=percentages(of_seed, sentences))
        for run, of_seed in zip(runs, records)
    ]
    return Row(system, results, records[0])


def _oracle(sentences: Sequence[Sentence]) -> Row:
    score = oracle_score(sentences)
    records = list(score.records)
    return Row(BEST, [make_result(score, ORACLE, further=percentages(records, sentences))], records)


def read_records(folder: Path, sentences: Sequence[Sentence]) -> List[Record]:
    """The JSON lines of fairseq-generate."""
    path = folder / "generate-test.jsonl"
    if not path.exists():
        raise RunError(f"there are no results of fairseq-generate in {folder}")
    records = read_generate_log(str(path)).records
    if [tuple(record.source) for record in records] != [sentence.source for sentence in sentences]:
        raise RunError(f"{path} is not a translation of the whole test set")
    return records


def is_exact(record: Record, sentence: Sentence) -> bool:
    """Whether every word is right and EOS was written."""
    return tuple(record.hypothesis) == sentence.target and record.eos_written


def percentages(records: Sequence[Record], sentences: Sequence[Sentence]) -> Dict[str, float]:
    """The percentage of exact sentences, of all and of each kind."""
    exact = [is_exact(record, sentence) for record, sentence in zip(records, sentences)]
    by_kind = {kind: [right for right, s in zip(exact, sentences) if s.kind == kind] for kind in KINDS}
    return {"exact": _percentage(exact), **{kind: _percentage(of_kind) for kind, of_kind in by_kind.items()}}


def _percentage(values: Sequence[bool]) -> float:
    return 100 * sum(values) / len(values) if values else float("nan")


# ---- tables of earlier studies --------------------------------------------------------------------------------------


def read_tables(paths: Sequence[Path]) -> List[Result]:
    """The rows of results.csv files.  If two have the same system and seed, the last one counts."""
    found = {(r.system, r.setting, r.seed): r for path in paths for r in read_results(path)}
    names = {result.system for result in found.values()}
    if ORACLE not in names or not names & {system.family for system in recipe.systems().values()}:
        raise RunError(f"there is no system, or no oracle, in {', '.join(map(str, paths))}")
    return list(found.values())


def from_table(found: Sequence[Result]) -> Results:
    """The results of a table, without sentences, and without systems that are not in the recipe."""

    def row(system: recipe.System) -> Row:
        own = [r for r in found if (r.system, r.setting) == (system.family, system.point)]
        return Row(system, sorted(own, key=lambda result: result.seed), [])

    rows = [row(system) for system in recipe.systems().values()]
    return Results([], row(BEST), [row for row in rows if row.results])


def unknown_systems(found: Sequence[Result]) -> List[str]:
    known = {(system.family, system.point) for system in (BEST, *recipe.systems().values())}
    names = [f"{r.system} {r.setting}".strip() for r in found if (r.system, r.setting) not in known]
    return list(dict.fromkeys(names))
