"""Health and metrics of a loop, for whoever supervises it: over HTTP, on this machine only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sealbook.config import Settings
from sealbook.control.journal import Journal
from sealbook.control.metrics import metrics_text, schedule_samples
from sealbook.errors import ConfigError, SealbookError
from sealbook.ledger import LedgerReader

ADDRESS = "127.0.0.1"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """What is answered: whether the loop is alive, and its metrics with those of the schedule."""

    def __init__(self, journal: Journal, reader: LedgerReader, settings: Settings) -> None:
        self._journal = journal
        self._reader = reader
        self._settings = settings
        self._patience = 2 * settings.control.lease.total_seconds()

    def is_alive(self) -> bool:
        """Tell whether the loop gave a sign of life within two leases: a claim, a result, a wait."""
        return time.monotonic() - self._journal.signed_at < self._patience

    def metrics(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        return metrics_text([*self._journal.samples(), *schedule_samples(self._reader, self._settings)])


@contextmanager
def answering(health: Health, port: int) -> Iterator[int]:
    """Answer on a port of this machine while the block lasts; 0 takes one that is free. Yield the port."""
    try:
        server = ThreadingHTTPServer((ADDRESS, port), _handler(health))
    except OSError as error:
        raise ConfigError(
            f"port {port} cannot be had: {error.strerror}", remedy="Give another one: --port N."
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _handler(health: Health) -> type[BaseHTTPRequestHandler]:
    def healthz() -> tuple[HTTPStatus, str]:
        if health.is_alive():
            return HTTPStatus.OK, "ok\n"
        return HTTPStatus.SERVICE_UNAVAILABLE, "the loop gives no sign of life\n"

    def metrics() -> tuple[HTTPStatus, str]:
        try:
            return HTTPStatus.OK, health.metrics()
        except SealbookError as error:  # the ledger cannot be asked
            return HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n"

    pages: dict[str, Callable[[], tuple[HTTPStatus, str]]] = {"/healthz": healthz, "/metrics": metrics}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            status, text = (HTTPStatus.NOT_FOUND, "not here\n") if page is None else page()
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", _TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's name
            """Say nothing: who asks every few seconds is no news."""
            del format, arguments

    return Handler
