"""What was measured: each system's quality and latency over the seeds, beside the oracle's."""

import csv
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from examples.verb_final import recipe
from examples.verb_final.corpus import read_test_set
from examples.verb_final.language import KINDS, Sentence
from fairseq_milk.analysis import read_generate_log
from fairseq_milk.console.errors import RunError
from fairseq_milk.scoring import PAPER, Record, corpus_latency
from fairseq_milk.sweep.runs import Run

LATENCIES = ("DAL", "AL", "AP")
MEASURES = ("BLEU", "exact", *LATENCIES, *KINDS)  # a kind: the percentage of its sentences that are exact
ORACLE = "oracle"
BEST = recipe.System(ORACLE, "best possible (oracle)", ORACLE, "", {})
SIGNATURE = PAPER.signature()
Figures = Dict[str, Dict[str, Dict[str, float]]]  # system -> seed -> measure


class Row(NamedTuple):
    """A system.  figures: for each measure, one figure a seed.  records: of the first seed, for the pictures."""

    system: recipe.System
    seeds: List[int]
    figures: Dict[str, List[float]]
    records: List[Record]

    def mean(self, measure: str) -> float:
        return sum(self.figures[measure]) / len(self.figures[measure])

    def range(self, measure: str) -> Tuple[float, float]:
        return min(self.figures[measure]), max(self.figures[measure])

    def exact(self, sentences: Sequence[Sentence]) -> List[bool]:
        return [is_exact(record, sentence) for record, sentence in zip(self.records, sentences)]


class Results(NamedTuple):
    """oracle: the row of the best schedule that is possible; rows: the systems in the order of the recipe."""

    sentences: List[Sentence]
    oracle: Row
    rows: List[Row]

    def lag(self, row: Row) -> float:
        """DAL relative to the oracle's."""
        return row.mean("DAL") / self.oracle.mean("DAL")


def collect(runs: Sequence[Run]) -> Results:
    """The complete ones among the runs, which are of one test set."""
    complete = [run for run in runs if run.is_complete()]
    if not complete:
        raise RunError("there is nothing to report: no run is complete")
    sentences = read_test_set(complete[0].data.parent)
    by_key: Dict[str, List[Run]] = {}
    for run in complete:
        by_key.setdefault(run.key, []).append(run)
    order = [key for key in recipe.systems() if key in by_key]
    return Results(sentences, _oracle(sentences), [_row(by_key[key], sentences) for key in order])


def read_figures(paths: Sequence[Path]) -> Figures:
    """Of the tables of `tables.as_csv`.  Where two have the same system and seed, the last one counts."""
    found: Figures = {}
    for path in paths:
        try:
            for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
                figures = {measure: float(line[measure]) for measure in MEASURES}
                found.setdefault(line["system"], {})[line["seed"]] = figures
        except (OSError, KeyError, ValueError) as error:
            raise RunError(f"{path} is no results.csv of a study: {error}") from error
    if ORACLE not in found or not set(recipe.systems()) & set(found):
        raise RunError(f"there is no system, or no oracle, in {', '.join(map(str, paths))}")
    return found


def from_figures(found: Figures) -> Results:
    """Without sentences, and without systems that the recipe does not have."""

    def row(system: recipe.System) -> Row:
        by_seed = sorted(found[system.key].items(), key=lambda item: int(item[0] or 0))
        seeds = [int(seed) for seed, _ in by_seed if seed]
        return Row(system, seeds, {measure: [of_seed[measure] for _, of_seed in by_seed] for measure in MEASURES}, [])

    return Results([], row(BEST), [row(system) for key, system in recipe.systems().items() if key in found])


def unknown_systems(found: Figures) -> List[str]:
    return [key for key in found if key != ORACLE and key not in recipe.systems()]


def _row(runs: Sequence[Run], sentences: Sequence[Sentence]) -> Row:
    records = [read_records(run.results, sentences) for run in runs]
    scores = [score(of_seed, sentences) for of_seed in records]
    figures = {measure: [s[measure] for s in scores] for measure in MEASURES}
    return Row(recipe.systems()[runs[0].key], [run.seed for run in runs], figures, records[0])


def _oracle(sentences: Sequence[Sentence]) -> Row:
    records = [Record(i, s.source, s.target, s.delays, s.target) for i, s in enumerate(sentences)]
    return Row(BEST, [], {key: [value] for key, value in score(records, sentences).items()}, records)


def read_records(folder: Path, sentences: Sequence[Sentence]) -> List[Record]:
    """The JSON lines of fairseq-generate."""
    path = folder / "generate-test.jsonl"
    if not path.exists():
        raise RunError(f"fairseq-generate has left nothing in {folder}")
    records = read_generate_log(str(path)).records
    if [tuple(record.source) for record in records] != [sentence.source for sentence in sentences]:
        raise RunError(f"{path} is not a translation of the whole test set")
    return records


def is_exact(record: Record, sentence: Sentence) -> bool:
    """Every word right, and ended."""
    return tuple(record.hypothesis) == sentence.target and record.eos_written


def score(records: Sequence[Record], sentences: Sequence[Sentence]) -> Dict[str, float]:
    """BLEU and percentages of exact sentences, and latency in the paper's convention."""
    import sacrebleu

    hypotheses = [" ".join(record.hypothesis) for record in records]
    references = [" ".join(sentence.target) for sentence in sentences]
    figures = {"BLEU": sacrebleu.corpus_bleu(hypotheses, [references]).score}
    exact = [is_exact(record, sentence) for record, sentence in zip(records, sentences)]
    figures["exact"] = _percentage(exact)
    for kind in KINDS:
        figures[kind] = _percentage([right for right, s in zip(exact, sentences) if s.kind == kind])
    latency = corpus_latency(records, PAPER).mean
    figures.update({name: getattr(latency, name) for name in LATENCIES})
    return figures


def _percentage(values: Sequence[bool]) -> float:
    return 100 * sum(values) / len(values) if values else float("nan")
