"""The row of the table for a run that is complete."""

import fcntl
import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import sacrebleu

from ..console.errors import RunError
from ..console.files import digest, read_json, write_atomically
from ..scoring.bootstrap import corpus_sample, interval, mean_sample
from .runs import Run
from .table import Result, write_results

LATENCIES = ("AP", "AL", "DAL")
NONE: Dict[str, Any] = {"score": None, **dict.fromkeys(LATENCIES), "signature": ""}


def update_table(runs: Sequence[Run], out: Path) -> List[Result]:
    """Write the table of those among the runs that are complete.  Several sweeps at once do not lose each other's."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".results.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        results = [result_of(run) for run in runs if run.is_complete()]
        write_results(results, out)
    return results


def result_of(run: Run) -> Result:
    """From what fairseq-generate and the job have recorded; only the intervals are computed here."""
    try:
        return _result(run, read_json(run.summary))
    except (OSError, LookupError, TypeError, ValueError):
        where = f"{run.results} does not hold what fairseq-generate has left there"
        raise RunError(f"{where}: remove {run.folder / 'done.json'} to decode again") from None


def _result(run: Run, summary: Any) -> Result:
    trained, done = read_json(run.trained.folder / "trained.json") or {}, read_json(run.folder / "done.json") or {}
    bleu, latency = summary["BLEU"] or NONE, summary["latency"] or NONE
    bounds = intervals(run, bleu["signature"])
    return Result(
        system=run.system,
        setting=run.setting,
        seed=run.seed,
        bleu=_figure(bounds["published"] if run.references else bleu["score"]),
        bleu_low=_figure(bounds["BLEU"][0]),
        bleu_high=_figure(bounds["BLEU"][1]),
        dal=_figure(latency["DAL"]),
        dal_low=_figure(bounds["DAL"][0]),
        dal_high=_figure(bounds["DAL"][1]),
        al=_figure(latency["AL"]),
        ap=_figure(latency["AP"]),
        n_sentences=summary["sentences"],
        bleu_signature=bleu["signature"],
        latency_signature=latency["signature"],
        train_seconds=_figure(trained.get("seconds")),
        generate_seconds=_figure(done.get("seconds")),
        warm_start=run.trained.before.name if run.trained.before else "",
        checkpoint=str(run.model),
        log=str(run.summary.with_suffix(".jsonl")),
        commit=", ".join(dict.fromkeys(record["commit"] for record in (trained, done) if "commit" in record)),
        al_low=_figure(bounds["AL"][0]),
        al_high=_figure(bounds["AL"][1]),
        ap_low=_figure(bounds["AP"][0]),
        ap_high=_figure(bounds["AP"][1]),
    )


def intervals(run: Run, bleu_signature: str) -> Dict[str, Any]:
    """95 % of BLEU and of each latency, [None, None] where there is no figure, and BLEU against `references`.

    Kept with the results, with which they go; what was kept for other references, or by an older version, is computed
    again, with the same seed.
    """
    kept = run.results / "intervals.json"
    references = read_references(run.references) if run.references else None
    wanted = {"references": digest(references)}
    found = read_json(kept)
    if isinstance(found, dict) and {"BLEU", *LATENCIES} <= found.keys() and wanted.items() <= found.items():
        return found
    with open(run.summary.with_suffix(".jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    found = {**wanted, "BLEU": [None, None], **{measure: _bounds_of_mean(lines, measure) for measure in LATENCIES}}
    if bleu_signature:
        texts = [(line.get("text") or "", _reference(run, references, line)) for line in lines]
        score, *bounds = interval(corpus_sample(bleu_of(bleu_signature), *zip(*texts)))
        found.update(BLEU=bounds, published=score)
    write_atomically(kept, json.dumps(found) + "\n")
    return found


def read_references(path: Path) -> List[str]:
    """The published text of a test set, a line a sentence."""
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def _reference(run: Run, references: Optional[Sequence[str]], line: Dict[str, Any]) -> str:
    if references is None:
        return str(line["reference_text"])
    if line["id"] >= len(references):
        raise RunError(
            f"{run.references} has no line {line['id'] + 1}: it is not the text of what {run.name} has decoded"
        )
    return references[int(line["id"])]


def _bounds_of_mean(lines: Sequence[Dict[str, Any]], measure: str) -> List[Optional[float]]:
    values = [line.get(measure) for line in lines]
    known = any(value is not None for value in values)
    return [*interval(mean_sample(values))[1:]] if known else [None, None]


def bleu_of(signature: str) -> sacrebleu.BLEU:
    """nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.3.1 -> sacreBLEU's BLEU that has it."""
    parts = dict(part.split(":", 1) for part in signature.split("|"))
    return sacrebleu.BLEU(tokenize=parts["tok"], lowercase=parts["case"] == "lc")


def _figure(value: Any) -> float:
    return float("nan") if value is None else float(value)
