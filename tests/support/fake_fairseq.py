"""Fake fairseq-train and fairseq-generate that take a fraction of a second, for tests of the sweep.

A fake model records how it was made (options, seed, the model it started from) and its number of updates; the fake
BLEU is a digest of the record, so that two runs have the same figures only if they were made alike and completed.  To
be easy to interrupt, the commands write checkpoint_best.pt and the results in two halves with a pause between them.
"""

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

BOTH = '''#!{python} -ISs
import hashlib, json, os, sys, time, zipfile
PAUSE = {pause}

def options(words):
    """{{'--lr': '0.1', '--cpu': True}}"""
    found, words = {{}}, words[2:]
    while words:
        name = words.pop(0)
        found[name] = words.pop(0) if words and not words[0].startswith("--") else True
    return found

def read(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("model"))

def write(path, model):
    with zipfile.ZipFile(path + ".tmp", "w") as archive:
        archive.writestr("model", json.dumps(model))
    os.replace(path + ".tmp", path)

def write_badly(path, content):
    with open(path, "wb") as file:
        file.write(content[: len(content) // 2])
        file.flush()
        time.sleep(PAUSE)
        file.write(content[len(content) // 2 :])

given = options(sys.argv)
'''
TRAIN = """
folder, last_update = given.pop("--save-dir"), int(given["--max-update"])
start, _ = given.pop("--finetune-from-model", None), given.pop("--user-dir")
last, best = os.path.join(folder, "checkpoint_last.pt"), os.path.join(folder, "checkpoint_best.pt")
os.makedirs(folder, exist_ok=True)
if os.path.exists(last):
    model = read(last)
    print("Loaded checkpoint", model["updates"], flush=True)
else:
    model = {"made": [given, read(start) if start else None], "updates": 0}
if "fail" in os.environ.get("FAKE", ""):
    sys.exit("there is no such thing")
while model["updates"] < last_update:
    time.sleep(PAUSE)
    model["updates"] += 1
    figures = {"epoch": 1, "update": model["updates"] / 10, "loss": "2.5", "num_updates": str(model["updates"])}
    print("now | INFO | train_inner |", json.dumps(figures), flush=True)
    write(last, model)
    if model["updates"] % 4 == 0:  # a validation
        write(best, model)
write_badly(best, open(last, "rb").read())
"""
GENERATE = """
folder, model = given.pop("--results-path"), read(given.pop("--path"))
given.pop("--user-dir")
number = int(hashlib.sha256(json.dumps([model, given], sort_keys=True).encode()).hexdigest()[:8], 16)
lengths = [3 + (number >> i) % 7 for i in range(6)]
signature = {"signature": "unit:subword|eos:yes|len:hyp|version:0"}
words, reference = ("a b c d e".split(), "a b c d f".split() * 5)
lines = [{"id": 5 - i, "source": ["w"] * (n - 1), "hypothesis": words * n} for i, n in enumerate(lengths)]
for n, line in zip(lengths, lines):  # everything is read first: DAL is n
    line.update(delays=[n] * (5 * n + 1), reference=reference, text="a b c d e " * n, reference_text="a b c d f " * 5)
latency = {"AP": 0.5, "AL": 2.0, "DAL": sum(lengths) / 6, "measured": 6, "skipped": 0, **signature}
bleu = {"score": number / 2**32 * 100, "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.5.1"}
os.makedirs(folder, exist_ok=True)
base = os.path.join(folder, "generate-" + given.get("--gen-subset", "test"))
write_badly(base + ".jsonl", "".join(json.dumps(line) + "\\n" for line in lines).encode())
write_badly(base + ".json", json.dumps({"sentences": 6, "BLEU": bleu, "latency": latency}).encode())
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, pause: float = 0.0) -> None:
    """Make this process and its children use the fake commands."""
    folder.mkdir()
    for name, body in (("fairseq-train", TRAIN), ("fairseq-generate", GENERATE)):
        path = folder / name
        path.write_text(BOTH.format(python=sys.executable, pause=pause) + body)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))


def write_data(folder: Path, **contents: Any) -> Path:
    """Write a folder that looks like one of fairseq-preprocess."""
    folder.mkdir(exist_ok=True)
    for name in ("dict.de.txt", "dict.en.txt", "train.de-en.de.bin", "valid.de-en.de.bin", "test.de-en.de.bin"):
        (folder / name).write_text(contents.get(name.split(".")[0], name))
    return folder
