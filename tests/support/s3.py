"""An S3 server that is spoken to over HTTP, and raw stores on each kind of storage to test with."""

from __future__ import annotations

import logging
import multiprocessing
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest

from sealbook.model import PartitionKey, RunId
from sealbook.raw import RawMetadata, RawStore, Row

KEY = PartitionKey("demo", "1001", "campaign_daily", date(2026, 1, 1))
RUN = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")
EXTRACTED_AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SEAL: Mapping[str, Any] = {
    "schema_version": "v1",
    "api_version": "v21",
    "query_hash": "0" * 64,
    "extracted_at": EXTRACTED_AT,
}


def seal_rows(
    store: RawStore, rows: Iterable[Row], key: PartitionKey = KEY, run_id: str = RUN
) -> RawMetadata:
    """Write and seal in one go, as an extraction does."""
    return store.seal(key, run_id, store.write(key, run_id, rows), **SEAL)


def numbered(rows: int, writer: int = 0) -> list[Row]:
    """Make rows that say who wrote them."""
    return [{"writer": writer, "row": row} for row in range(rows)]


@dataclass(frozen=True)
class Fault:
    """What befalls a request, counted from 1, or some: applied or not, but not answered as it should be."""

    at: int
    applied: bool
    times: int = 1
    then: Callable[[], None] = lambda: None
    status: str = "500 Internal Server Error"


class S3Server:
    """moto's S3, one request at a time: by itself it would let two racing requests both create an object."""

    def __init__(self) -> None:
        # Here and not above: every test run loads this module, but few of them need the server.
        from moto.moto_server.werkzeug_app import (
            DomainDispatcherApplication,
            MotoRequestHandler,
            create_backend_app,
        )
        from werkzeug.serving import make_server

        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = Lock()
        self._fault: Fault | None = None
        self._buckets = count(1)
        self.requests = 0
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=MotoRequestHandler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def new_bucket(self) -> str:
        """Make a bucket that no other test uses."""
        name = f"bucket-{next(self._buckets)}"
        create_bucket(self.endpoint, name)
        return name

    def expect(self, fault: Fault | None) -> None:
        """Count requests from now, and let a fault befall one of them."""
        with self._lock:
            self._fault = fault
            self.requests = 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        with self._lock:
            self.requests += 1
            fault = self._fault
            if fault is None or not fault.at <= self.requests < fault.at + fault.times:
                return list(self._app(environ, start_response))
            if fault.applied:
                list(self._app(environ, lambda *_: None))
            else:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            fault.then()
            start_response(fault.status, [("Content-Length", "0")])
            return []

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def create_bucket(endpoint: str, name: str) -> None:
    """Make a bucket."""
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")).close()


def serve(told: Connection) -> None:
    """Serve in a process of its own, and tell the endpoint; it ends with its parent."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    told.send(S3Server().endpoint)
    multiprocessing.parent_process().join()  # type: ignore[union-attr]  # it is a child


def environment(endpoint: str) -> dict[str, str]:
    """Return the variables that lead to a server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1",
    }


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """Start the S3 server, once for each test process."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3_url(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A prefix in an empty bucket, reachable by what the environment says."""
    for name, value in environment(s3_server.endpoint).items():
        monkeypatch.setenv(name, value)
    s3_server.expect(None)
    return f"s3://{s3_server.new_bucket()}/raw"


@pytest.fixture
def s3_apart(processes: ForkServerContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty bucket of a server in a process of its own.

    For libraries that keep Python's lock while they wait for an answer.
    """
    here, there = processes.Pipe()
    server = processes.Process(target=serve, args=(there,), daemon=True)
    server.start()
    there.close()
    endpoint = here.recv()
    for name, value in environment(endpoint).items():
        monkeypatch.setenv(name, value)
    create_bucket(endpoint, "apart")
    yield "s3://apart"
    server.terminate()
    server.join()
    here.close()


@pytest.fixture
def folder_url(tmp_path: Path) -> str:
    """An empty folder."""
    return str(tmp_path / "raw")


@pytest.fixture(params=["folder", "s3"])
def raw_url(request: pytest.FixtureRequest) -> str:
    """An empty raw store: the test runs on each kind of storage."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def raw_store(raw_url: str) -> RawStore:
    """An empty raw store, open."""
    return RawStore.open(raw_url)
