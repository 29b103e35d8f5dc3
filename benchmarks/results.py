"""The results of a run as data: OUT/results.json, one entry per row, written after each row."""

import json
import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List

import torch

from benchmarks.harness import CORES, SIMULEVAL, Outcome, Row
from fairseq_milk.console.version_info import source_version

FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
PACKAGES = ("torch", "fairseq", "fairseq-fixed", "numpy")


def machine() -> Dict[str, Any]:
    """The hardware and software on which the figures depend."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if (SIMULEVAL / "python").exists():
        say = "from importlib.metadata import version; print(version('simuleval'))"
        versions["SimulEval"] = subprocess.check_output([SIMULEVAL / "python", "-c", say], text=True).strip()
    capability = torch.backends.cpu.get_cpu_capability() if hasattr(torch.backends, "cpu") else "unknown"
    return {
        "processor": processor(),
        "cores": CORES,
        "instructions": " ".join([capability, *flags()]),
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        **versions,
    }


def processor() -> str:
    return cpuinfo("model name") or platform.processor() or platform.machine()


def flags() -> List[str]:
    """The instruction sets in `FLAGS` that the processor has."""
    present = cpuinfo("flags").split()
    return [flag for flag in FLAGS if flag in present]


def cpuinfo(name: str) -> str:
    """A field of /proc/cpuinfo for the first processor; empty if there is none."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == name), "")


class Results:
    """Rows of the same machine, versions and size; others that the file may hold are dropped."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.path = folder / "results.json"
        self.about: Dict[str, Any] = {"quick": quick, "machine": machine()}
        self.rows: Dict[str, Dict[str, Any]] = {}
        if self.path.exists():
            kept = json.loads(self.path.read_text())
            if kept["about"] == self.about:
                self.rows = kept["rows"]

    def add(self, row: Row, outcome: Outcome, seconds: float) -> None:
        self.rows[row.name] = {
            "what": row.what,
            "against": row.against,
            "checks": [
                {
                    "what": check.what,
                    "value": check.value,
                    "unit": check.unit,
                    "bar": check.bar and f"{check.bar.sign} {check.bar.limit:.4g}",
                    "limit": check.bar and check.bar.limit,
                    "met": check.bar and check.bar.met(check.value),
                }
                for check in outcome.checks
            ],
            "figures": outcome.figures,
            "note": outcome.note,
            "tried": row.tried,
            "seconds": round(seconds, 1),
            "day": time.strftime("%Y-%m-%d"),
            "commit": source_version(),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"about": self.about, "rows": self.rows}, indent=1) + "\n")
