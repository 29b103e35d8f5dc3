"""A server of `fairseq_milk.live.serving` in a thread of the test, and clients of it."""

import json
import threading
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Sequence

import uvicorn
from websockets.sync.client import ClientConnection, connect

from fairseq_milk.live import Translator
from fairseq_milk.live.serving.app import build_app
from fairseq_milk.live.serving.limits import DEFAULTS, Limits
from fairseq_milk.live.serving.running import Address, configuration, url_of

LOCAL = Address(port=0)  # any that is free


@contextmanager
def serving(
    models: Mapping[str, Translator],
    limits: Limits = DEFAULTS,
    examples: Sequence[str] = (),
    address: Address = LOCAL,
) -> Iterator[str]:
    """The URL of a server that runs during the block."""
    app = build_app(models, limits, address.access(), examples)
    listening = address.listen()
    server = uvicorn.Server(configuration(app, address, limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield url_of(listening)
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
    assert not thread.is_alive()


class Client:
    """A client written from docs/reference/serve.md alone."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.hello = self.receive()

    def send(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def receive(self) -> Dict[str, Any]:
        message: Dict[str, Any] = json.loads(self.socket.recv(timeout=20))
        return message

    def say(self, words: Sequence[str], models: Sequence[str], **begin: Any) -> Dict[str, List[Dict[str, Any]]]:
        """Send a whole sentence; returns the answers by model, one per word and one for the end."""
        self.send(type="begin", models=list(models), **{"sentence": 1, **begin})
        answers: Dict[str, List[Dict[str, Any]]] = {model: [] for model in models}
        for message in ({"type": "push", "text": word} for word in words):
            self.send(**message)
        self.send(type="end")
        for _ in range(len(models) * (len(words) + 1)):
            answer = self.receive()
            assert answer["type"] == "answer", answer
            answers[answer["model"]].append(answer)
        return answers


@contextmanager
def client(url: str, **options: Any) -> Iterator[Client]:
    with connect(url.replace("http", "ws", 1) + "/api/session", **options) as socket:
        yield Client(socket)
