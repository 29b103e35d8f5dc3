"""An exported model: its start, its memory, and its time per token against the streaming session of its checkpoint."""

import json
import random
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

from benchmarks.build import Shape, build_model
from benchmarks.harness import Bar, Check, Outcome, Row, Size, compare, run_command
from fairseq_milk.generation import DecodingOptions, StreamingSession
from fairseq_milk.live import TextOptions
from fairseq_milk.live.exported import load_exported
from fairseq_milk.live.exporting import write_folder

LENGTH = 25  # tokens of a sentence
FIRST_WORD = """
import json, resource, sys, time
from pathlib import Path
import fairseq_milk.live
translator = fairseq_milk.live.load(sys.argv[1])
session = translator.session()
while not session.push("w1"):
    pass
status = Path("/proc/self/status")  # getrusage would count the memory of the parent at the time of the fork
lines = status.read_text().splitlines() if status.exists() else []
peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
peak = peaks[0] if peaks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"cpu": time.process_time(), "peak": peak / 1024, "torch": "torch" in sys.modules}))
"""


def exported(model: Any, folder: Path, int8: bool) -> str:
    languages = SimpleNamespace(source_lang="de", target_lang="en")
    task = SimpleNamespace(
        source_dictionary=model.encoder.dictionary, target_dictionary=model.decoder.dictionary, cfg=languages
    )
    folder.mkdir()
    write_folder(folder, model, task, "", TextOptions(), int8, {})
    return str(folder)


def sentence(begin: Callable[[], Any], source: List[int]) -> Callable[[], int]:
    """Translate the source token by token; the number of tokens written."""

    def step() -> int:
        session = begin()
        return sum(len(session.push(token)) for token in source)

    return step


def measure(size: Size) -> Outcome:
    """A model of Multi30k's size that writes a token for every token it reads."""
    shape = Shape(B=1, J=0, words=size.pick(8000, 200), hidden=size.pick(256, 32))
    model = build_model("milk", shape, energy_bias=5.0).eval()
    draw = random.Random(1)
    source = [draw.randrange(4, shape.words) for _ in range(LENGTH)] + [2]
    options = DecodingOptions(min_len=LENGTH, max_len_a=0.0, max_len_b=LENGTH)
    with tempfile.TemporaryDirectory() as scratch:
        folders = {name: exported(model, Path(scratch) / name, name == "int8") for name in ("float32", "int8")}
        variants = {"streaming session": sentence(lambda: StreamingSession(model, options), source)}
        for name, folder in folders.items():
            variants[name] = sentence(partial(begin, load_exported(folder), options), source)
        written = {name: step() for name, step in variants.items()}
        assert len(set(written.values())) == 1, written
        times = compare(variants, size)
        runs = [_first_word(folders["float32"]) for _ in range(size.pick(3, 1))]
    checks = [
        Check("import to the first word, CPU", statistics.median(run["cpu"] for run in runs), Bar("<", 1.0), "s"),
        Check("its peak memory", max(run["peak"] for run in runs), Bar("<", 150), "MB"),
        *times.check("float32", "streaming session", Bar("<=", 1.0)),
        *times.check("int8", "streaming session", Bar("<=", 0.5)),
    ]
    return Outcome(checks, times.figures(), f"sentences of {LENGTH} tokens; torch imported: {runs[0]['torch']}")


def begin(translator: Any, options: DecodingOptions) -> Any:
    session = translator.token_session()
    session.options = options
    return session


def _first_word(folder: str) -> Dict[str, Any]:
    result: Dict[str, Any] = json.loads(run_command(sys.executable, "-c", FIRST_WORD, folder).output.splitlines()[-1])
    return result


ROWS: List[Row] = [Row("live", "an exported model: start, memory, time per sentence", "the streaming session", measure)]
