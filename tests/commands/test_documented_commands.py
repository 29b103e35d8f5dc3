"""Every command of the documents is read by the parser of its program, and those that can be run here are run.

They run outside the clone, with the package as an installed wheel, on stand-in data with the names that the documents
use.  The commands of README come first; the other documents use the data, the model and the generation that they make.
"""

import ast
import importlib
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import pytest
from fairseq import options as fairseq_options

from fairseq_milk.cli import VERBS, _parser
from fairseq_milk.live.tracing import can_trace
from fairseq_milk.scoring.table import read_results, write_results
from fairseq_milk.sweep.options import check_options, problem
from fairseq_milk.sweep.spec import read_spec
from tests.support import stand_in_sweep
from tests.support.documents import DOCUMENTS, FENCE, ROOT, Block, blocks, commands, statements
from tests.support.installed import Installed, build_wheel, install
from tests.support.stand_in_corpora import pairs
from tests.support.torch_features import needs_export

SHELL, PYTHON, DATA = ("bash", "console"), ("python",), ("json", "yaml")
SHOWN = ("text", "math", "mermaid")  # what a command prints, equations and diagrams
COMMAND = re.compile(r"python|fairseq-\w+|subword-nmt|sacremoses|(?:scripts|examples)/[\w/]+\.sh")
PARSERS: Dict[str, Callable[[], Any]] = {
    "fairseq-train": fairseq_options.get_training_parser,
    "fairseq-generate": fairseq_options.get_generation_parser,
    "fairseq-validate": fairseq_options.get_validation_parser,
    "fairseq-interactive": lambda: fairseq_options.get_interactive_generation_parser("simultaneous_translation"),
}
FOR_TRAINING = re.compile(r"scripts/train_\w+\.sh|examples/\w+/train\.sh")  # their arguments are fairseq-train's
# Programs of others, of which only the name is checked.
OTHERS = {"cat", "cd", "cp", "curl", "docker", "echo", "export", "git", "gunzip", "head", "ls", "mkdir", "pip",
          "pre-commit", "rm", "sacrebleu", "sacremoses", "sbatch", "set", "simuleval", "source", "srun", "subword-nmt",
          "tee", "tail", "torchrun"}  # fmt: skip

# How the blocks are run.  In these documents everything that is named in MAKING runs, in their order: their commands
# make the data, the models and the generations that the others find.
FIRST = (ROOT / "README.md", ROOT / "docs" / "tutorial" / "live.md")
MAKING = {"sacremoses", "subword-nmt", "fairseq-preprocess", "fairseq-train", "fairseq-generate", "fairseq-milk path",
          "fairseq-milk score", "fairseq-milk check", "fairseq-milk stream"}  # fmt: skip
if can_trace():
    MAKING.add("fairseq-milk export")
# In the others what takes seconds.  The rest has tests of its own (test_sweep_training, test_serve, test_prepare,
# test_verb_final_demo, test_distributed), or needs a network, GPUs or a cluster.
QUICK = {"fairseq-milk compare", "fairseq-milk plot", "fairseq-milk report", "fairseq-milk score"}
NOT_HERE = re.compile(r"\.\.\.|…|\b(examples|demo|MILK|WAITK)/")  # abridged, or with files that nothing here makes
FEWER = ["--max-update", "3"]  # at the end of every fairseq-train
INPUT = "der hund sieht ein pferd\n"  # what `stream` reads
SWEEP: stand_in_sweep.Grids = {
    "soft": ("", [0.0]),
    "milk": ("latency-weight", [0.1, 0.2, 0.3, 0.5]),
    "wait-k": ("wait-k", [2, 4, 6, 8]),
}


def every(*languages: str) -> List[Any]:
    return [pytest.param(block, id=block.name) for document in DOCUMENTS for block in blocks(document, *languages)]


# ---- what the parsers say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", every(*SHELL))
def test_the_commands_of_a_block_exist(block: Block) -> None:
    assert [fault for command in commands(block.text) for fault in faults(command)] == []
    read = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, timeout=60)
    assert read.returncode == 0, read.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_no_command_stands_outside_a_block_that_is_checked(document: Path) -> None:
    """There are no commands in blocks of another or no language, nor in indented blocks."""
    text = document.read_text(encoding="utf-8")
    assert {fence[2] for fence in FENCE.finditer(text)} <= {*SHELL, *PYTHON, *DATA, *SHOWN}
    assert re.findall(rf"(?m)^ {{4,}}(?:\w+=\S+ )?(?:{COMMAND.pattern}) .*", FENCE.sub("", text)) == []
    shown = "".join(block.text for block in blocks(document, *SHOWN))
    assert re.findall(rf"(?m)^ *(?:{COMMAND.pattern}) .*", shown) == []


@pytest.mark.parametrize("block", every("json"))
def test_a_block_of_data_can_be_read(block: Block) -> None:
    decoder, text = json.JSONDecoder(), block.text.strip()
    while text:
        _, end = decoder.raw_decode(text)
        text = text[end:].strip()


@pytest.mark.parametrize("block", every("yaml"))
def test_a_file_of_a_sweep_has_options_that_fairseq_has(block: Block, tmp_path: Path) -> None:
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "sweep.yaml").write_text(block.text, encoding="utf-8")
    check_options(read_spec(tmp_path / "sweep.yaml"))


def faults(command: Sequence[str]) -> List[str]:
    """What is wrong with a command, in sentences."""
    program, *arguments = (re.sub(r"^\$\{?\w+\}?$", "1", word) for word in command if word not in ("...", "…"))
    found = [f"{word}: there is no such file" for word in command if is_missing(word)]
    if program == "fairseq-milk":
        return found + verb_faults(arguments)
    if program in PARSERS:
        return found + fairseq_faults(program, arguments)
    if program == "fairseq-preprocess":
        return found + parser_faults(program, fairseq_options.get_preprocessing_parser(), arguments)
    if program in ("python", "python3", ".venv/bin/python"):
        return found + python_faults(arguments)
    if FOR_TRAINING.fullmatch(program):
        rest = [word for n, word in enumerate(arguments) if n or not re.match(r"--dry-run$|\d+$", word)]
        return found + (fairseq_faults("fairseq-train", rest) if "--arch" in rest else [])
    if re.match(r"(\./)?(scripts|examples)/", program):
        return found + option_faults(program, script_text(ROOT / program), arguments)
    return found + ([] if program in OTHERS else [f"{program}: is that a program?"])


def is_missing(word: str) -> bool:
    """Whether it names a file of the repository that is not there; what git ignores is made by a command."""
    named = re.match(r"(?:\./)?((?:scripts|examples|benchmarks|tests|docs|fairseq_milk)/[\w./-]*)$", word)
    if named is None or (ROOT / named[1]).exists():
        return False
    path = named[1] if Path(named[1]).suffix else f"{named[1]}/"  # a pattern may be for folders only
    ignored = subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, timeout=60)
    return ignored.returncode != 0


def verb_faults(arguments: Sequence[str]) -> List[str]:
    if not arguments or arguments[0].startswith("-"):
        return [] if list(arguments) in (["--help"], ["--version"]) else [f"fairseq-milk {arguments}: no verb"]
    parser = _parser(arguments[0] if arguments[0] in VERBS else None)
    found = parser_faults("fairseq-milk", parser, arguments)
    if "--train" in arguments:
        found += fairseq_faults("fairseq-train", arguments[arguments.index("--train") + 1 :])
    return found


def parser_faults(program: str, parser: ArgumentParser, arguments: Sequence[str]) -> List[str]:
    try:
        parser.parse_args(list(arguments))
    except SystemExit as error:
        return [] if not error.code else [f"{program} {shlex.join(arguments)}: refused by its parser"]
    return []


def fairseq_faults(program: str, arguments: Sequence[str]) -> List[str]:
    """The plugin is registered by this process: --user-dir would import it again."""
    kept = [word for before, word in zip(["", *arguments], arguments) if "--user-dir" not in (before, word)]
    said = problem(PARSERS[program], kept)
    return [] if said is None else [f"{program}: {said}"]


def python_faults(arguments: Sequence[str]) -> List[str]:
    """Of `python -m MODULE ...` and `python FILE ...`."""
    if arguments[0] != "-m":
        is_file = arguments[0].endswith(".py")
        return option_faults(arguments[0], (ROOT / arguments[0]).read_text(), arguments[1:]) if is_file else []
    path = module_file(arguments[1])
    if path is None:
        return [] if importlib.util.find_spec(arguments[1]) else [f"python -m {arguments[1]}: there is no such module"]
    return option_faults(arguments[1], path.read_text(encoding="utf-8"), arguments[2:])


def option_faults(program: str, text: str, arguments: Sequence[str]) -> List[str]:
    """Of a program whose text names its options."""
    named = {word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
    return [f"{program} {option}: there is no such option" for option in sorted(named) if option not in text]


def script_text(path: Path) -> str:
    """Of a script and of the scripts and modules that it starts."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    named = [ROOT / name for name in re.findall(r"scripts/\w+\.sh", text)]
    named += filter(None, map(module_file, re.findall(r"-m ([\w.]+)", text)))
    return text + "".join(other.read_text(encoding="utf-8") for other in named if other.is_file() and other != path)


def module_file(name: str) -> "Path | None":
    """A module of the repository."""
    path = ROOT.joinpath(*name.split("."))
    return next(filter(Path.is_file, (path.with_suffix(".py"), path / "__main__.py")), None)


@pytest.mark.parametrize(
    "command",
    [
        "fairseq-milk scroe a.jsonl",
        "fairseq-milk score a.jsonl --no-such-option",
        "fairseq-milk check --train data --arch milk_rnmt --no-such-option",
        "fairseq-train data --arch milk_rnmt --no-such-option",
        "fairseq-train data --arch no_such_arch",
        "fairseq-preprocess --no-such-option",
        "scripts/no_such.sh",
        "scripts/test.sh --no-such-option",
        "scripts/demo.sh --no-such-option",
        "scripts/train_nodes.sh --dry-run data --arch milk_rnmt --no-such-option",
        "python -m examples.no_such",
        "python -m examples.verb_final.redraw --no-such-option",
        "fairseq-milk sweep examples/no_such/sweep.yaml",
        "no-such-program",
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    (words,) = commands(command)
    assert faults(words)


@pytest.mark.parametrize("block", every(*PYTHON))
def test_the_names_that_a_block_imports_exist(block: Block) -> None:
    for node in ast.walk(ast.parse(without_magic(block.text))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


def without_magic(text: str) -> str:
    """Without the commands of IPython."""
    return re.sub(r"(?m)^%.*$", "", text)


# ---- what can be run ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    return install(build_wheel(folder), folder / "environment")


@pytest.fixture(scope="module")
def workshop(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text and a finished sweep, in which the commands of the first documents have been run."""
    folder = tmp_path_factory.mktemp("workshop")
    for seed, (split, size) in enumerate({"train": 200, "valid": 20, "test": 20}.items()):
        for language, sentences in zip(("de", "en"), zip(*pairs(size, seed))):
            (folder / f"{split}.{language}").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    sweep = folder / "sweep"
    table = read_results(stand_in_sweep.sweep(sweep, size=20, grids=SWEEP))
    on_valid = [shutil.copy(row.log, row.log.replace("-test.", "-valid.")) for row in table]
    write_results([*table, *(row._replace(log=log) for row, log in zip(table, on_valid))], sweep)
    for name, run in (("a", "milk-latency-weight=0.2-s1"), ("b", "wait-k-wait-k=6-s1")):
        shutil.copytree(sweep / run / "results", folder / name)
    train = installed.folder / "bin" / "fairseq-train"
    train.write_text(train.read_text().replace("\nsys.exit", f"\nsys.argv += {FEWER}\nsys.exit"))
    for document in FIRST:
        run_bash(script_of(document), installed, folder)
        shutil.copy(folder / "codes", folder / "data-bin")  # as the tutorial does
    return folder


def script_of(document: Path) -> str:
    """The statements of its shell blocks that can be run."""
    kept = [line for block in blocks(document, *SHELL) for line in statements(block.text) if can_run(line, document)]
    return "\n".join(kept)


def can_run(statement: str, document: Path) -> bool:
    runs = MAKING if document in FIRST else QUICK
    programs = [words[0] if words[0] in runs else " ".join(words[:2]) for words in commands(statement)]
    return bool(programs) and NOT_HERE.search(statement) is None and runs.issuperset(programs)


def run_bash(script: str, installed: Installed, folder: Path) -> str:
    """Run a script; every statement must succeed, except that `check` may end with 1 for an untrained model."""
    script = re.sub(r"(?m)^(fairseq-milk check .*)$", r"{ \1\n} || test $? = 1", script)
    finished = installed.run("bash", "-euo", "pipefail", "-c", script, cwd=folder, stdin=INPUT)
    assert finished.returncode == 0, f"{script}\n{finished.stdout[-2000:]}\n{finished.stderr[-4000:]}"
    return finished.stdout


def test_the_first_documents_make_what_the_others_use(workshop: Path) -> None:
    run = {words[0] for document in FIRST for words in commands(script_of(document))}
    assert run == {
        "sacremoses",
        "subword-nmt",
        "fairseq-preprocess",
        "fairseq-train",
        "fairseq-generate",
        "fairseq-milk",
    }
    assert len((workshop / "results" / "generate-test.jsonl").read_text().splitlines()) == 20
    assert (workshop / "model" / "model.json").is_file() == can_trace()


def test_every_kind_of_command_is_run_somewhere() -> None:
    run = [words for document in DOCUMENTS for words in commands(script_of(document))]
    assert {
        name for name in MAKING | QUICK if name.split() not in [words[: len(name.split())] for words in run]
    } == set()


def with_code() -> List[Any]:
    """The documents with something to run; some load the folder that `fairseq-milk export` has made."""
    found = []
    for document in DOCUMENTS:
        python = blocks(document, *PYTHON)
        if script_of(document) or python:
            marks = [needs_export] if any('load("model")' in block.text for block in python) else []
            found.append(pytest.param(document, id=str(document.relative_to(ROOT)), marks=marks))
    return found


@pytest.mark.parametrize("document", with_code())
def test_what_a_document_runs(document: Path, workshop: Path, installed: Installed) -> None:
    if document not in FIRST and script_of(document):
        run_bash(script_of(document), installed, workshop)
    for block in blocks(document, *PYTHON):
        finished = installed.run(installed.python, "-c", without_magic(block.text), cwd=workshop)
        assert finished.returncode == 0, f"{block.name}\n{finished.stderr[-4000:]}"
