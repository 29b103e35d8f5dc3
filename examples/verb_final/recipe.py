"""The corpus, the options that all systems share, and the options of each system.

Every hyper-parameter is a constant here.  Options are those of the stock commands fairseq-preprocess,
`fairseq-train` and `fairseq-generate`; a value of None makes a flag without value.
"""

from fnmatch import fnmatchcase
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

Options = Mapping[str, Union[str, int, float, None]]

# ---- the corpus: sentences of each split, drawn with the seed -------------------------------------------------------

SIZES = {"train": 20000, "valid": 500, "test": 1000}
DATA_SEED = 4

# ---- the model and its training -------------------------------------------------------------------------------------

UPDATES = 1500
CHECKPOINT = "checkpoint_best.pt"  # the lowest loss under the hard schedule; or checkpoint_last.pt
TRAIN: Options = {
    "--task": "simultaneous_translation",
    "--arch": "milk_rnmt_tiny",
    "--criterion": "latency_augmented_label_smoothed_cross_entropy",
    "--label-smoothing": 0,
    "--optimizer": "adam",
    "--lr": 5e-3,
    "--lr-scheduler": "polynomial_decay",  # linearly to zero, a little after the end
    "--total-num-update": 1600,
    "--warmup-updates": 100,
    "--clip-norm": 1.0,
    "--batch-size": 128,
    "--max-update": UPDATES,
    "--validate-interval-updates": 250,
    "--validate-interval": 10**6,  # epochs: not at their ends as well
    "--save-interval-updates": 250,  # the largest number of updates that an interrupted training loses
    "--save-interval": 10**6,
    "--keep-interval-updates": 1,
    "--no-epoch-checkpoints": None,
    "--num-workers": 0,
    "--log-interval": 10,
    "--log-format": "json",
    "--cpu": None,
}
GENERATE: Options = {
    "--task": "simultaneous_translation",
    "--gen-subset": "test",
    "--batch-size": 100,
    "--beam": 1,
    "--num-workers": 0,
    "--write-attention": None,
    "--cpu": None,
}
PREPROCESS: Options = {"--source-lang": "de", "--target-lang": "en", "--workers": 1}

# ---- the learned heads: begin by waiting, then let the latency term pull the head forward ---------------------------

LAMBDA = 0.12  # for the other mechanisms and the ablations; one of LAMBDAS
LAMBDAS = (0.05, 0.1, 0.12, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0)
NOISE = 4
NOISES = (0, 1, 2, 4, 6)  # NOISE among them is the system milk-LAMBDA
HEAD: Options = {
    "--noise": NOISE,
    "--noise-ramp": UPDATES,
    "--head-after": 0,
    "--energy-bias": -6,
    "--head-pace": 5,
    "--latency-weight": LAMBDA,
    "--latency-after": 350,
    "--latency-ramp": 100,
}
KS = (1, 2, 3, 4, 6, 8, 12, 14)
CHUNKS = (2, 8)

# ---- the other model family: the same mechanisms in a Transformer ---------------------------------------------------

TRANSFORMER: Options = {"--arch": "milk_transformer_tiny", "--lr": 2e-3, "--warmup-updates": 200}
TRANSFORMER_K = 4


class System(NamedTuple):
    """One row of the table.  key: name of its folders.  family, point: its curve on the plane, and its label there."""

    key: str
    label: str
    family: str
    point: str
    options: Options


def _milk(key: str, label: str, family: str = "MILk", point: str = "", **head: Optional[float]) -> System:
    """head: options of HEAD that differ, with underscores."""
    changes = {"--" + name.replace("_", "-"): value for name, value in head.items()}
    return System(key, label, family, point, {"--attention": "milk", **HEAD, **changes})


def systems() -> Dict[str, System]:
    """All systems of the study, by key, in the order of the table."""
    rows: List[System] = [System("soft", "soft attention (offline)", "soft", "offline", {"--attention": "soft"})]
    for k in KS:
        rows.append(System(f"wait-{k}", f"wait-{k}", "wait-k", f"k={k}", {"--attention": "waitk", "--wait-k": k}))
    for lam in LAMBDAS:
        rows.append(_milk(milk_key(lam), f"MILk, λ = {lam:g}", point=f"λ={lam:g}", latency_weight=lam))
    rows.append(System("monotonic", "monotonic", "monotonic", "", {"--attention": "monotonic", **HEAD}))
    for w in CHUNKS:
        options: Options = {"--attention": "mocha", "--chunk-size": w, **HEAD}
        rows.append(System(f"mocha-{w}", f"MoChA, w = {w}", "MoChA", f"w={w}", options))
    ablation = "MILk ablated"
    rows.append(_milk("milk-published", "MILk, published alignment", ablation, "published", published_alignment=None))
    rows.append(_milk("milk-unpreserved", "MILk, mass not preserved", ablation, "unpreserved", unpreserved_mass=None))
    for n in NOISES:
        if n != NOISE:
            rows.append(_milk(noise_key(n), f"MILk, n = {n:g}", "MILk noise", f"n={n:g}", noise=n))
    return {system.key: system for system in [*rows, *_transformers()]}


def _transformers() -> List[System]:
    """wait-k and MILk at about the same lag, as in the demo."""
    k, lam = TRANSFORMER_K, LAMBDA
    fixed: Options = {"--attention": "waitk", "--wait-k": k, **TRANSFORMER}
    learned: Options = {"--attention": "milk", **HEAD, **TRANSFORMER}
    return [
        System(f"transformer-wait-{k}", f"Transformer, wait-{k}", "Transformer wait-k", f"k={k}", fixed),
        System(f"transformer-{milk_key(lam)}", f"Transformer, MILk, λ = {lam:g}", "Transformer", f"λ={lam:g}", learned),
    ]


def milk_key(lam: float) -> str:
    return f"milk-{lam:g}"


def noise_key(n: float) -> str:
    """The key of the system with noise n; with the default noise it is the default system."""
    return milk_key(LAMBDA) if n == NOISE else f"milk-noise{n:g}"


# ---- how large ------------------------------------------------------------------------------------------------------


class Scale(NamedTuple):
    """sizes: sentences in each split.  options: of fairseq-train, for all systems, overriding the others."""

    sizes: Mapping[str, int]
    options: Options


STUDY = Scale(SIZES, {})

DEMO_SYSTEMS = ("milk-0.12", "wait-4")  # of about the same lag
DEMO = Scale({"train": 20000, "valid": 500, "test": 500}, {})
FAST = Scale(  # every step runs, in seconds, and nothing is learned
    {"train": 600, "valid": 32, "test": 32},
    {
        "--hidden-size": 32,
        "--embed-dim": 32,
        "--energy-dim": 32,
        "--max-update": 30,
        "--latency-after": 10,
        "--validate-interval-updates": 15,
        "--save-interval-updates": 10,
        "--log-interval": 2,
    },
)


def train_options(system: System, scale: Scale) -> Dict[str, Union[str, int, float, None]]:
    return {**TRAIN, **system.options, **scale.options}


def arguments(options: Options) -> List[str]:
    """{'--noise': 2, '--cpu': None} -> ['--noise', '2', '--cpu']."""
    words: List[str] = []
    for name, value in options.items():
        words += [name] if value is None else [name, f"{value:g}" if isinstance(value, float) else str(value)]
    return words


def choose(patterns: Sequence[str]) -> List[System]:
    """The systems whose key matches one of the shell patterns; all without patterns."""
    every = systems()
    chosen = [s for s in every.values() if not patterns or any(fnmatchcase(s.key, p) for p in patterns)]
    if not chosen:
        raise ValueError(f"no system is called {' or '.join(patterns)}; there are {', '.join(every)}")
    return chosen
