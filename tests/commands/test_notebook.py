"""The notebook: its cells run in order, with a tiny exported model instead of the demo's.

The cells are executed here and not by Jupyter, which would add some fifty packages to the tests.
"""

import ast
import json
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
from matplotlib.figure import Figure

from tests.support.exported_models import ExportedModels
from tests.support.tiny_models import Kind

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def code_cells(notebook: Path) -> List[Dict[str, Any]]:
    document = json.loads(notebook.read_text(encoding="utf-8"))
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def execute(source: str, names: Dict[str, Any]) -> Any:
    """What Jupyter would show below the cell: the value of its last line, if that is an expression."""
    tree = ast.parse(re.sub(r"(?m)^%.*$", "", source))
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        return exec(compile(tree, "cell", "exec"), names)
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: str(path.name))
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    assert [(cell["outputs"], cell["execution_count"]) for cell in code_cells(notebook)] == [
        ([], None) for _ in code_cells(notebook)
    ]


def test_the_cells_translate_a_stream_and_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (notebook,) = NOTEBOOKS
    monkeypatch.setenv("MODEL", str(ExportedModels(tmp_path).get(Kind("milk")).folder))
    monkeypatch.chdir(notebook.parent)
    names: Dict[str, Any] = {}
    shown = [execute("".join(cell["source"]), names) for cell in code_cells(notebook)]
    assert [type(value).__name__ for value in shown] == ["Translator", "NoneType", "Latency", "Figure", "Figure"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::8]] == ["weil", "(the"] and len(lines) == 9, lines
    schedule, plane = (value for value in shown if isinstance(value, Figure))
    assert [len(schedule.axes[0].get_xticks()), len(schedule.axes[0].get_yticks())] == [9, len(names["target"])]
    assert {text.get_text() for text in plane.legends[0].get_texts()} >= {"MILk", "wait-k"}
