"""One connection: sentences one after the other, each translated by the models that the client chose."""

import asyncio
import json
import logging
from concurrent.futures import Executor
from functools import partial
from typing import Callable, Mapping, NamedTuple, Optional, TypeVar, Union

from starlette.websockets import WebSocket, WebSocketDisconnect

from ..session import Session
from ..translator import Translator
from . import messages
from .limits import Limits

IDLE = 4000  # close codes of our own; docs/serve.md has them all
STALLED = 4001
PAUSE = 0.2  # seconds that a refused message costs its sender

log = logging.getLogger(__name__)
T = TypeVar("T")


class Sentence(NamedTuple):
    number: int
    sessions: dict[str, Session]  # by model


class Conversation:
    """Reads a message, answers it, reads the next: a client that sends faster than it is answered waits by itself.

    Everything that computes runs in the pool, one word of one model at a time, so that the sessions take turns.
    """

    def __init__(self, socket: WebSocket, models: Mapping[str, Translator], limits: Limits, pool: Executor) -> None:
        self.socket, self.models, self.limits, self.pool = socket, models, limits, pool
        self.sentence: Optional[Sentence] = None

    async def run(self) -> None:
        """Until the client leaves, or has been idle for too long."""
        while True:
            try:
                text = await asyncio.wait_for(self._receive(), self.limits.idle_seconds)
            except asyncio.TimeoutError:
                await self.socket.close(IDLE, f"no message for {self.limits.idle_seconds:g} seconds")
                return
            try:
                await self._answer(messages.parse(text, self.models, self.limits))
            except messages.RefusedError as refused:
                self.sentence = None
                await self.send(messages.error(str(refused)))
                await asyncio.sleep(PAUSE)

    async def send(self, message: messages.Message) -> None:
        """WebSocketDisconnect if the client does not take it."""
        text = json.dumps(message, ensure_ascii=False)
        try:
            await asyncio.wait_for(self.socket.send_text(text), self.limits.send_seconds)
        except asyncio.TimeoutError as stalled:
            raise WebSocketDisconnect(STALLED) from stalled

    async def _receive(self) -> str:
        message = await self.socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"])
        return message.get("text") or ""  # a binary message is not JSON

    async def _answer(self, message: Union[messages.Begin, messages.Push, messages.End]) -> None:
        if isinstance(message, messages.Begin):
            self.sentence = await self._compute(partial(self._begin, message))
            return
        if self.sentence is None:
            raise messages.RefusedError("there is no sentence: send 'begin' first")
        if isinstance(message, messages.End):
            await self._step(self.sentence, None)
            self.sentence = None
            return
        for word in message.words:
            await self._step(self.sentence, word)

    def _begin(self, begin: messages.Begin) -> Sentence:
        sessions = {name: self.models[name].session(**begin.knobs[name]) for name in begin.models}
        return Sentence(begin.sentence, sessions)

    async def _step(self, sentence: Sentence, word: Optional[str]) -> None:
        """One word, or the end, through all models at once; each answer is sent as soon as it is there."""
        if word is not None and any(session.words >= self.limits.words for session in sentence.sessions.values()):
            raise messages.RefusedError(f"a sentence may have at most {self.limits.words} words")
        steps = [
            asyncio.ensure_future(self._compute(partial(_step, sentence.number, name, session, word)))
            for name, session in sentence.sessions.items()
        ]
        try:
            for step in asyncio.as_completed(steps):
                await self.send(await step)
        finally:
            await asyncio.gather(*steps, return_exceptions=True)  # a session is used by one thread at a time

    async def _compute(self, function: Callable[[], T]) -> T:
        """In the pool.  RefusedError, and a line in the log, if it fails: the other sessions go on."""

        def guarded() -> Union[T, messages.RefusedError]:
            try:
                return function()
            except BaseException as error:  # a UserError is a SystemExit, which would end the server
                log.exception("a session failed")
                return messages.RefusedError(f"the model failed: {type(error).__name__}")

        result = await asyncio.get_running_loop().run_in_executor(self.pool, guarded)
        if isinstance(result, messages.RefusedError):
            raise result
        return result


def _step(number: int, name: str, session: Session, word: Optional[str]) -> messages.Message:
    before = len(session.schedule)
    session.end() if word is None else session.push(word)
    return messages.answer(number, name, session, session.schedule[before:])
