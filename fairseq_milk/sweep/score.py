"""Scores complete runs and writes the table of a sweep."""

from pathlib import Path
from typing import Any, List, Sequence

from ..console.errors import RunError, UserError
from ..console.files import digest, read_json, write_atomically
from ..console.locks import locked
from ..scoring.collapse import collapse_of
from ..scoring.score import Metrics, score_file
from ..scoring.table import Result, as_json, make_result, read_results, write_results
from ..scoring.texts import read_references
from .runs import Run


def update_table(runs: Sequence[Run], out: Path) -> List[Result]:
    """Write the table of the complete runs.  A lock keeps parallel sweeps from overwriting each other's rows."""
    out.mkdir(parents=True, exist_ok=True)
    with locked(out / ".results.lock"):
        results = [result_of(run) for run in runs if run.is_complete()]
        write_results(results, out)
    return results


def result_of(run: Run) -> Result:
    """The row of a run: its score, with the times and versions that the job has recorded."""
    try:
        trained, done = read_json(run.trained.folder / "trained.json") or {}, read_json(run.folder / "done.json") or {}
        return _scored(run)._replace(
            system=run.system,
            setting=run.setting,
            seed=run.seed,
            train_seconds=float(trained.get("seconds", "nan")),  # nan if the command was run by hand
            generate_seconds=float(done.get("seconds", "nan")),
            warm_start=run.trained.before.name if run.trained.before else "",
            checkpoint=str(run.model),
            log=str(run.summary.with_suffix(".jsonl")),
            commit=", ".join(dict.fromkeys(record["commit"] for record in (trained, done) if "commit" in record)),
        )
    except (OSError, LookupError, TypeError, ValueError, AttributeError):
        where = f"the results in {run.results} are damaged"
        raise RunError(f"{where}: remove {run.folder / 'done.json'} to decode again") from None


def _scored(run: Run) -> Result:
    """The score of a run, cached beside its results.

    It is computed again, with the same seed, for other references or if this version has other columns.
    """
    asked = [read_references(run.references) if run.references else None, *Result._fields]
    kept = run.results / f"score-{digest(asked)}.json"
    try:
        (found,) = read_results(kept)
    except ValueError:  # not written yet, or damaged
        found = _score(run, read_json(run.summary))
        write_atomically(kept, as_json([found], run.results))
    return found


def _score(run: Run, summary: Any) -> Result:
    bleu, latency = (summary[name]["signature"] if summary[name] else "" for name in ("BLEU", "latency"))
    metrics = Metrics.from_signatures(bleu, latency)
    try:
        score = score_file(str(run.summary.with_suffix(".jsonl")), metrics, run.references)
    except UserError as error:  # the references are those of other sentences
        raise RunError(f"{run.name}: {error}") from None
    return make_result(score, run.system, collapse=collapse_of(score.records, summary.get("attention")))
