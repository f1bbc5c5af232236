"""An S3 server behind a proxy that lets each request wait as a real one would, and counts them.

Each is a process of its own, so that neither takes the measured process its interpreter. The server is moto,
which is not quick: what it takes by itself for so many requests is measured, too.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from bench.harness import seconds_of
from sealbook.storage import open_storage
from sealbook.storage.ahead import IN_FLIGHT, ahead
from tests.support.s3 import create_bucket, environment, serve

LATENCY = 0.03
_BUCKET = "bench"


@dataclass(frozen=True)
class SlowS3:
    """The server, as what is measured sees it."""

    requests_counted: Synchronized[int]

    def url(self, name: str) -> str:
        """Return a place of that name in its bucket."""
        return f"s3://{_BUCKET}/{name}"

    @property
    def requests(self) -> int:
        """How many it has answered so far."""
        return self.requests_counted.value

    def bare_seconds(self, requests: int) -> float:
        """Return how long so many gets of a small object take, as many in flight as Sealbook has."""
        _, storage = open_storage("bench", self.url("bare"))
        storage.create("object", b"x" * 5_000)
        return seconds_of(lambda: list(ahead(storage.get, ["object"] * requests)))


def waiting(requests: int) -> float:
    """Return the seconds that requests take which only wait, as many in flight as Sealbook has."""
    return requests * LATENCY / IN_FLIGHT


@contextmanager
def slow_s3() -> Iterator[SlowS3]:
    """Start server and proxy; during the block the environment leads there, also that of new processes."""
    context = multiprocessing.get_context("spawn")
    counted = context.Value("l", 0)
    ports, port = context.Pipe()
    server = context.Process(target=serve, args=(port,), daemon=True)
    server.start()
    upstream = int(ports.recv().rpartition(":")[2])
    proxy = context.Process(target=_proxy, args=(port, upstream, counted), daemon=True)
    proxy.start()
    endpoint = f"http://127.0.0.1:{ports.recv()}"
    settings = environment(endpoint)
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        create_bucket(endpoint, _BUCKET)
        yield SlowS3(counted)
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        for process in (proxy, server):
            process.terminate()
            process.join()


def _proxy(port: Connection, upstream: int, counted: Synchronized[int]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(_header(head, b"content-length") or 0))
                counted.value += 1
                await asyncio.sleep(LATENCY)
                writer.write(await _forward(upstream, head, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is done
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    asyncio.run(run())


async def _forward(upstream: int, head: bytes, body: bytes) -> bytes:
    """Pass a request on, on a connection of its own, and return the answer, fit to keep the client's."""
    reader, writer = await asyncio.open_connection("127.0.0.1", upstream)
    writer.write(head + body)
    answer = await reader.read(-1)
    writer.close()
    top, _, content = answer.partition(b"\r\n\r\n")
    status, *headers = top.split(b"\r\n")
    kept = [
        each for each in headers if each.partition(b":")[0].lower() not in (b"connection", b"content-length")
    ]
    length = (
        _header(top + b"\r\n\r\n", b"content-length") if head.startswith(b"HEAD ") else b"%d" % len(content)
    )
    lines = [b"HTTP/1.1 " + status.partition(b" ")[2], *kept, b"Content-Length: " + (length or b"0")]
    return b"\r\n".join(lines) + b"\r\n\r\n" + content


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.partition(b":")
        if found.lower() == name:
            return value.strip()
    return None


def main() -> Any:
    """Print what the server takes by itself."""
    with slow_s3() as s3:
        for count in (1_000, 1_000):
            print(f"{count} requests: {s3.bare_seconds(count):.2f} s, only waiting {waiting(count):.2f} s")


if __name__ == "__main__":
    main()
