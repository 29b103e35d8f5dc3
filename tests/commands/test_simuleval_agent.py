"""The agent in SimulEval's own command: the text and the delays of `fairseq-generate`.

SimulEval runs in this environment if it is there, else in .venv-simuleval (or where SIMULEVAL_PYTHON says).
"""

import importlib.util
import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest

from fairseq_milk.console.errors import UserError
from fairseq_milk.live import TextOptions
from fairseq_milk.live.exporting import export
from fairseq_milk.scoring.generate_log import read_generate_log
from fairseq_milk.scoring.latency import SIMULEVAL, sentence_latency, summarise, to_convention
from fairseq_milk.scoring.records import find_markers
from fairseq_milk.text.subwords import join_words
from tests.support.fairseq_commands import PLUGIN, ROOT, environment, run
from tests.support.tiny_translators import SENTENCES, Translators
from tests.support.torch_features import needs_export

HERE = importlib.util.find_spec("simuleval") is not None
ELSEWHERE = os.environ.get("SIMULEVAL_PYTHON", str(ROOT / ".venv-simuleval" / "bin" / "python"))
PYTHON = sys.executable if HERE else ELSEWHERE
needs_simuleval = pytest.mark.skipif(
    not os.path.exists(PYTHON), reason="SimulEval is not installed (scripts/setup.sh --simuleval)"
)
BY_NAME = ["--agent-class", "fairseq_milk.agents.simuleval.MilkAgent"]
BY_FILE = ["--agent", f"{PLUGIN}/agents/simuleval.py"]


def test_only_the_agent_needs_simuleval() -> None:
    code = "import sys, fairseq_milk.agents, fairseq_milk.cli.stream; sys.exit('simuleval' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment(), cwd=ROOT).returncode == 0


def simuleval(translators: Translators, folder: Path, *arguments: Any) -> List[Dict[str, Any]]:
    """The instances of a run of the command, which sends the test set word by word (it divides by an empty source)."""
    corpus = translators.corpus
    filled = [i for i, line in enumerate(corpus.lines("test", "de")) if line]
    for language in ("de", "en"):
        lines = corpus.lines("test", language, "tok")
        (folder / language).write_text("".join(f"{lines[i]}\n" for i in filled), encoding="utf-8")
    metrics = ["--latency-metrics", "AL", "LAAL", "AP", "DAL"]
    command = [PYTHON, "-c", "from simuleval.cli import main; main()", *metrics, "--output", folder]
    command += ["--source", folder / "de", "--target", folder / "en", "--data-bin", corpus.bin, *arguments]
    changes = environment(PYTHONPATH=str(ROOT))
    done = subprocess.run(list(map(str, command)), env=changes, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "instances.log").read_text().splitlines()]


def test_the_agent_takes_the_options_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The options that error messages of a checkpoint name.  Stand-ins replace SimulEval."""
    names = ("TextToTextAgent", "Action", "ReadAction", "WriteAction")
    stand_in = SimpleNamespace(entrypoint=lambda cls: cls, **{name: type(name, (), {}) for name in names})
    for module in ("simuleval", "simuleval.agents", "simuleval.agents.actions", "simuleval.utils"):
        monkeypatch.setitem(sys.modules, module, stand_in)
    monkeypatch.delitem(sys.modules, "fairseq_milk.agents.simuleval", raising=False)
    agent: Any = importlib.import_module("fairseq_milk.agents.simuleval")
    monkeypatch.delitem(sys.modules, "fairseq_milk.agents.simuleval")
    asked: List[Any] = []

    def load(*arguments: Any) -> Any:
        asked.append(arguments)
        raise UserError("enough")

    monkeypatch.setattr(agent, "load", load)
    parser = ArgumentParser()
    agent.MilkAgent.add_args(parser)
    text = ["--bpe-codes", "codes", "--sentencepiece-model", "pieces"]
    with pytest.raises(UserError, match="enough"):
        agent.MilkAgent(parser.parse_args(["--checkpoint", "x.pt", "--data-bin", "bin", *text]))
    assert asked == [("x.pt", "bin", TextOptions("codes", "pieces"), "cpu")]


@needs_simuleval
@pytest.mark.parametrize(
    "attention, agent, knobs",
    [
        ("milk", BY_NAME, []),
        ("waitk", BY_FILE, ["--decode-k", 4]),
        ("monotonic", BY_NAME, []),
        ("mocha", BY_NAME, []),
        ("soft", BY_NAME, []),
    ],
)
def test_simuleval_sees_what_generate_says(
    translators: Translators,
    tmp_path: Path,
    attention: str,
    agent: List[str],
    knobs: List[Any],
) -> None:
    greedy = ["--beam", 1]  # the agent's, also with soft attention
    run("fairseq-generate", *translators.decoding(attention, *knobs, *greedy, "--results-path", tmp_path))
    records = [r for r in read_generate_log(str(tmp_path / "generate-test.jsonl")).records if r.source]
    markers = find_markers(records)
    checkpoint = ["--checkpoint", translators.checkpoint(attention), "--max-len-b", 10]
    instances = simuleval(translators, tmp_path, *agent, *checkpoint, *knobs)
    assert len(instances) == len(records) == SENTENCES - 1
    for instance, record in zip(instances, records):
        assert instance["prediction"] == join_words(record.hypothesis, markers.target)
        assert instance["delays"] == list(to_convention(record, SIMULEVAL, markers).delays)
    assert len({tuple(instance["delays"]) for instance in instances}) > 1
    scores = (tmp_path / "scores.tsv").read_text().splitlines()
    theirs = dict(zip(scores[0].split(), scores[1].split()))
    ours = summarise(sentence_latency(records, SIMULEVAL, markers), SIMULEVAL).mean
    assert float(theirs["DAL"]) == pytest.approx(ours.DAL, abs=6e-4)


@needs_simuleval
@needs_export
def test_the_agent_takes_an_exported_folder(translators: Translators, tmp_path: Path) -> None:
    """A folder gives the words and delays of its checkpoint."""
    checkpoint = translators.checkpoint("milk")
    results: List[Any] = []
    export(str(checkpoint), str(translators.corpus.bin), str(tmp_path / "MODEL"), TextOptions(), sentences=5)
    for model in (checkpoint, tmp_path / "MODEL"):
        out = tmp_path / f"out-{len(results)}"
        out.mkdir()
        instances = simuleval(translators, out, *BY_NAME, "--checkpoint", model, "--max-len-b", 10)
        results.append([(instance["prediction"], instance["delays"]) for instance in instances])
    assert results[0] == results[1] and len(results[0]) == SENTENCES - 1
