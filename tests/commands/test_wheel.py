"""The wheel: the package with all of its data files, and its metadata."""

from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import List
from zipfile import ZipFile

import pytest

from fairseq_milk.version import __version__
from tests.support.installed import ROOT, build_wheel, install


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def values(metadata: Message, name: str) -> List[str]:
    return list(metadata.get_all(name, []))


def test_it_contains_every_file_of_the_package(wheel: Path) -> None:
    """Templates, stylesheet, the page of `serve` and the typing marker included; nothing of tests or examples."""
    with ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    files = [path for path in (ROOT / "fairseq_milk").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files}
    assert {"fairseq_milk/py.typed", "fairseq_milk/analysis/templates/report.css"} <= packed.keys()


def test_it_says_what_it_is(metadata: Message) -> None:
    assert metadata["Name"] == "fairseq-milk" and metadata["Version"] == __version__ and metadata["License"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert any(url.startswith("Paper, https://") for url in values(metadata, "Project-URL"))
    classifiers = values(metadata, "Classifier")
    assert "Typing :: Typed" in classifiers and "Programming Language :: Python :: 3.11" in classifiers


def test_it_needs_little_to_run_an_exported_model(metadata: Message) -> None:
    required = [text for text in values(metadata, "Requires-Dist") if "extra ==" not in text]
    assert sorted(text.partition(">")[0] for text in required) == ["numpy", "onnxruntime"]
    assert {"live", "serve", "train"} <= set(values(metadata, "Provides-Extra"))


def test_it_is_what_the_installed_command_runs(wheel: Path, tmp_path: Path) -> None:
    installed = install(wheel, tmp_path / "environment")
    found = installed.run("fairseq-milk", "path", cwd=tmp_path)
    assert found.returncode == 0 and found.stdout.startswith(str(tmp_path / "environment")), found.stderr
