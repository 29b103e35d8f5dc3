"""Exports a checkpoint to a folder that runs without torch and fairseq."""

import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict

from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from ..attention import name_of
from ..console.errors import UserError
from ..console.version_info import source_version
from ..generation.loading import load_model, subword_files
from . import manifest as files
from .checkpoint import describe
from .comparison import Comparison, compare
from .exported import load_exported
from .graph import initial_state
from .graphs import graphs
from .loading import TextOptions
from .tracing import trace
from .transformer_graphs import schedules
from .translator import Languages


def export(
    checkpoint: str,
    data: str,
    out: str,
    text: TextOptions,
    int8: bool = False,
    subset: str = "valid",
    sentences: int = 100,
) -> Comparison:
    """Write the folder `out` atomically.  A float32 model that differs from its checkpoint is not kept."""
    folder, partial = Path(out), Path(f"{out}.partial")
    if folder.exists():
        raise UserError(f"{folder} exists already: remove it, or choose another --out")
    model, task = load_model(checkpoint, data)
    check_model(model, checkpoint)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        manifest = write_folder(partial, model, task, data, text, int8, training_figures(checkpoint))
        comparison = compare(load_exported(str(partial)), model, task, subset, sentences)
        if comparison.different and not int8:
            raise UserError(f"not exported: only {comparison} (--subset {subset})")
        manifest.comparison = {"subset": subset, **comparison._asdict()}
        (partial / files.NAME).write_text(manifest.to_json(), encoding="utf-8")
        os.rename(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return comparison


def check_model(model: Any, checkpoint: str) -> None:
    if not model.encoder.incremental:
        raise UserError(f"{checkpoint} cannot be exported: its encoder is bidirectional and needs the whole source")
    if name_of(model.decoder.attention) is None:
        raise UserError(f"{checkpoint} cannot be exported: its attention has no name")
    stop = model.decoder.attention.stop
    if not stop.exportable:
        schedule = type(stop).__name__
        raise UserError(f"{checkpoint} cannot be exported: an exported model has no rule for the schedule {schedule}")


def write_folder(
    folder: Path, model: Any, task: Any, data: str, text: TextOptions, int8: bool, training: Dict[str, Any]
) -> files.Manifest:
    """Write all files and finally `model.json` with their digests.  training: figures to record."""
    steps = graphs(model)
    contents: Dict[str, bytes] = {f"{name}.onnx": graph for name, graph in trace(steps, int8).items()}
    contents[files.SOURCE] = files.symbols_file(task.source_dictionary.symbols)
    contents[files.TARGET] = files.symbols_file(task.target_dictionary.symbols)
    codes, pieces = subword_files(task, data, text.bpe_codes, text.sentencepiece_model)
    for name, path in ((files.CODES, codes), (files.PIECES, pieces)):
        if path is not None:
            contents[name] = Path(path).read_bytes()
    manifest = describe_model(model, task, text, int8, training)
    manifest.state = initial_state(steps)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        manifest.files[name] = files.describe_file(content)
    (folder / files.NAME).write_text(manifest.to_json(), encoding="utf-8")
    return manifest


def describe_model(model: Any, task: Any, text: TextOptions, int8: bool, training: Dict[str, Any]) -> files.Manifest:
    attention = model.decoder.attention
    languages = Languages(task.cfg.source_lang, task.cfg.target_lang)
    moses = {"no_dash_splits": text.moses_no_dash_splits, "no_escape": text.moses_no_escape}
    layers = {"encoder_layers": len(model.encoder.layers), "decoder_layers": len(model.decoder.layers)}
    parameters = sum(parameter.numel() for parameter in model.parameters())
    packages = ("torch", "onnx", "onnxscript", "onnxruntime", "numpy")
    return files.Manifest(
        mechanism=str(name_of(attention)),
        learned=attention.learned,
        k=attention.stop.k,
        rate=attention.stop.rate,
        lookback=attention.lookback.reach,
        source_language=languages.source,
        target_language=languages.target,
        description=describe(model, languages) + (", int8" if int8 else ""),
        weights="int8" if int8 else "float32",
        state={},
        schedules=schedules(model.decoder.attentions),
        tokenizer=moses if text.tokenizer else None,
        sizes={**layers, "parameters": parameters, "source_words": len(task.source_dictionary)},
        training=training,
        made_with={
            "fairseq_milk": source_version(),
            "python": sys.version.split()[0],
            **{name: version(name) for name in packages},
        },
    )


def training_figures(checkpoint: str) -> Dict[str, Any]:
    """The figures of the training that the checkpoint contains."""
    state = checkpoint_utils.load_checkpoint_to_cpu(checkpoint)
    history, extra = state.get("optimizer_history") or [{}], state.get("extra_state") or {}
    figures = {
        "updates": history[-1].get("num_updates"),
        "epoch": (extra.get("train_iterator") or {}).get("epoch"),
        "best_validation": extra.get("best"),
        "latency_weight": OmegaConf.select(state["cfg"], "criterion.latency_weight"),
    }
    return {name: value for name, value in figures.items() if isinstance(value, (int, float))}
