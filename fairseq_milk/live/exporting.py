"""Exports a checkpoint to a folder that runs without torch and fairseq, and compares both."""

import copy
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from ..attention import name_of
from ..attention.lookbacks import Everything, Here, Window
from ..console.errors import UserError
from ..console.version_info import source_version
from ..generation import translate
from ..generation.loading import load_model, subword_files
from ..generation.schedule import DecodingOptions, TokenSession
from ..generation.session import StreamingSession
from ..text.subwords import find_marker, join_words
from . import manifest as files
from .checkpoint import describe
from .exported import load_exported
from .graph import initial_state
from .graphs import graphs
from .loading import TextOptions
from .tracing import trace
from .transformer_graphs import schedules
from .translator import Languages, Translator

BATCH = 32  # sentences per batch of the checkpoint
OPTIONS = DecodingOptions(max_len_a=2.0, max_len_b=20)  # ends translations that do not end by themselves


class Comparison(NamedTuple):
    """The comparison of an exported model with its checkpoint on sentences of the data."""

    sentences: int
    different: int  # sentences with other tokens or delays
    bleu: Optional[float] = None  # of the exported model, if there are references
    checkpoint_bleu: Optional[float] = None
    ties: int = 0  # sentences equal to the checkpoint in float64 only, because two candidates were too close in float32

    def __str__(self) -> str:
        same = self.sentences - self.different
        said = f"{same} of {self.sentences} sentences have the checkpoint's tokens and delays"
        said += f" ({self.ties} of them those of float64)" if self.ties else ""
        if self.bleu is None or self.checkpoint_bleu is None:
            return said
        return f"{said}; BLEU {self.bleu:.2f}, of the checkpoint {self.checkpoint_bleu:.2f}"


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
    stop, lookback = attention.stop, attention.lookback
    languages = Languages(task.cfg.source_lang, task.cfg.target_lang)
    sees = {Everything: None, Here: 1, Window: getattr(lookback, "size", None)}[type(lookback)]
    moses = {"no_dash_splits": text.moses_no_dash_splits, "no_escape": text.moses_no_escape}
    layers = {"encoder_layers": len(model.encoder.layers), "decoder_layers": len(model.decoder.layers)}
    parameters = sum(parameter.numel() for parameter in model.parameters())
    packages = ("torch", "onnx", "onnxscript", "onnxruntime", "numpy")
    return files.Manifest(
        mechanism=str(name_of(attention)),
        learned=stop.learned,
        k=getattr(stop, "k", None),
        rate=getattr(stop, "rate", 1.0),
        lookback=sees,
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


def compare(translator: Translator, model: Any, task: Any, subset: str, sentences: int) -> Comparison:
    """Compare tokens and delays on sentences spread over the data set, and BLEU if there are references."""
    task.load_dataset(subset)
    dataset = task.datasets[subset]
    count = min(sentences, len(dataset))
    pairs = [dataset[index * len(dataset) // count] for index in range(count)]
    sources = [pair["source"] for pair in pairs]
    wanted = _translations(model, dataset, pairs)
    settings = {"max_len_a": OPTIONS.max_len_a, "max_len_b": OPTIONS.max_len_b}
    found = [_written(translator.token_session(**settings), source.tolist()) for source in sources]
    differing = [index for index in range(count) if found[index] != wanted[index]]
    ties = _ties(model, [(sources[index].tolist(), found[index]) for index in differing])
    different = len(differing) - ties
    if not pairs or pairs[0].get("target") is None:
        return Comparison(count, different, ties=ties)
    references = [_text(task, pair["target"].tolist()) for pair in pairs]
    bleu, before = (_bleu([_text(task, tokens) for tokens, _ in one], references) for one in (found, wanted))
    return Comparison(count, different, bleu, before, ties)


def _ties(model: Any, differing: Sequence[Tuple[List[int], Any]]) -> int:
    """The number of these translations that equal those of the checkpoint in float64."""
    exact = copy.deepcopy(model).double() if differing else model
    return sum(_written(StreamingSession(exact, OPTIONS), source) == found for source, found in differing)


def _translations(model: Any, dataset: Any, pairs: Sequence[Any]) -> List[Any]:
    """Tokens and delays of the checkpoint, in the order of the pairs."""
    results: Dict[int, Any] = {}
    for start in range(0, len(pairs), BATCH):
        batch = dataset.collater(pairs[start : start + BATCH])
        hypotheses = translate(model, batch["net_input"]["src_tokens"], OPTIONS)
        results.update(zip(batch["id"].tolist(), ((one.tokens, one.delays) for one in hypotheses)))
    return [results[int(pair["id"])] for pair in pairs]


def _written(session: TokenSession, source: Sequence[int]) -> Any:
    """Tokens and delays."""
    written = [one for token in source for one in session.push(token)]
    return [one.token for one in written], [one.delay for one in written]


def _text(task: Any, tokens: Sequence[int]) -> str:
    dictionary = task.target_dictionary
    symbols = [dictionary[token] for token in tokens if token != dictionary.eos()]
    return join_words(symbols, find_marker([dictionary.symbols]))


def _bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    import sacrebleu

    return float(sacrebleu.corpus_bleu(list(texts), [list(references)]).score)
