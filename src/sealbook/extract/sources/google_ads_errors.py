"""Classes the failures of Google Ads requests as transient, quota or permanent, by their codes (R-CTL-7)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sealbook.errors import BadQuery, QuotaExceeded, QuotaScope, SealbookError, Transient
from sealbook.extract.sources.google_ads_codes import UNKNOWN_CODE, Code, class_of, remedy_of
from sealbook.extract.sources.google_ads_places import Place, place_of

_STATUS_DETAILS = "grpc-status-details-bin"


def request_errors() -> tuple[type[Exception], ...]:
    """Return every class that a request of the official client can raise."""
    import grpc
    from google.ads.googleads.errors import GoogleAdsException
    from google.api_core.exceptions import GoogleAPICallError

    return GoogleAdsException, GoogleAPICallError, grpc.RpcError


def classed(error: Exception, what: object, api_version: str, text: str = "") -> SealbookError:
    """Return the error to raise for one of `request_errors`; `text` is the query that was asked."""
    call = _call_of(error)
    metadata = dict(call.trailing_metadata() or ())
    failure = _failure(metadata, api_version)
    codes = [_code(item.error_code) for item in failure.errors]
    status: str = call.code().name
    kind = class_of(codes, status)
    place = _place(failure, codes, text) if kind is BadQuery else None
    message = f"{what}: Google Ads answered {status}: {_reasons(failure, codes) or call.details()}"
    if place is not None:
        message += f" (at {place} of the query)"
    if failure.request_id:
        message += f" (request {failure.request_id})"
    if kind is QuotaExceeded:
        return QuotaExceeded(message, scope=_scope(failure), retry_after=_retry_after(failure, metadata))
    if issubclass(kind, Transient):
        return kind(message, retry_after=_retry_after(failure, metadata))
    if kind is BadQuery:
        excerpt = None if place is None else place.excerpt
        return BadQuery(message, excerpt=excerpt, remedy=remedy_of(codes))
    return kind(message, remedy=remedy_of(codes))


def _call_of(error: Any) -> Any:
    """Find the gRPC call in what the layers of the client made of its failure."""
    from google.ads.googleads.errors import GoogleAdsException
    from google.api_core.exceptions import GoogleAPICallError

    if isinstance(error, GoogleAdsException):
        return error.error
    if isinstance(error, GoogleAPICallError):
        return error.response
    return error


def _failure(metadata: Mapping[str, Any], api_version: str) -> Any:
    """Read the GoogleAdsFailure from the trailing metadata; an empty one if there is none to read.

    The client does it too, but not for INTERNAL and RESOURCE_EXHAUSTED, where it is needed most.
    """
    from google.protobuf.message import DecodeError

    package = f"google.ads.googleads.{api_version}.errors"
    kind = import_module(f"{package}.types.errors").GoogleAdsFailure.pb()
    try:
        return kind.FromString(metadata.get(f"{package}.googleadsfailure-bin", b""))
    except DecodeError:
        return kind()


def _code(error_code: Any) -> Code:
    kind = error_code.WhichOneof("error_code")
    if kind is None:  # an error that the server has learnt since the client was made
        return UNKNOWN_CODE
    names = error_code.DESCRIPTOR.fields_by_name[kind].enum_type.values_by_number
    number = getattr(error_code, kind)
    return kind, names[number].name if number in names else str(number)


def _place(failure: Any, codes: list[Code], text: str) -> Place | None:
    """Return where in the query the first error of it is that names something in it."""
    places = (
        place_of(text, item.trigger.string_value, item.message)
        for (kind, _), item in zip(codes, failure.errors, strict=True)
        if kind == "query_error"
    )
    return next(filter(None, places), None)


def _reasons(failure: Any, codes: list[Code]) -> str:
    """Say every reason, and which rate is used up where it is one of a quota."""
    said = []
    for code, item in zip(codes, failure.errors, strict=True):
        rate = item.details.quota_error_details.rate_name
        said.append(f"{'.'.join(code)}: {item.message}{f' (rate {rate})' if rate else ''}")
    return "; ".join(said)


def _scope(failure: Any) -> QuotaScope:
    """Return whose quota is used up; that of the Cloud project serves the whole source."""
    for item in failure.errors:
        details = item.details.quota_error_details
        scopes = details.DESCRIPTOR.fields_by_name["rate_scope"].enum_type.values_by_name
        # By its old name: the project has what the developer token had.
        if details.rate_scope == scopes["DEVELOPER"].number:
            return QuotaScope.SOURCE
    return QuotaScope.ACCOUNT


def _retry_after(failure: Any, metadata: Mapping[str, Any]) -> float | None:
    """Return the longest wait in seconds that the server asks for, in either place where it can."""
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status

    delays = [
        item.details.quota_error_details.retry_delay
        for item in failure.errors
        if item.details.quota_error_details.HasField("retry_delay")
    ]
    for detail in Status.FromString(metadata.get(_STATUS_DETAILS, b"")).details:
        info = RetryInfo()
        if detail.Unpack(info) and info.HasField("retry_delay"):
            delays.append(info.retry_delay)
    return max((delay.seconds + delay.nanos / 1e9 for delay in delays), default=None)
