"""The exit codes of commands after Ctrl-C."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from fairseq_milk.console.exit_codes import exit_code

def stop():
    raise KeyboardInterrupt

sys.exit(exit_code("program", lambda: {body}))
"""


def run(folder: Path, body: str) -> "subprocess.CompletedProcess[str]":
    (folder / "program.py").write_text(PROGRAM.format(body=body), encoding="utf-8")
    return subprocess.run([sys.executable, "-m", "program"], cwd=folder, stderr=subprocess.PIPE, text=True)


def test_an_interrupt_gives_130_wherever_it_came(tmp_path: Path) -> None:
    for body in ("stop()", 'exec("stop()")'):  # the second is how the imports of many packages run
        ended = run(tmp_path, body)
        assert (ended.returncode, ended.stderr) == (130, "program: interrupted; run it again to continue\n"), body
