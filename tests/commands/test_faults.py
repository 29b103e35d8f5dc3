"""Faults from outside: kills, a full disk, a rank that dies, broken pipes, and long runs.

The long versions are `scripts/faults.sh`; RELIABILITY.md has their figures.
"""

import fcntl
import io
import os
import resource
import signal
import threading
import time
from pathlib import Path
from typing import Any, List
from unittest import mock

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_milk.cli import main
from fairseq_milk.console.errors import UserError
from fairseq_milk.generation import DecodingOptions, StreamingSession
from fairseq_milk.host import checkpoint_writing
from fairseq_milk.host.checkpoint_file import read_checkpoint
from fairseq_milk.live import Session
from fairseq_milk.optim import RNMTAdam
from fairseq_milk.text.words import SourceWords, TargetText
from tests.reliability import soak
from tests.reliability.kill_training import UPDATES, Killer
from tests.support import tiny_models as tiny
from tests.support.fairseq_commands import RNMT, TRANSFORMER, run, training
from tests.support.processes import child, kill_me, outcome
from tests.support.ranks import free_port, rank_options
from tests.support.tiny_translators import Plain
from tests.support.verbs import stream

# ---- a training that is killed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", [RNMT, TRANSFORMER])
def test_a_training_killed_at_the_worst_moments(arch: str, tmp_path: Path) -> None:
    """Killed in the first checkpoint, in the copy to checkpoint_last.pt and in a later one; run again after the end."""
    killer = Killer(tmp_path, arch)
    killer.in_write("torch.save", after=0)
    assert killer.updates() == 0 and list(killer.save_dir.glob("*.pt.tmp")), "it was not killed in the write"
    killer.in_write("shutil.copyfile", after=3)
    first = killer.updates()
    killer.in_write("torch.save", after=2)
    second = killer.updates()
    assert 0 < first < second < UPDATES
    assert killer.kills == killer.in_a_write == 3
    killer.finish()
    assert killer.updates() == UPDATES and killer.different() is None
    killer.finish()
    assert killer.different() is None, "run again after its end, it is no longer what it was"


# ---- a checkpoint that cannot be written ------------------------------------------------------------------------


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_writing, "PAUSE", 0.0)


def test_a_full_disk_is_reported_and_the_previous_checkpoint_is_kept(
    plain: Plain,
    tmp_path: Path,
    hurried: None,
) -> None:
    """A limit on the size of files stands in for a full disk: the write fails in the middle."""
    more = ["--attention", "waitk", "--disable-validation", "--save-interval-updates", 2]
    run("fairseq-train", *training(plain.bin, tmp_path, *more, max_update=2))
    last = tmp_path / "checkpoint_last.pt"
    before = last.read_bytes()

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, resource.RLIM_INFINITY))
        run("fairseq-train", *training(plain.bin, tmp_path, *more, max_update=8))

    stderr = tmp_path / "stderr"
    assert outcome(limited, stderr) == 1
    said = stderr.read_text().strip().splitlines()[-1]
    assert said.endswith("could not be written: File too large; the previous checkpoint is kept")
    assert last.read_bytes() == before and not list(tmp_path.glob("*.tmp"))
    for path in tmp_path.glob("*.pt"):
        read_checkpoint(str(path))


def test_a_write_that_fails_is_made_again_from_the_start(tmp_path: Path, hurried: None) -> None:
    """fairseq's own function appends its second attempt to the remains of the first, which gives an unreadable file."""
    save, state = torch.save, {"model": {"w": torch.arange(1000)}, "cfg": {"some": 1}}

    def saved(function: Any, path: Path, failures: int) -> None:
        left = [failures]

        def unreliable(obj: Any, file: Any) -> None:
            if left[0]:
                left[0] -= 1
                file.write(b"PK half a checkpoint")
                raise OSError(28, "No space left on device")
            save(obj, file)

        with mock.patch("torch.save", unreliable), mock.patch("time.sleep"):
            function(state, str(path))
        read_checkpoint(str(path))

    for failures in (0, 1, 2):
        saved(checkpoint_utils.torch_persistent_save, tmp_path / "ours.pt", failures)
    with pytest.raises(UserError, match="or only a part of one"):
        saved(checkpoint_writing._save, tmp_path / "fairseq.pt", 1)


def test_the_error_of_the_system_is_found_under_that_of_torch(tmp_path: Path, hurried: None) -> None:
    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    with mock.patch.object(checkpoint_writing, "open", lambda path, mode: Full(path, mode), create=True):
        with pytest.raises(UserError, match="could not be written: No space left on device; the previous checkpoint"):
            checkpoint_utils.torch_persistent_save({"w": torch.arange(1000)}, str(tmp_path / "checkpoint.pt"))
    assert not list(tmp_path.iterdir())


def test_a_copy_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    old, new = tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint_best.pt"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    with mock.patch("shutil.copyfile", side_effect=OSError(28, "No space left on device")):
        with pytest.raises(UserError, match=f"{old} could not be written: No space left on device"):
            checkpoint_writing.copy_whole(str(new), str(old), overwrite=True)
    assert old.read_bytes() == b"old"


# ---- a rank that dies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", [0, 1])
def test_one_of_two_ranks_is_killed(victim: int, plain: Plain, tmp_path: Path) -> None:
    """Without torchrun, which would end the other rank: that rank must notice by itself."""
    port, step = free_port(), RNMTAdam.step

    def rank(number: int) -> None:
        made: List[int] = []

        def dies(self: Any, *args: Any, **kwargs: Any) -> None:
            made.append(1)
            if number == victim and len(made) == 3:
                kill_me()
            step(self, *args, **kwargs)

        more = ["--disable-validation", "--no-save", *rank_options(number, port)]
        with mock.patch.object(RNMTAdam, "step", dies):
            run("fairseq-train", *training(plain.bin, tmp_path, *more, max_update=10**6))

    with child(lambda: rank(0), tmp_path / "0") as zero, child(lambda: rank(1), tmp_path / "1") as one:
        ranks = (zero, one)
        ranks[victim].join(60)
        assert ranks[victim].exitcode == -signal.SIGKILL
        start = time.monotonic()
        other = ranks[1 - victim]
        other.join(60)
        assert other.exitcode not in (None, 0), "it goes on, or waits for a rank that is dead"
        assert time.monotonic() - start < 60


# ---- a stream ---------------------------------------------------------------------------------------------------


def test_a_slow_reader_gets_everything(plain: Plain, tmp_path: Path) -> None:
    """The output exceeds the capacity of the pipe, and the reader reads it late and in small pieces."""
    line = b"a1 a2 a3 a4 a5 a6 a7 a0\n"
    arguments = [plain.checkpoint, "--data", plain.bin, "--max-len-b", 20]
    want = stream(line, *arguments)[1].encode()
    lines = 5000 // len(want) + 1
    (source, feed), (result, sink) = os.pipe(), os.pipe()
    fcntl.fcntl(sink, 1031, 4096)  # F_SETPIPE_SZ, which Python names from 3.10 on
    command = ["stream", *map(str, arguments)]
    with child(lambda: main(command), tmp_path / "e", [feed, result], stdin=source, stdout=sink) as process:
        for fd in (source, sink):
            os.close(fd)

        def write() -> None:
            with open(feed, "wb") as pipe:
                pipe.write(line * lines)

        feeder = threading.Thread(target=write)
        feeder.start()
        time.sleep(1)
        with open(result, "rb", buffering=0) as pipe:
            got = b"".join(iter(lambda: pipe.read(100), b""))
        feeder.join()
        process.join(60)
        assert process.exitcode == 0
    assert got == want * lines


def test_input_that_breaks_off(plain: Plain) -> None:
    """Input that ends within a word, a character or a line is translated as far as it goes."""
    arguments = [plain.checkpoint, "--data", plain.bin, "--max-len-b", 2]
    for cut, whole in ((b"a1 a2 a", b"a1 a2 a\n"), ("a1 ß".encode()[:-1], b"a1 \xff\n"), (b"a1 ", b"a1\n")):
        code, out, err = stream(cut, *arguments)
        assert (code, err) == (0, "") and out.endswith("\n")
        assert out == stream(whole, *arguments)[1]


@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_a_closed_pipe_is_reported(name: str, plain: Plain, capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch(f"sys.{name}", None):
        assert main(["stream", str(plain.checkpoint), "--data", str(plain.bin)]) == 2
    assert capsys.readouterr().err.endswith(f": standard {name[3:]}put is closed\n")


@pytest.mark.parametrize("attention", tiny.STREAMING)
def test_a_source_without_end_costs_its_states_and_no_more(attention: str) -> None:
    """4 (hidden_size + energies x energy_dim) bytes per token, at most twice that in buffers that double."""
    model = tiny.model(attention=attention, wait_k=2).eval()
    session = StreamingSession(model, DecodingOptions(max_len_b=0, max_len_a=1.0, early_eos=False))
    for _ in range(1100):
        session.push(5)
    target: Any = session.decoding.target
    memory, energies = target.memory, target.attention.energies()
    held = sum(x.numel() * x.element_size() for x in (memory.h, *memory.keys.values()))
    exact = 1100 * 4 * (8 + 5 * len(energies))
    assert exact <= held <= 2 * exact
    assert sorted(vars(session)) == ["decoding", "done", "encoder", "eos", "source_ended", "source_states"]


def test_a_text_without_end_is_not_kept() -> None:
    model = tiny.model(attention="waitk", wait_k=2).eval()
    options = DecodingOptions(early_eos=False)
    source, text = SourceWords(model.encoder.dictionary), TargetText(model.decoder.dictionary)
    session = Session(StreamingSession(model, options), source, text)
    for _ in range(100):
        session.push("w1")
    target = session._target
    assert target.words == [] and target.text == "" and len(target.subwords) <= 1


# ---- a long run -------------------------------------------------------------------------------------------------


def test_many_sentences_leave_no_trace(plain: Plain, tmp_path: Path) -> None:
    """Each pass over the same sentences gives the same output, and memory does not grow."""
    figures: List[soak.Figures] = [
        soak.generate(plain.bin, plain.checkpoint, tmp_path, sentences=100, passes=3),
        soak.stream(plain.bin, plain.checkpoint, tmp_path, sentences=100, passes=3),
    ]
    for one in figures:
        assert one.sentences == 300 and one.different == 0
        assert one.growth < 4 << 20
