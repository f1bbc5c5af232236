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
from sealbook.errors import ConfigError, SealbookError
from sealbook.ledger import LedgerReader

ADDRESS = "127.0.0.1"
_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, dict[str, str], float]
_HELP = {
    "sealbook_control_batches_total": "Batches of claims that were worked on.",
    "sealbook_control_batch_seconds_total": "Seconds spent on batches.",
    "sealbook_control_failures_total": "Batches and rounds that broke off by what may pass.",
    "sealbook_control_held_partitions": "Partitions that this loop is working on.",
    "sealbook_control_partitions_total": "Results of stages, by source and how they ended.",
    "sealbook_control_requests_total": "Requests that were sent, by source.",
    "sealbook_control_work": "Open work of the book, by lane and how it stands.",
    "sealbook_control_budget_used_requests": "Requests that count against the budget of a source, by lane.",
    "sealbook_control_budget_limit_requests": "Requests that a source may be asked in any 24 hours.",
}


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
        lines: list[str] = []
        said: set[str] = set()
        for name, labels, value in sorted(self._samples(), key=lambda each: each[0]):
            if name not in said:
                kind = "counter" if name.endswith("_total") else "gauge"
                lines += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} {kind}"]
                said.add(name)
            named = ",".join(f'{label}="{text}"' for label, text in labels.items())
            lines.append(f"{name}{{{named}}} {value:g}" if named else f"{name} {value:g}")
        return "\n".join(lines) + "\n"

    def _samples(self) -> Iterator[Sample]:
        yield from self._journal.samples()
        for lane, counts in self._reader.schedule.lanes().items():
            for standing, number in counts._asdict().items():
                yield "sealbook_control_work", {"lane": lane.value, "standing": standing}, number
        for (source, lane), number in sorted(self._reader.schedule.spent().items()):
            labels = {"source": source, "lane": lane.value}
            yield "sealbook_control_budget_used_requests", labels, number
        for source, limit in self._settings.control.requests_per_day.items():
            yield "sealbook_control_budget_limit_requests", {"source": source}, limit


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
