"""The application: the page at /, the WebSocket at /api/session, and /api/health for a proxy."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import AsyncIterator, Mapping, NamedTuple, Sequence
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from ..rounds import Rounds
from ..translator import Translator
from . import messages
from .conversation import Conversation
from .limits import DEFAULTS, Admission, Limits, TooManyConnectionsError

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
    middleware = [
        Middleware(TrustedHostMiddleware, allowed_hosts=list(access.hosts)),
        Middleware(BaseHTTPMiddleware, with_headers),
    ]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


async def converse(conversation: Conversation, hello: messages.Message, admission: Admission) -> None:
    """Run an accepted connection from the greeting to its end, or refuse it if too many are connected."""
    socket = conversation.socket
    try:
        with admission.place(socket.client.host if socket.client else ""):
            await conversation.send(hello)
            await conversation.run()
    except TooManyConnectionsError as full:
        await conversation.send(messages.error(str(full)))
        await socket.close(TRY_AGAIN_LATER)
    except (WebSocketDisconnect, asyncio.CancelledError):  # the client has disconnected, or the server stops
        pass


async def with_headers(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Add HEADERS to every response."""
    response = await call_next(request)
    response.headers.update(HEADERS)
    return response
