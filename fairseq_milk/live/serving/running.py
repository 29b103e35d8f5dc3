"""From addresses and options to a running server."""

import ipaddress
import signal
import socket
from typing import Callable, NamedTuple, Optional, Sequence
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette

from ...console.errors import UserError
from .app import Access
from .limits import Limits

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "[::1]")


class Address(NamedTuple):
    """host, port: where to listen.  origins: under which the page is reached through a proxy, if there is one.

    proxy: the address of that proxy, which is then believed when it says where a client comes from.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    origins: Sequence[str] = ()
    proxy: Optional[str] = None

    @property
    def local(self) -> bool:
        """Only this machine can reach it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def access(self) -> Access:
        """A server for this machine answers to its own names only: a page elsewhere cannot reach it by another name."""
        parts = [urlsplit(origin) for origin in self.origins]
        for origin, (scheme, netloc, *rest) in zip(self.origins, parts):
            if scheme not in ("http", "https") or not netloc or any(rest):
                raise UserError(f"--origin must be like https://translate.example.org, got {origin}")
        named = [part.hostname or "" for part in parts]
        return Access([*LOCAL_NAMES, self.host, *named] if self.local or named else ["*"], self.origins)

    def listen(self) -> socket.socket:
        """UserError if it cannot be had."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=1024)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"cannot listen on {self.host}, port {self.port}: {reason} (--host, --port)") from error


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(app: Starlette, address: Address, limits: Limits, ready: Callable[[str], None]) -> int:
    """Until SIGTERM (0) or Ctrl-C (KeyboardInterrupt).  ready: is told the URL once connections are taken."""
    listening = address.listen()
    server = uvicorn.Server(configuration(app, address, limits))
    ready(url_of(listening))
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)  # uvicorn raises it again when it has ended
    try:
        server.run(sockets=[listening])
    finally:
        signal.signal(signal.SIGTERM, before)
        listening.close()
    return 0


def configuration(app: Starlette, address: Address, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=address.proxy is not None,
        forwarded_allow_ips=address.proxy,
        ws="websockets-sansio",
        ws_max_size=limits.message_bytes,
        ws_ping_interval=None,  # under load a pong waits behind the words before it; Limits notice who is gone
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=5,
    )
