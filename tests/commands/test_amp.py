"""`fairseq-train --amp` through the stock trainer, with the autocast and loss scaler of CUDA replaced by the CPU's."""

import math
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch

from fairseq_milk.optim.rnmt_adam import GradientNormGuard
from tests.support import fairseq_commands as commands
from tests.support import tiny_models as tiny

UPDATES = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return commands.make_corpus(tmp_path_factory.mktemp("amp"))


@pytest.fixture
def norms(monkeypatch: pytest.MonkeyPatch) -> List[float]:
    """The gradient norms that the guard sees, one per update."""
    seen: List[float] = []
    rejects = GradientNormGuard.rejects

    def recording(self: GradientNormGuard, norm: float) -> bool:
        seen.append(norm)
        return rejects(self, norm)

    monkeypatch.setattr(GradientNormGuard, "rejects", recording)
    return seen


@pytest.fixture
def autocast_entered(monkeypatch: pytest.MonkeyPatch) -> List[bool]:
    """Replace CUDA's autocast and loss scaler by the CPU's."""
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this torch has no loss scaler for a CPU")
    entered: List[bool] = []

    class CPUAutocast(torch.autocast):
        def __init__(self, enabled: bool = True) -> None:
            entered.append(enabled)
            super().__init__("cpu", dtype=torch.bfloat16, enabled=enabled)

    def scaler(**options: Any) -> torch.amp.GradScaler:
        return torch.amp.GradScaler("cpu", **options)

    monkeypatch.setattr(torch.cuda.amp, "autocast", CPUAutocast)
    monkeypatch.setattr(torch.cuda.amp, "GradScaler", scaler)
    monkeypatch.setattr("fairseq_milk.host.precision.has_gpu", lambda cfg: True)
    return entered


def train(data: Path, save_dir: Path, attention: str, *more: str) -> Dict[str, torch.Tensor]:
    options = ["--attention", attention, "--latency-weight", 0.2, "--noise", 0, "--decoder-layers", 3, *more]
    arguments = commands.training(data, save_dir, *options, "--disable-validation", max_update=UPDATES)
    log = commands.run("fairseq-train", *arguments)
    logged = log.json("num_updates")
    assert len(logged) == UPDATES
    for update in logged:
        for name in ("loss", "dal", "certainty", "gnorm"):
            assert math.isfinite(float(update[name])), (name, update)
        assert update["rejected_steps"] == "0"
    parameters: Dict[str, torch.Tensor] = torch.load(save_dir / "checkpoint_last.pt")["model"]
    return parameters


@pytest.mark.parametrize("more", [[], ["--share-decoder-input-output-embed"]])
@pytest.mark.parametrize("attention", tiny.FIVE)
def test_amp_trains_as_float32_does(
    attention: str,
    more: List[str],
    data: Path,
    tmp_path: Path,
    norms: List[float],
    autocast_entered: List[bool],
) -> None:
    plain = train(data, tmp_path / "plain", attention, *more)
    plain_norms = norms.copy()
    assert autocast_entered.count(True) == 0
    norms.clear()
    mixed = train(data, tmp_path / "amp", attention, *more, "--amp")
    assert autocast_entered.count(True) == UPDATES
    assert norms == pytest.approx(plain_norms, rel=0.1), "not the true norms"
    assert norms != plain_norms, "nothing was rounded"
    for name, x in mixed.items():
        assert x.dtype == torch.float32 and torch.isfinite(x).all(), name
    assert plain.keys() == mixed.keys()
