"""Answering on an address until the command is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from sealbook.errors import ConfigError

_PATIENCE_SECONDS = 2
"""How long a stop waits for answers that are being given; streams end at once."""


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket on an address; port 0 takes one that is free. ConfigError if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"{host} port {port} cannot be had: {error.strerror or error}",
            remedy="Give another one: --port N.",
        ) from error
    return bound


def make_server(app: Starlette, ready: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """Return what answers for a console; `ready` is called once it does."""
    # Nobody's headers say where a request comes from but those that the guard knows of.
    config = uvicorn.Config(
        app,
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="on",
        ws="none",  # nothing here speaks it
        timeout_graceful_shutdown=_PATIENCE_SECONDS,
    )
    return _Server(config, ready, app.state.console.live.end)


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], end_streams: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._end_streams = end_streams

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say so once it answers."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let streams end, which would go on for ever, and wait for the rest."""
        self._end_streams()
        await super().shutdown(sockets)
