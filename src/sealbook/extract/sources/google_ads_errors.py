"""Classes the failures of Google Ads requests as transient, quota or permanent, by their codes (R-CTL-7)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sealbook.errors import Forbidden, Permanent, QuotaExceeded, QuotaScope, SealbookError, Transient

Code = tuple[str, str]
"""A kind of error and its name, such as `("quota_error", "RESOURCE_EXHAUSTED")`."""

_CLASS_OF_STATUS: Mapping[str, type[SealbookError]] = {
    "UNAVAILABLE": Transient,
    "INTERNAL": Transient,
    "DEADLINE_EXCEEDED": Transient,
    "RESOURCE_EXHAUSTED": QuotaExceeded,
    "UNAUTHENTICATED": Forbidden,
    "PERMISSION_DENIED": Forbidden,
}
_ACCESS = frozenset({"authentication_error", "authorization_error"})
"""Kinds of errors that are about who asks for which account: whatever day it is."""
_TRANSIENT_CODES = frozenset(
    ("internal_error", name) for name in ("INTERNAL_ERROR", "TRANSIENT_ERROR", "DEADLINE_EXCEEDED")
)
_UNKNOWN_CODE = ("unknown_error", "UNKNOWN")
_VAGUE_CODES = frozenset(
    {
        _UNKNOWN_CODE,
        ("internal_error", "UNSPECIFIED"),
        ("internal_error", "UNKNOWN"),
        ("internal_error", "ERROR_CODE_NOT_PUBLISHED"),
    }
)
_STATUS_DETAILS = "grpc-status-details-bin"
_REMEDIES = {
    "authentication_error": "Check the credentials.",
    "authorization_error": "Check that the account is enabled, and that this login customer may read it.",
    "query_error": "Correct the text of the query.",
}

_CLOUD_PROJECT_REMEDY = "Have the Cloud project of the credentials approved for the Google Ads API."


def request_errors() -> tuple[type[Exception], ...]:
    """Return every class that a request of the official client can raise."""
    import grpc
    from google.ads.googleads.errors import GoogleAdsException
    from google.api_core.exceptions import GoogleAPICallError

    return GoogleAdsException, GoogleAPICallError, grpc.RpcError


def classed(error: Exception, what: object, api_version: str) -> SealbookError:
    """Return the error to raise for one of `request_errors` that ended what was asked."""
    call = _call_of(error)
    metadata = dict(call.trailing_metadata() or ())
    failure = _failure(metadata, api_version)
    codes = [_code(item.error_code) for item in failure.errors]
    status: str = call.code().name
    message = f"{what}: Google Ads answered {status}: {_reasons(failure, codes) or call.details()}"
    if failure.request_id:
        message += f" (request {failure.request_id})"
    kind = _class_of(codes, status)
    if kind is QuotaExceeded:
        return QuotaExceeded(message, scope=_scope(failure), retry_after=_retry_after(failure, metadata))
    if issubclass(kind, Transient):
        return kind(message, retry_after=_retry_after(failure, metadata))
    return kind(message, remedy=next(filter(None, map(_remedy, codes)), None))


def _remedy(code: Code) -> str | None:
    kind, name = code
    return _CLOUD_PROJECT_REMEDY if name.startswith("CLOUD_PROJECT_") else _REMEDIES.get(kind)


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
        return _UNKNOWN_CODE
    names = error_code.DESCRIPTOR.fields_by_name[kind].enum_type.values_by_number
    number = getattr(error_code, kind)
    return kind, names[number].name if number in names else str(number)


def _class_of(codes: list[Code], status: str) -> type[SealbookError]:
    """Go by the codes, and by the status of gRPC where they tell nothing. One permanent reason is enough."""
    told = {_class_of_code(code) for code in codes if code not in _VAGUE_CODES}
    for kind in (Permanent, Forbidden, QuotaExceeded, Transient):
        if kind in told:
            return kind
    return _CLASS_OF_STATUS.get(status, Permanent)


def _class_of_code(code: Code) -> type[SealbookError]:
    if code in _TRANSIENT_CODES:
        return Transient
    if code[0] in _ACCESS:
        return Forbidden
    return QuotaExceeded if code[0] == "quota_error" else Permanent


def _reasons(failure: Any, codes: list[Code]) -> str:
    return "; ".join(
        f"{'.'.join(code)}: {item.message}" for code, item in zip(codes, failure.errors, strict=True)
    )


def _scope(failure: Any) -> QuotaScope:
    """Return whose quota is used up: the developer token serves the whole source."""
    for item in failure.errors:
        details = item.details.quota_error_details
        scopes = details.DESCRIPTOR.fields_by_name["rate_scope"].enum_type.values_by_name
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
