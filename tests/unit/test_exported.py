"""An exported folder: the tokens and delays of its checkpoint without torch or fairseq, and what is refused."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

import fairseq_milk
from fairseq_milk.console.errors import UserError
from fairseq_milk.functional import wait_k_delay
from fairseq_milk.live.exported import load_exported
from fairseq_milk.live.graph_check import check_graph
from fairseq_milk.live.knobs import settings
from fairseq_milk.live.manifest import digest_of
from tests.support.exported_models import WORDS, Exported, ExportedModels
from tests.support.tiny_models import FIVE

ROOT = Path(__file__).resolve().parents[2]
Tokens = Tuple[List[int], List[int]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> ExportedModels:
    return ExportedModels(tmp_path_factory.mktemp("exported"))


@pytest.fixture
def copy(models: ExportedModels, tmp_path: Path) -> Path:
    """A folder that a test may damage."""
    return Path(shutil.copytree(models.get("milk").folder, tmp_path / "model"))


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
        want = written(checkpoint.begin(settings(checkpoint.knobs, knobs)), source)
        different += written(translator.token_session(**knobs), source) != want
    return different


@pytest.mark.parametrize("mechanism", FIVE)
def test_tokens_and_delays_are_those_of_the_checkpoint(models: ExportedModels, mechanism: str) -> None:
    """Under all knobs, without another export."""
    exported = models.get(mechanism)
    assert load_exported(str(exported.folder)).mechanism == mechanism
    assert differences(exported, 60) == 0


def test_int8_is_close(models: ExportedModels) -> None:
    """Random weights are the worst case: most sentences agree all the same, and every one comes to an end."""
    exact, small = models.get("milk"), models.get("milk", int8=True)
    assert differences(small, 60) < 45
    sizes = [sum(path.stat().st_size for path in one.folder.glob("*.onnx")) for one in (small, exact)]
    assert sizes[0] < 1.5 * sizes[1]  # of a tiny model the graph itself is most


def test_wait_k_counts_as_training_does(models: ExportedModels) -> None:
    from fairseq_milk.live.exported import ExportedSession

    translator = load_exported(str(models.get("waitk").folder))
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
    translator = fairseq_milk.load(models.get("milk").folder)
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


WITHOUT = """
import importlib.util, sys
ABSENT = ("torch", "fairseq", "onnx", "onnxscript", "hydra", "omegaconf", "matplotlib")
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ABSENT else real(name, package)
import fairseq_milk, fairseq_milk.live
translation = fairseq_milk.load(sys.argv[1]).translate(sys.argv[2], max_len_b=5)
assert not set(ABSENT) & set(sys.modules)
print(translation.text, translation.delays)
"""


def test_neither_torch_nor_fairseq_is_needed(models: ExportedModels) -> None:
    folder, sentence = models.get("milk").folder, "w1 w2 w3 unheard w4"
    command = [sys.executable, "-c", WITHOUT, str(folder), sentence]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    want = fairseq_milk.load(folder).translate(sentence, max_len_b=5)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{want.text} {want.delays}".strip()


# ---- a folder is data -------------------------------------------------------------------------------------------


def refused(folder: Path, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as error:
        fairseq_milk.load(folder)
    assert "\n" not in str(error.value)


def change(folder: Path, edit: Callable[[Dict[str, Any]], object], consistent: bool = True) -> None:
    """Edit `model.json`; consistent: with a digest that fits, as an attacker would write it."""
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
    refused(copy, "source.json cannot be read")
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
        (lambda fields: fields.update(mechanism="evil"), "mechanism 'evil'"),
        (lambda fields: fields.update(learned="yes"), "learned"),
        (lambda fields: fields.update(k=-1), "k -1"),
        (lambda fields: fields.update(rate="1/0"), "wrong values"),
        (lambda fields: fields.update(description="\x1b[2Jboo"), "description"),
        (lambda fields: fields.update(state={"s_h": [1, 2**40]}), "shape"),
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
    shutil.copy(models.get("waitk").folder / "write.onnx", copy / "write.onnx")
    refused(copy, "write.onnx is damaged or was exchanged")
    replace(copy, "write.onnx", (copy / "query.onnx").read_bytes())
    refused(copy, "do not fit each other")
    replace(copy, "write.onnx", (models.get("milk").folder / "write.onnx").read_bytes())
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
    node = helper.make_node(parts.get("operator", "Add"), ["x", "w"], ["y"], domain=parts.get("domain", ""))
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


def test_bytes_that_are_no_graph(models: ExportedModels) -> None:
    """Cut anywhere, or changed anywhere, a file is refused in a sentence or is a graph: it never does anything else."""
    content = (models.get("milk").folder / "query.onnx").read_bytes()
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
