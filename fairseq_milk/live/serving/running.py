"""Runs the server."""

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
    """host, port: where to listen.  origins: addresses of the page behind a proxy, if there is one.

    proxy: the address of that proxy, whose X-Forwarded-For header is then trusted.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    origins: Sequence[str] = ()
    proxy: Optional[str] = None

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def access(self) -> Access:
        """A local server answers only to local names, so that other pages cannot reach it under their own name."""
        parts = [urlsplit(origin) for origin in self.origins]
        for origin, (scheme, netloc, *rest) in zip(self.origins, parts):
            if scheme not in ("http", "https") or not netloc or any(rest):
                raise UserError(f"--origin must be like https://translate.example.org, got {origin}")
        named = [part.hostname or "" for part in parts]
        return Access([*LOCAL_NAMES, self.host, *named] if self.local or named else ["*"], self.origins)

    def listen(self) -> socket.socket:
        """The listening socket; UserError if the address is not available."""
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
    """Run until SIGTERM (returns 0) or Ctrl-C (KeyboardInterrupt).  ready: called with the URL when it accepts."""
    listening = address.listen()
    server = uvicorn.Server(configuration(app, address, limits))
    ready(url_of(listening))
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)  # uvicorn raises it again after it has stopped
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
        ws_ping_interval=None,  # no ping timeout: under load a pong is delayed; `Limits` closes idle clients
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=5,
    )
