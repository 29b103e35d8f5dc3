"""Parses the messages of clients and builds those of the server.

docs/reference/serve.md describes them.
"""

import json
from typing import Any, Mapping, NamedTuple, Sequence, Union

from ...version import __version__
from ..knobs import Knob, Value
from ..session import Event, Session
from ..translator import Translator
from .limits import Limits

FIXED_KNOBS = ("max_len_a", "max_len_b")  # knobs that bound the computing time of a sentence, which clients cannot set
Message = dict[str, Any]


class RefusedError(Exception):
    """A message is invalid or exceeds a limit."""


class Begin(NamedTuple):
    """A new sentence.  sentence: the client's number for it, which is sent back with every answer."""

    sentence: int
    models: tuple[str, ...]
    knobs: dict[str, dict[str, Value]]  # by model


class Push(NamedTuple):
    words: tuple[str, ...]


class End(NamedTuple):
    """The source of the sentence has ended."""


def parse(text: str, models: Mapping[str, Translator], limits: Limits) -> Union[Begin, Push, End]:
    """Parse the message of a client; RefusedError if it is invalid."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError("a message must be a JSON object") from error
    if not isinstance(message, dict):
        raise RefusedError("a message must be a JSON object")
    kind = message.get("type")
    if kind == "begin":
        return _begin(message, models)
    if kind == "push":
        return _push(message, limits)
    if kind == "end":
        return End()
    raise RefusedError("the type of a message must be 'begin', 'push' or 'end'")


def _begin(message: Message, models: Mapping[str, Translator]) -> Begin:
    sentence, chosen, knobs = message.get("sentence"), message.get("models", list(models)), message.get("knobs", {})
    if not isinstance(sentence, int) or isinstance(sentence, bool) or not 0 <= sentence < 2**53:
        raise RefusedError("'sentence' must be a whole number from 0")
    if not isinstance(chosen, list) or not chosen or not all(isinstance(name, str) for name in chosen):
        raise RefusedError("'models' must be a list of names")
    if not isinstance(knobs, dict) or not all(isinstance(changes, dict) for changes in knobs.values()):
        raise RefusedError("'knobs' must be an object with an object per model")
    for name in (*chosen, *knobs):
        if name not in models:
            raise RefusedError(f"there is no model {_quoted(name)} here: there are {', '.join(models)}")
    names = tuple(dict.fromkeys(chosen))
    return Begin(sentence, names, {name: _values(models[name], knobs.get(name, {})) for name in names})


def _values(translator: Translator, changes: Mapping[str, Any]) -> dict[str, Value]:
    """The checked values of the knobs, within the ranges that `hello` gives."""
    offered, values = offered_knobs(translator), {}
    for name, value in changes.items():
        if name not in offered:
            raise RefusedError(f"there is no knob {_quoted(name)} here: there are {', '.join(offered)}")
        knob = offered[name]
        try:
            values[name] = knob.check(value)
        except ValueError as error:
            raise RefusedError(str(error)) from error
        if not knob.low <= values[name] <= knob.high:
            raise RefusedError(f"{name} must lie between {knob.low:g} and {knob.high:g}, got {value}")
    return values


def _push(message: Message, limits: Limits) -> Push:
    text = message.get("text")
    if not isinstance(text, str):
        raise RefusedError("'text' must be a string")
    words = tuple(text.split())
    if not words:
        raise RefusedError("'text' must hold a word")
    if max(map(len, words)) > limits.letters:
        raise RefusedError(f"a word may have at most {limits.letters} letters")
    return Push(words)


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:39] + "…")


def offered_knobs(translator: Translator) -> dict[str, Knob]:
    """The knobs that a client may set."""
    return {name: knob for name, knob in translator.knobs.items() if name not in FIXED_KNOBS}


# ---- of the server --------------------------------------------------------------------------------------------------


def hello(models: Mapping[str, Translator], limits: Limits, examples: Sequence[str]) -> Message:
    """The first message of every connection: models, knobs and limits."""
    return {
        "type": "hello",
        "version": __version__,
        "models": [_description(name, translator) for name, translator in models.items()],
        "limits": limits._asdict(),
        "examples": list(examples),
    }


def _description(name: str, translator: Translator) -> Message:
    return {
        "name": name,
        "mechanism": translator.mechanism,
        "description": translator.description,
        "source": translator.languages.source,
        "target": translator.languages.target,
        "knobs": [{**knob._asdict(), "kind": knob.kind.__name__} for knob in offered_knobs(translator).values()],
    }


def answer(sentence: int, model: str, session: Session, events: Sequence[Event]) -> Message:
    """The answer of a model to a word, or to the end of the source.  events: the new ones of its schedule."""
    latency = session.latency
    return {
        "type": "answer",
        "sentence": sentence,
        "model": model,
        "words": session.words,
        "events": [event._asdict() for event in events],
        "text": session.text,
        "done": session.done,
        "ended": session.ended,
        "latency": None if latency is None else latency._asdict(),
    }


def error(reason: str) -> Message:
    return {"type": "error", "reason": reason}
