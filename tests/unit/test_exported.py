"""Exported folders: tokens and delays as with the checkpoint, without torch or fairseq; damaged folders are refused."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

import pytest
from fairseq.data import Dictionary
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fairseq_milk
from fairseq_milk.attention import ATTENTIONS
from fairseq_milk.console.errors import UserError
from fairseq_milk.functional import wait_k_delay
from fairseq_milk.generation.loading import load_words
from fairseq_milk.live import TextOptions, Translator, exported, exporting
from fairseq_milk.live import manifest as files
from fairseq_milk.live.exported import Graph, load_exported
from fairseq_milk.live.graph_check import check_graph
from fairseq_milk.live.knobs import settings as knob_settings
from fairseq_milk.live.manifest import digest_of
from fairseq_milk.live.rounds import Step, play_round
from fairseq_milk.text.encoders import SentencePiece
from tests.support import fuzzing
from tests.support.exported_fuzzing import exported_kinds
from tests.support.exported_models import WORDS, Exported, ExportedModels
from tests.support.piece_models import TEXT, pieces
from tests.support.sixth_mechanism import SIXTH
from tests.support.tiny_models import FIVE, Kind

pytestmark = pytest.mark.slow  # an export takes seconds
ROOT = Path(__file__).resolve().parents[2]
Tokens = Tuple[List[int], List[int]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> ExportedModels:
    return ExportedModels(tmp_path_factory.mktemp("exported"))


@pytest.fixture
def copy(models: ExportedModels, tmp_path: Path) -> Path:
    """A folder that a test may damage."""
    return Path(shutil.copytree(models.get(Kind("milk")).folder, tmp_path / "model"))


def written(session: Any, source: List[int]) -> Tokens:
    steps = [step for token in source for step in session.push(token)]
    return [step.token for step in steps], [step.delay for step in steps]


def differences(exported: Exported, sentences: int, seed: int = 1) -> int:
    """Sentences with other tokens or delays than the checkpoint's, each under other knobs."""
    translator, checkpoint = load_exported(str(exported.folder)), exported.checkpoint
    assert translator.knobs == checkpoint.knobs
    draw, different = random.Random(seed), 0
    for _ in range(sentences):
        source = [draw.randrange(4, 4 + WORDS) for _ in range(draw.randint(1, 12))] + [2]
        knobs: Dict[str, Any] = {"max_len_b": 5, "min_wait": draw.choice([1, 1, 3])}
        knobs.update(max_writes=draw.choice([0, 0, 1, 2]), early_eos=draw.choice([True, False]))
        if "k" in translator.knobs:
            knobs["k"] = draw.choice([1, 2, 4])
        if "threshold" in translator.knobs:
            knobs["threshold"] = draw.choice([0.1, 0.5, 0.5, 0.7])
        want = written(checkpoint.begin(knob_settings(checkpoint.knobs, knobs)), source)
        different += written(translator.token_session(**knobs), source) != want
    return different


# of the Transformers the graphs that differ; tests/reliability/exported_equality.py has all
TRANSFORMERS = [
    Kind("milk", 2, 1, 2),
    Kind("waitk", 2),
    Kind("mocha", 2),
    Kind("monotonic", 2, 2),
    Kind("milk", 2, 2, 2),
]
KINDS = [*map(Kind, FIVE), *TRANSFORMERS]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_tokens_and_delays_are_those_of_the_checkpoint(models: ExportedModels, kind: Kind) -> None:
    """Under all knobs, without another export."""
    exported = models.get(kind)
    assert load_exported(str(exported.folder)).mechanism == kind.attention
    assert differences(exported, 60) == 0


@pytest.mark.parametrize("heads", [0, 2])
def test_another_lookback_is_exported_as_it_is(models: ExportedModels, heads: int) -> None:
    assert differences(models.get(Kind("Bernoulli x mean", heads)), 60) == 0


def test_a_schedule_without_a_rule_is_not_exported() -> None:
    """Neither wait-k nor a threshold: it would be taken for one that reads everything."""
    model = Kind("two by two x mean").build()
    with mock.patch.dict(ATTENTIONS, {"two-by-two": SIXTH["two by two x mean"]}):
        with pytest.raises(UserError, match="some.pt cannot be exported: .* schedule TwoByTwo"):
            exporting.check_model(model, "some.pt")


def test_int8_is_close(models: ExportedModels) -> None:
    """Random weights are the worst case: most sentences still agree, and every translation ends."""
    exact, small = models.get(Kind("milk")), models.get(Kind("milk"), int8=True)
    assert differences(small, 60) < 45
    sizes = [sum(path.stat().st_size for path in one.folder.glob("*.onnx")) for one in (small, exact)]
    assert sizes[0] < 1.5 * sizes[1]  # of a tiny model the graph itself is most


def test_wait_k_counts_as_training_does(models: ExportedModels) -> None:
    from fairseq_milk.live.exported_session import ExportedSession

    translator = load_exported(str(models.get(Kind("waitk")).folder))
    session = translator.token_session(k=3)
    assert isinstance(session, ExportedSession)
    for rate in ("1", "1.1", "0.3", "2.5", "1e-3"):
        session.model.rate = type(session.model.rate)(rate)
        for i in range(1, 40):
            session.i, session.source_read = i, wait_k_delay(3, i, float(rate))
            assert session._stops()
            session.source_read -= 1
            assert not session._stops()


def test_threads_share_one_translator(models: ExportedModels) -> None:
    translator = fairseq_milk.load(models.get(Kind("milk")).folder)
    sentences = [" ".join(f"w{(n * 7 + j) % WORDS}" for j in range(9)) for n in range(8)]
    alone = [translator.translate(sentence, max_len_b=5) for sentence in sentences]
    together: List[Any] = [None] * len(sentences)

    def work(index: int) -> None:
        for _ in range(5):
            together[index] = translator.translate(sentences[index], max_len_b=5)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(sentences))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def knobs_drawn(draw: random.Random, knobs: Dict[str, Any]) -> Dict[str, Any]:
    drawn: Dict[str, Any] = {"max_len_b": 5, "max_writes": draw.choice([0, 1]), "early_eos": draw.choice([True, False])}
    if "threshold" in knobs:
        drawn["threshold"] = draw.choice([0.1, 0.5, 0.7])
    return drawn


@pytest.mark.parametrize("mechanism", FIVE)
def test_sessions_in_one_batch_write_what_each_writes_alone(models: ExportedModels, mechanism: str) -> None:
    """Sources and states of different lengths, and sessions that come and go."""
    translator, draw = load_exported(str(models.get(Kind(mechanism)).folder)), random.Random(4)
    sources = [[draw.randrange(4, 4 + WORDS) for _ in range(draw.randint(1, 9))] + [2] for _ in range(8)]
    knobs = [knobs_drawn(draw, translator.knobs) for _ in sources]
    want = [written(translator.token_session(**one), source) for one, source in zip(knobs, sources)]
    steps: List[Step[Any]] = [
        Step(partial(lambda one, source: (translator.token_session(**one), source), one, source), lambda steps: steps)
        for one, source in zip(knobs, sources)
    ]
    runs = count_runs(translator._model.graphs["write"])  # type: ignore[attr-defined]
    waiting, late = steps[:5], steps[5:]
    while waiting:
        waiting = play_round(waiting) + late[:1]
        del late[:1]
    found = [([one.token for one in step.written], [one.delay for one in step.written]) for step in steps]
    assert found == want
    assert runs[0] < sum(len(tokens) for tokens, _ in want)


def count_runs(graph: Any) -> List[int]:
    runs, run = [0], graph.run

    def counted(state: Any) -> Any:
        runs[0] += 1
        return run(state)

    graph.run = counted
    return runs


def test_int8_sessions_are_not_batched(models: ExportedModels) -> None:
    """One scale is chosen for a whole batch, so a sentence would depend on the others."""
    for int8, batches in ((False, 1), (True, 2)):
        translator = load_exported(str(models.get(Kind("milk"), int8=int8).folder))
        one, other = translator.token_session(), translator.token_session()
        assert len({one.batch, other.batch}) == batches


ABSENT = """
import importlib.util, sys
ABSENT = ("torch", "fairseq", "onnx", "onnxscript", "hydra", "omegaconf", "matplotlib", "sacrebleu", "yaml")
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ABSENT else real(name, package)
"""
TRANSLATE = """
import fairseq_milk, fairseq_milk.live
translation = fairseq_milk.load(sys.argv[1]).translate(sys.argv[2], max_len_b=5)
assert not set(ABSENT) & set(sys.modules)
print(translation.text, translation.delays)
"""


def without_torch(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a program as if it were in an environment with little more than numpy and onnxruntime."""
    command = [sys.executable, "-c", ABSENT + program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_neither_torch_nor_fairseq_is_needed(models: ExportedModels) -> None:
    folder, sentence = models.get(Kind("milk")).folder, "w1 w2 w3 unheard w4"
    done = without_torch(TRANSLATE, str(folder), sentence)
    want = fairseq_milk.load(folder).translate(sentence, max_len_b=5)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{want.text} {want.delays}".strip()


def test_the_commands_for_a_folder_need_neither_and_the_others_say_what_they_need(models: ExportedModels) -> None:
    folder, command = str(models.get(Kind("milk")).folder), "import fairseq_milk.cli\nsys.exit(fairseq_milk.cli.main())"
    done = without_torch(command, "check", folder)
    assert (done.returncode, done.stderr) == (0, "") and "at once give what each gives alone" in done.stdout
    for verb in ("compare", "sweep"):
        done = without_torch(command, verb, "--help")
        assert done.returncode == 2 and done.stdout == ""
        assert re.fullmatch(rf"fairseq-milk {verb}: this needs \w+, which is not installed: .*\n", done.stderr)


def test_a_folder_with_sentencepiece_gives_what_its_checkpoint_gives(models: ExportedModels, tmp_path: Path) -> None:
    """Words of raw text in, words out: as with the checkpoint and the file beside its data."""
    made, graphs = models.get(Kind("milk")), files.GRAPHS
    (tmp_path / "de.model").write_bytes(pieces())
    whole = SentencePiece((tmp_path / "de.model").read_bytes(), "m")
    known = Dictionary()
    found = sorted({piece for line in TEXT for piece in whole.encode(line).split()})
    for symbol in [*found[1:], *(f"▁{n}" for n in range(WORDS))][:WORDS]:  # one of the text is unknown
        known.add_symbol(symbol)
    languages = SimpleNamespace(source_lang="de", target_lang="en")
    task = SimpleNamespace(cfg=languages, source_dictionary=known, target_dictionary=known)
    folder, traced = tmp_path / "MODEL", {name: (made.folder / f"{name}.onnx").read_bytes() for name in graphs}
    folder.mkdir()
    with mock.patch.object(exporting, "trace", lambda steps, int8: traced):
        exporting.write_folder(folder, made.checkpoint.model, task, str(tmp_path), TextOptions(), False, {})
    translator = fairseq_milk.load(folder)
    of_checkpoint = Translator(made.checkpoint, *load_words(task, str(tmp_path)), translator.languages)
    for line in TEXT[:3]:
        assert translator.translate(line, max_len_b=5) == of_checkpoint.translate(line, max_len_b=5)
        segmented = [piece if piece in known.symbols else known.unk_word for piece in whole.encode(line).split()]
        assert translator.translate(line, max_len_b=5).source == segmented
    with mock.patch.dict(sys.modules, {"sentencepiece": None}):
        refused(folder, "the text of .*MODEL needs sentencepiece: pip install 'fairseq-milk\\[live\\]'")


# ---- a folder is data -------------------------------------------------------------------------------------------


def refused(folder: Path, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as error:
        fairseq_milk.load(folder)
    assert "\n" not in str(error.value)


def change(folder: Path, edit: Callable[[Dict[str, Any]], object], consistent: bool = True) -> None:
    """Edit `model.json`; consistent: also its digest, as an attacker would."""
    fields = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    digest = fields.pop("sha256")
    edit(fields)
    fields["sha256"] = digest_of(fields) if consistent else digest
    (folder / "model.json").write_text(json.dumps(fields), encoding="utf-8")


def replace(folder: Path, name: str, content: bytes) -> None:
    """Exchange a file together with its digest."""
    (folder / name).write_bytes(content)
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change(folder, lambda fields: fields["files"].update({name: entry}))


@pytest.mark.parametrize("name", ["read.onnx", "query.onnx", "write.onnx", "source.json", "target.json", "model.json"])
def test_a_missing_or_damaged_file_is_named(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    refused(copy, name)
    (copy / name).write_bytes(content[: len(content) // 3])
    refused(copy, name)
    (copy / name).unlink()
    refused(copy, f"there is no {name} in it")


def test_links_pipes_and_other_paths_are_refused(copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    shutil.move(str(copy / "source.json"), outside)
    (copy / "source.json").symlink_to(outside)
    refused(copy, "source.json cannot be read: it is a link")
    (copy / "source.json").unlink()
    os.mkfifo(copy / "source.json")
    refused(copy, "source.json is not a regular file")
    (copy / "source.json").unlink()
    shutil.copy(outside, copy / "source.json")
    change(copy, lambda fields: fields["files"].update({"../outside.json": fields["files"]["source.json"]}))
    refused(copy, "its files are .*outside.json")


@pytest.mark.parametrize(
    "edit, sentence",
    [
        (lambda fields: fields.update(format="other"), "is not a model of fairseq-milk export"),
        (lambda fields: fields.update(version=2), "has format version 2, this fairseq_milk reads version 1"),
        (lambda fields: fields.update(mechanism="evil\x1b[2J"), "mechanism 'evil"),
        (lambda fields: fields.update(mechanism=["milk"]), "mechanism"),
        (lambda fields: fields.update(mechanism="milk" * 1000), "mechanism 'milk"),
        (lambda fields: fields.update(learned="yes"), "learned"),
        (lambda fields: fields.update(k=-1), "k -1"),
        (lambda fields: fields.update(rate="1/0"), "wrong values"),
        (lambda fields: fields.update(description="\x1b[2Jboo"), "description"),
        (lambda fields: fields.update(state={"s_h": [1, 2**40]}), "shape"),
        (lambda fields: fields.update(state={"s_h": [2**16] * 4}), "size of 's_h'"),
        (lambda fields: fields.update(state={"s_h": {}}), "shape"),
        (lambda fields: fields.update(state={}), "do not fit each other"),
        (lambda fields: fields.update(unheard_of=1), "unheard_of"),
        (lambda fields: fields.update(tokenizer={"path": "/etc"}), "tokenizer"),
        (lambda fields: fields.pop("files"), "its files are"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(copy: Path, edit: Any, sentence: str) -> None:
    change(copy, edit)
    refused(copy, sentence)


def test_a_changed_manifest_is_noticed(copy: Path) -> None:
    change(copy, lambda fields: fields.update(description="another"), consistent=False)
    refused(copy, "model.json is damaged")
    (copy / "model.json").write_text("[" * 100_000)
    refused(copy, "is not JSON")


def test_swapped_files_are_refused(copy: Path, models: ExportedModels) -> None:
    shutil.copy(models.get(Kind("waitk")).folder / "write.onnx", copy / "write.onnx")
    refused(copy, "write.onnx is damaged or was replaced")
    replace(copy, "write.onnx", (copy / "query.onnx").read_bytes())
    refused(copy, "do not fit each other")
    replace(copy, "write.onnx", (models.get(Kind("milk")).folder / "write.onnx").read_bytes())
    replace(copy, "target.json", json.dumps(["<s>", "<pad>", "</s>", "<unk>", "a"]).encode())
    refused(copy, "do not fit each other")
    replace(copy, "target.json", json.dumps(["<s>", "<pad>", "</s>", "<unk>", "\x1b[2J"]).encode())
    refused(copy, "control characters")


def onnx_with(**parts: Any) -> bytes:
    import onnx
    from onnx import TensorProto, helper

    weight = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    if parts.get("external"):
        weight.ClearField("float_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="/etc/passwd")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    inputs = ["x", parts.get("name", "w")]  # another name: of a tensor that is not there
    node = helper.make_node(parts.get("operator", "Add"), inputs, ["y"], domain=parts.get("domain", ""))
    if parts.get("inner"):
        node.attribute.append(helper.make_attribute("body", helper.make_graph([], "inner", [x], [x])))
    model = helper.make_model(helper.make_graph([node], "g", [x], [y], [weight]))
    if parts.get("functions"):
        model.functions.append(onnx.FunctionProto(name="f"))
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize(
    "parts, reason",
    [
        ({"external": True}, "weights from another file"),
        ({"operator": "Loop"}, "the operator 'Loop'"),
        ({"domain": "com.evil"}, "not ONNX's own"),
        ({"inner": True}, "graphs within graphs"),
        ({"functions": True}, "functions of its own"),
    ],
)
def test_a_graph_that_reaches_further_is_refused(copy: Path, parts: Dict[str, Any], reason: str) -> None:
    check_graph(onnx_with(), "plain")
    replace(copy, "read.onnx", onnx_with(**parts))
    refused(copy, f"read.onnx is not a graph of fairseq-milk export: .*{reason}")


def test_onnxruntime_s_own_format_is_refused(
    models: ExportedModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not protobuf: a file that is valid in both formats would be checked in one and run in the other."""
    import onnxruntime

    options, path = onnxruntime.SessionOptions(), tmp_path / "query.ort"
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(str(models.get(Kind("milk")).folder / "query.onnx"), options)
    content = path.read_bytes()
    assert content[4:8] == b"ORTM"
    with pytest.raises(UserError, match="is not a graph of fairseq-milk export"):
        Graph(content, "query.onnx")
    with pytest.raises(UserError, match="it has 0 graphs"):
        check_graph(b"", "empty")
    monkeypatch.setattr(exported, "check_graph", lambda content, name: None)
    with pytest.raises(UserError, match="onnxruntime cannot use query.onnx"):
        Graph(content, "query.onnx")


def test_onnxruntime_prints_nothing_of_a_file(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    replace(copy, "read.onnx", onnx_with(name="\x1b[2J"))
    with pytest.raises(UserError) as error:
        fairseq_milk.load(copy)
    assert str(error.value).isprintable() and capfd.readouterr() == ("", "")


def test_a_graph_that_fails_in_the_middle_of_a_sentence(models: ExportedModels) -> None:
    session = load_exported(str(models.get(Kind("milk")).folder)).session()
    session.push("w1")
    state: Dict[str, Any] = session.token_session.state  # type: ignore[attr-defined]
    name = next(name for name in state if name.startswith("s_"))
    state[name] = state[name][:0]
    with pytest.raises(UserError, match="query.onnx cannot be run|write.onnx cannot be run"):
        session.end()


FUZZED = ("manifest", "graph-read", "graph-query", "graph-write", "symbols", "codes", "pieces")
FLIPS = 10


@pytest.fixture(scope="module")
def fuzzed(models: ExportedModels, tmp_path_factory: pytest.TempPathFactory) -> Tuple[Path, Dict[str, fuzzing.Kind]]:
    folder = tmp_path_factory.mktemp("fuzz")
    return folder, exported_kinds(models.get(Kind("milk")).folder, folder)


@pytest.mark.parametrize("name", FUZZED)
@settings(suppress_health_check=list(HealthCheck), max_examples=25)
@given(case=st.data())
def test_a_changed_folder_is_read_or_refused(
    name: str, fuzzed: Tuple[Path, Dict[str, fuzzing.Kind]], case: st.DataObject
) -> None:
    folder, kinds = fuzzed
    fuzzing.try_case(kinds[name], folder, case.draw(kinds[name].damaged))


@pytest.mark.parametrize("name", FUZZED)
def test_a_flipped_bit_with_a_digest_that_fits(name: str, fuzzed: Tuple[Path, Dict[str, fuzzing.Kind]]) -> None:
    folder, kinds = fuzzed
    kind, draw = kinds[name], random.Random(1)
    assert fuzzing.try_case(kind, folder, kind.sound)
    for _ in range(FLIPS):
        fuzzing.try_case(kind, folder, fuzzing.flipped(kind.sound, draw.randrange(8 * len(kind.sound))))


def test_bytes_that_are_no_graph(models: ExportedModels) -> None:
    """A file that is cut or changed anywhere is refused with a UserError, or is still a graph."""
    content = (models.get(Kind("milk")).folder / "query.onnx").read_bytes()
    draw = random.Random(1)
    for _ in range(300):
        damaged = bytearray(content[: draw.randrange(len(content))] if draw.random() < 0.5 else content)
        for _ in range(draw.randint(1, 5)):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        try:
            check_graph(bytes(damaged), "damaged")
        except UserError as error:
            assert "\n" not in str(error)
