"""The application: the page at /, the WebSocket at /api/session, and /api/health for a proxy."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import AsyncIterator, Mapping, NamedTuple, Sequence
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from ..rounds import Rounds
from ..translator import Translator
from . import messages
from .conversation import Conversation
from .limits import DEFAULTS, Admission, Limits, NoPlaceError

PAGE = Path(__file__).resolve().parents[1] / "page"
TRY_AGAIN_LATER, POLICY_VIOLATION = 1013, 1008  # close codes of RFC 6455
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class Access(NamedTuple):
    """hosts: allowed names of the server ('*': any).  origins: allowed origins of other pages."""

    hosts: Sequence[str] = ("*",)
    origins: Sequence[str] = ()

    def allows(self, socket: WebSocket) -> bool:
        """Whether a connection is allowed.  Only browsers send an origin; other programs need no permission."""
        origin = socket.headers.get("origin")
        if origin is None or origin in self.origins:
            return True
        return urlsplit(origin).netloc == socket.headers.get("host")


EVERYWHERE = Access()


def build_app(
    models: Mapping[str, Translator],
    limits: Limits = DEFAULTS,
    access: Access = EVERYWHERE,
    examples: Sequence[str] = (),
    threads: int = 2,
) -> Starlette:
    """The application.  models: by name, in the order of the page.  threads: for translating; best one per core."""
    rounds, admission = Rounds(threads), Admission(limits)

    async def session(socket: WebSocket) -> None:
        if not access.allows(socket):
            await socket.close(POLICY_VIOLATION)  # before `accept`, which gives 403
            return
        await socket.accept()
        hello = messages.hello(models, limits, examples)
        await converse(Conversation(socket, models, limits, rounds), hello, admission)

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok", "sessions": admission.sessions})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        rounds.close()

    routes = [
        WebSocketRoute("/api/session", session),
        Route("/api/health", health),
        Mount("/", StaticFiles(directory=PAGE, html=True)),
    ]
    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=list(access.hosts)), Middleware(FixedHeaders)]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


async def converse(conversation: Conversation, hello: messages.Message, admission: Admission) -> None:
    """Run an accepted connection from the greeting to its end; one for which there is no place is told so."""
    socket = conversation.socket
    try:
        with admission.place(socket.client.host if socket.client else ""):
            await conversation.send(hello)
            await conversation.run()
    except NoPlaceError as full:
        await conversation.send(messages.error(str(full)))
        await socket.close(TRY_AGAIN_LATER)
    except (WebSocketDisconnect, asyncio.CancelledError):  # the client has disconnected, or the server stops
        pass


class FixedHeaders:
    """Adds HEADERS to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self.headers]
            await send(message)

        await self.app(scope, receive, with_headers)
