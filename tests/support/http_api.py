"""A local HTTP API with pages of JSON, which can fail in all the ways in which such servers do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Self
from urllib.parse import parse_qsl, urlsplit

import pytest

_SETTLED_SECONDS = 10.0
_POLL_SECONDS = 0.01  # in which it notices that it is to stop


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: object = None


@dataclass(frozen=True)
class Reply:
    """An answer: `body` as JSON, or bytes as they are. One that is cut has fewer bytes than it says."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    packed: bool = False
    cut: bool = False

    @property
    def content(self) -> bytes:
        text = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return gzip.compress(text) if self.packed else text


Answering = Callable[[Asked], Reply]


class HttpApi:
    """Answers by what the path of a request has been given; keeps every request."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.routes: dict[str, Answering] = {}
        self._serving = 0
        self._settled = Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def reply(self, path: str, *replies: Reply) -> None:
        """Give one reply after the other for a path; the last one stays."""
        left = list(replies)
        self.routes[path] = lambda _: left.pop(0) if len(left) > 1 else left[0]

    def asked(self, path: str) -> list[Asked]:
        """Return the requests for a path."""
        return [each for each in self.requests if each.path == path]

    @property
    def serving(self) -> int:
        """How many connections are open, once those that are closing have closed."""
        with self._settled:
            self._settled.wait_for(lambda: not self._serving, _SETTLED_SECONDS)
            return self._serving

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _count(self, change: int) -> None:
        with self._settled:
            self._serving += change
            self._settled.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                api._count(1)
                super().setup()

            def finish(self) -> None:
                super().finish()
                api._count(-1)

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(
                    self.command,
                    parts.path,
                    dict(parse_qsl(parts.query, keep_blank_values=True)),
                    dict(self.headers),
                    json.loads(text) if text else None,
                )
                api.requests.append(asked)
                answering = api.routes.get(parts.path)
                reply = Reply({"error": "not found"}, 404) if answering is None else answering(asked)
                content = reply.content
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.packed:
                    self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if reply.cut else content)

            do_POST = do_GET  # noqa: N815 - the name that the base class calls

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


@pytest.fixture
def http_api() -> Iterator[HttpApi]:
    """A server on a port of its own, for one test."""
    with HttpApi() as api:
        yield api
