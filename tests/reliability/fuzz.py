"""The long run of `tests.support.fuzzing`: thousands of damaged and hostile files of every kind, and of flipped bits.

    python -m tests.reliability.fuzz [--cases 20000] [--flips 5000] [--seed 1] [--only checkpoint]

A long run can be made in blocks of different seeds.  Prints for each kind how many files were accepted and refused;
ends with 1 at the first property that does not hold.
"""

import argparse
import collections
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Counter, Dict, Sequence

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support import fuzzing, tiny_models
from tests.support.exported_fuzzing import exported_kinds
from tests.support.exported_models import ExportedModels
from tests.support.fuzzing import Kind

SHARES = {"checkpoint": 0.4, "index": 0.05, "data": 0.05, "dictionary": 0.1, "translations": 0.05}
SHARES.update({"table": 0.05, "sweep": 0.1})
EXPORTED = {"manifest": 0.04, "graph-read": 0.04, "graph-query": 0.04, "graph-write": 0.04}
EXPORTED.update({"symbols": 0.02, "codes": 0.01, "pieces": 0.01})
SHARES.update(EXPORTED)


def make_kinds(folder: Path, wanted: Sequence[str]) -> Dict[str, Kind]:
    """The kinds to test; an exported model is written only if one of them needs it, because that takes a while."""
    kinds = fuzzing.kinds(folder)
    if set(EXPORTED) & set(wanted):
        kinds.update(exported_kinds(ExportedModels(folder).get(tiny_models.Kind("milk")).folder, folder))
    return {name: kind for name, kind in kinds.items() if name in wanted}


def draw_cases(kind: Kind, folder: Path, count: int, number: int) -> Counter[bool]:
    found: Counter[bool] = collections.Counter()

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(content=kind.damaged)
    def run(content: bytes) -> None:
        found[fuzzing.try_case(kind, folder, content)] += 1

    run()
    return found


def flip_bits(kind: Kind, folder: Path, count: int, number: int) -> Counter[bool]:
    """Flip bits; a checkpoint that is accepted must have unchanged parameters."""
    found: Counter[bool] = collections.Counter()
    draw, parameters = random.Random(number), fuzzing.small_state()["model"]
    if kind.reader is fuzzing.read_a_checkpoint:
        (folder / kind.name).write_bytes(kind.sound)
        parameters = fuzzing.read_a_checkpoint(folder / kind.name)["model"]
    for _ in range(count):
        content = fuzzing.flipped(kind.sound, draw.randrange(8 * len(kind.sound)))
        accepted = fuzzing.try_case(kind, folder, content)
        found[accepted] += 1
        if accepted and kind.reader is fuzzing.read_a_checkpoint:
            (folder / kind.name).write_bytes(content)
            assert fuzzing.same_parameters(folder / kind.name, parameters), "changed parameters were accepted"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz every kind of file that is read.")
    parser.add_argument("--cases", type=int, default=20_000, help="files drawn, of all kinds together")
    parser.add_argument("--flips", type=int, default=5_000, help="files with one bit flipped")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=SHARES, nargs="+", default=list(SHARES))
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind_name, kind in make_kinds(folder, args.only).items():
            for what, count, run in (("cases", args.cases, draw_cases), ("flips", args.flips, flip_bits)):
                started = time.process_time()
                try:
                    found = run(kind, folder, round(SHARES[kind_name] * count), args.seed)
                except Exception:
                    traceback.print_exc()
                    failed = True
                    continue
                seconds = time.process_time() - started
                print(
                    f"{kind_name}: {what}: {found[True]} accepted, {found[False]} refused, {seconds:.0f} s", flush=True
                )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
