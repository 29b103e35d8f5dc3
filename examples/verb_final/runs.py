"""The runs of the recipe, for the scheduler of `fairseq-milk sweep`.

OUT/data-<hash>/ is the corpus and OUT/<system>-s<seed>/ a run, with the files of fairseq_milk/sweep/runs.py.
"""

from pathlib import Path

from examples.verb_final import recipe
from fairseq_milk.sweep.runs import Run


def make_run(system: recipe.System, seed: int, scale: recipe.Scale, data: Path, out: Path) -> Run:
    """A system with a seed, trained on the data of `corpus.prepare_data`."""
    return Run(
        system=system.key,
        setting="",
        seed=seed,
        train=recipe.arguments(recipe.train_options(system, scale)),
        generate=recipe.arguments(recipe.GENERATE),
        checkpoint=recipe.CHECKPOINT,
        data=data / "bin",
        data_id=data.name,
        out=out,
    )
