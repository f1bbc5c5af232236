"""A receiver of alerts: a real HTTP server that can be down, refuse, and be held up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class AlertServer:
    """Keeps every batch that it was sent, with its headers; answers with `code`, once it may."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.code = 204
        self.location: str | None = None
        self.may_answer = Event()
        self.may_answer.set()
        self.has_one = Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/t0ken"

    @property
    def notices(self) -> list[dict[str, Any]]:
        return [notice for batch in self.batches for notice in batch]

    @contextmanager
    def up(self) -> Iterator[None]:
        """Listen while the block lasts, at the same port each time."""
        server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self.port = server.server_port
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        keeper = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                keeper.batches.append(json.loads(body))
                keeper.headers.append(dict(self.headers))
                keeper.has_one.set()
                keeper.may_answer.wait(60)
                self.send_response(keeper.code)
                if keeper.location is not None:
                    self.send_header("Location", keeper.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler
