"""A local gRPC server that speaks GoogleAdsService with the message types of the official client.

Nothing of it is imported before a server is made: the client takes more than a second to import.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from typing import Any, Self

import pytest

from sealbook.model import PartitionKey
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query

API_VERSION = "v26"
CUSTOMER_ID = "1234567890"
DAY = date(2026, 1, 1)
_SETTLED_SECONDS = 10.0
GAQL = "SELECT campaign.id FROM campaign WHERE segments.date = '{logical_date}'"


@dataclass(frozen=True)
class Batch:
    """One message of a stream: rows as nested mappings of their fields, and the field mask."""

    paths: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Failure:
    """The end of a stream by an error: a gRPC status, GoogleAdsFailure errors, and a google.rpc.RetryInfo.

    An error has the fields of GoogleAdsError: `{"error_code": {"query_error": "UNRECOGNIZED_FIELD"}}`.
    """

    status: str
    errors: Sequence[Mapping[str, Any]] = ()
    message: str = "told to fail"
    request_id: str = "request-1"
    retry_info_seconds: float | None = None
    metadata: Sequence[tuple[str, bytes]] = ()


@dataclass(frozen=True)
class Request:
    """What the server was asked, with the metadata that came along."""

    customer_id: str
    query: str
    metadata: Mapping[str, str] = field(repr=False)


Reply = Sequence[Batch | Failure]


class GoogleAdsServer:
    """Answers each SearchStream as its customer was told to; all others get `default`.

    >>> with GoogleAdsServer(default=[Batch(["campaign.id"], [{"campaign": {"id": 1}}])]) as server:
    ...     source = load_source("google_ads", {"endpoint": server.endpoint})
    """

    def __init__(
        self,
        *,
        default: Reply = (),
        latency_seconds: float = 0.0,
        threads: int = 64,
        api_version: str = API_VERSION,
        credentials: Any = None,
    ) -> None:
        """Prepare a server; `latency_seconds` passes before each answer, `credentials` make it speak TLS."""
        import grpc

        self._types = import_module(f"google.ads.googleads.{api_version}.services.types.google_ads_service")
        self._errors = import_module(f"google.ads.googleads.{api_version}.errors.types.errors")
        self._failure_key = f"google.ads.googleads.{api_version}.errors.googleadsfailure-bin"
        self._customers = import_module(f"google.ads.googleads.{api_version}.services.types.customer_service")
        self._latency_seconds = latency_seconds
        self._default = self._encode(default)
        self.accounts: Sequence[str] | Failure = (CUSTOMER_ID,)
        """What it answers whoever asks which accounts there are."""
        self.answer: Callable[[str, str], Reply | None] = lambda _customer_id, _query: None
        """Asked first about each stream: for what depends on the query's text."""
        self._replies: dict[str, list[list[bytes | Failure]]] = {}
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.cancelled = threading.Event()
        self._streams = 0
        self._settled = threading.Condition()
        self._server = grpc.server(ThreadPoolExecutor(threads))
        self._server.add_generic_rpc_handlers(
            (self._handlers(api_version), self._account_handlers(api_version))
        )
        if credentials is None:
            port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            port = self._server.add_secure_port("localhost:0", credentials)
        self.endpoint = f"127.0.0.1:{port}" if credentials is None else f"localhost:{port}"

    @property
    def streaming(self) -> int:
        """How many streams are open, once those that are ending have ended."""
        with self._settled:
            self._settled.wait_for(lambda: not self._streams, _SETTLED_SECONDS)
            return self._streams

    def _count(self, change: int) -> None:
        with self._settled:
            self._streams += change
            self._settled.notify_all()

    def reply(self, customer_id: str, *replies: Reply) -> None:
        """Give a customer's tries one reply after the other; the last one stays."""
        self._replies[customer_id] = [self._encode(reply) for reply in replies]

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(grace=None).wait()

    def _handlers(self, api_version: str) -> Any:
        import grpc

        # Answers are encoded once, when they are set, so that a benchmark does not measure the server.
        handler = grpc.unary_stream_rpc_method_handler(
            self._search_stream,
            request_deserializer=self._types.SearchGoogleAdsStreamRequest.pb().FromString,
            response_serializer=bytes,
        )
        service = f"google.ads.googleads.{api_version}.services.GoogleAdsService"
        return grpc.method_handlers_generic_handler(service, {"SearchStream": handler})

    def _account_handlers(self, api_version: str) -> Any:
        import grpc

        kind = self._customers.ListAccessibleCustomersResponse
        handler = grpc.unary_unary_rpc_method_handler(
            self._list_accounts,
            request_deserializer=self._customers.ListAccessibleCustomersRequest.pb().FromString,
            response_serializer=kind.serialize,
        )
        service = f"google.ads.googleads.{api_version}.services.CustomerService"
        return grpc.method_handlers_generic_handler(service, {"ListAccessibleCustomers": handler})

    def _list_accounts(self, _request: Any, context: Any) -> Any:
        if isinstance(self.accounts, Failure):
            self._fail(self.accounts, context)
            raise AssertionError("a failure ends the call")
        names = [f"customers/{customer_id}" for customer_id in self.accounts]
        return self._customers.ListAccessibleCustomersResponse(resource_names=names)

    def _search_stream(self, request: Any, context: Any) -> Iterator[bytes]:
        context.add_callback(self.cancelled.set)
        self._count(1)
        context.add_callback(lambda: self._count(-1))
        metadata = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        with self._lock:
            self.requests.append(Request(request.customer_id, request.query, metadata))
            answer = self.answer(request.customer_id, request.query)
            reply = self._reply_to(self.requests[-1]) if answer is None else self._encode(answer)
        time.sleep(self._latency_seconds)
        for step in reply:
            if isinstance(step, Failure):
                self._fail(step, context)
            else:
                yield step

    def _reply_to(self, request: Request) -> list[bytes | Failure]:
        replies = self._replies.get(request.customer_id, [self._default])
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def _fail(self, failure: Failure, context: Any) -> None:
        import grpc

        context.set_trailing_metadata(self._trailing_metadata(failure))
        context.abort(grpc.StatusCode[failure.status], failure.message)

    def _trailing_metadata(self, failure: Failure) -> list[tuple[str, Any]]:
        from google.protobuf.duration_pb2 import Duration
        from google.rpc.error_details_pb2 import RetryInfo
        from google.rpc.status_pb2 import Status

        metadata: list[tuple[str, Any]] = [("request-id", failure.request_id), *failure.metadata]
        if failure.errors:
            kind = self._errors.GoogleAdsFailure
            message = kind(errors=list(failure.errors), request_id=failure.request_id)
            metadata.append((self._failure_key, kind.serialize(message)))
        if failure.retry_info_seconds is not None:
            delay = Duration()
            delay.FromNanoseconds(int(failure.retry_info_seconds * 1e9))
            import grpc

            status = Status(code=grpc.StatusCode[failure.status].value[0], message=failure.message)
            status.details.add().Pack(RetryInfo(retry_delay=delay))
            metadata.append(("grpc-status-details-bin", status.SerializeToString()))
        return metadata

    def _encode(self, reply: Reply) -> list[bytes | Failure]:
        return [step if isinstance(step, Failure) else self._encode_batch(step) for step in reply]

    def _encode_batch(self, batch: Batch) -> bytes:
        kind = self._types.SearchGoogleAdsStreamResponse
        answer = kind(results=[dict(row) for row in batch.rows], field_mask={"paths": list(batch.paths)})
        encoded: bytes = kind.serialize(answer)
        return encoded


def google_ads_key(customer_id: str = CUSTOMER_ID, day: date = DAY) -> PartitionKey:
    """Return a key of the query of `google_ads_query`."""
    return PartitionKey("google_ads", customer_id, "campaign_daily", day)


def google_ads_query(text: str = GAQL, api_version: str | None = API_VERSION) -> Query:
    """Return a query; the server answers as it was told, whatever the text says."""
    contract = Contract("campaign_daily", "1", (Column("campaign_id", ColumnType.BIGINT),))
    return Query("google_ads", "campaign_daily", text, "1", {"1": contract}, api_version)


@pytest.fixture
def google_ads_server() -> Iterator[GoogleAdsServer]:
    """A server on a port of its own, for one test."""
    with GoogleAdsServer() as server:
        yield server
