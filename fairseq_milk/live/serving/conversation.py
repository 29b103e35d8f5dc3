"""One connection: sentences one after the other, each translated by the models that the client chose."""

import asyncio
import json
import logging
from typing import List, Mapping, Optional, Sequence, Tuple, Union

from starlette.websockets import WebSocket, WebSocketDisconnect

from ...generation.schedule import TokenSession, Written
from ..knobs import Value
from ..rounds import FailedError, Rounds, Step
from ..session import Session
from ..translator import Translator
from . import messages
from .limits import Limits

IDLE = 4000  # application close codes, documented in docs/reference/serve.md
STALLED = 4001
PAUSE = 0.2  # seconds of delay after a refused message

log = logging.getLogger(__name__)


class Part:
    """One model's part in a sentence.  Its session begins with the first word, in a thread that computes."""

    def __init__(self, sentence: int, model: str, translator: Translator, knobs: Mapping[str, Value]) -> None:
        self.sentence, self.model, self.translator, self.knobs = sentence, model, translator, knobs
        self.session: Optional[Session] = None

    def step(self, word: Optional[str]) -> Step[messages.Message]:
        """One word, or the end of the source, to the answer."""

        def begin() -> Tuple[TokenSession, Sequence[int]]:
            if self.session is None:
                self.session = self.translator.session(**self.knobs)
            self.before = len(self.session.schedule)
            return self.session.token_session, self.session.source_tokens(word)

        def finish(written: List[Written]) -> messages.Message:
            assert self.session is not None
            self.session.pieces(written)
            return messages.answer(self.sentence, self.model, self.session, self.session.schedule[self.before :])

        return Step(begin, finish)


class Conversation:
    """Reads a message, answers it, and reads the next, so that a client cannot send faster than it is answered.

    Translation runs in the rounds, one word at a time, so that connections take turns.
    """

    def __init__(self, socket: WebSocket, models: Mapping[str, Translator], limits: Limits, rounds: Rounds) -> None:
        self.socket, self.models, self.limits, self.rounds = socket, models, limits, rounds
        self.parts: Sequence[Part] = ()  # of the sentence under way
        self.words = 0  # that it has so far

    async def run(self) -> None:
        """Answer messages until the client disconnects, or has been idle for too long."""
        while True:
            try:
                text = await asyncio.wait_for(self._receive(), self.limits.idle_seconds)
            except asyncio.TimeoutError:
                await self.socket.close(IDLE, f"no message for {self.limits.idle_seconds:g} seconds")
                return
            try:
                await self._answer(messages.parse(text, self.models, self.limits))
            except messages.RefusedError as refused:
                self.parts = ()
                await self.send(messages.error(str(refused)))
                await asyncio.sleep(PAUSE)

    async def send(self, message: messages.Message) -> None:
        """Send a message; WebSocketDisconnect if the client does not take it."""
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
            number, knobs = message.sentence, message.knobs
            self.parts = [Part(number, name, self.models[name], knobs[name]) for name in message.models]
            self.words = 0
            return
        if not self.parts:
            raise messages.RefusedError("there is no sentence: send 'begin' first")
        if isinstance(message, messages.End):
            await self._step(None)
            self.parts = ()
            return
        for word in message.words:
            if self.words >= self.limits.words:
                raise messages.RefusedError(f"a sentence may have at most {self.limits.words} words")
            await self._step(word)
            self.words += 1

    async def _step(self, word: Optional[str]) -> None:
        """Process one word, or the end, with all models in parallel; each answer is sent as soon as it is ready.

        A failure is logged and becomes a RefusedError; other sessions are not affected.
        """
        steps = [asyncio.wrap_future(self.rounds.submit(part.step(word))) for part in self.parts]
        try:
            for step in asyncio.as_completed(steps) if len(steps) > 1 else steps:
                await self.send(await step)
        except FailedError as failed:
            log.error("a session failed", exc_info=failed.__cause__)
            raise messages.RefusedError(f"the model failed: {failed}") from failed
        finally:
            await asyncio.gather(*steps, return_exceptions=True)  # a session is used by one thread at a time
