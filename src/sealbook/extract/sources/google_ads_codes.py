"""What error codes of Google Ads ask for: another try, a pause, other access, or another query (R-CTL-7).

A code is a kind and a name, as in `quota_error.RESOURCE_EXHAUSTED`. Whatever is not listed is permanent:
almost all other codes are of requests that change something, which are never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sealbook.errors import (
    BadQuery,
    Forbidden,
    PastHorizon,
    Permanent,
    QuotaExceeded,
    SealbookError,
    Transient,
)

Code = tuple[str, str]
"""A kind of error and its name."""

UNKNOWN_CODE: Code = ("unknown_error", "UNKNOWN")
"""Of an error that the server has learnt since the client was made."""

_VAGUE = {
    UNKNOWN_CODE,
    ("internal_error", "UNSPECIFIED"),
    ("internal_error", "UNKNOWN"),
    ("internal_error", "ERROR_CODE_NOT_PUBLISHED"),
}
_CLASS_OF_KIND: Mapping[str, type[SealbookError]] = {
    "quota_error": QuotaExceeded,
    "internal_error": Transient,
    "query_error": BadQuery,
    "authentication_error": Forbidden,
    "authorization_error": Forbidden,
}
CLASS_OF_CODE: Mapping[Code, type[SealbookError]] = {
    ("quota_error", "ACCESS_PROHIBITED"): Permanent,
    ("database_error", "CONCURRENT_MODIFICATION"): Transient,
    ("database_error", "DATA_CONSTRAINT_VIOLATION"): Transient,
    ("request_error", "EXPIRED_PAGE_TOKEN"): Transient,
    ("date_range_error", "REQUESTED_DATE_GRANULARITY_NOT_SUPPORTED"): PastHorizon,
    ("date_error", "EARLIER_THAN_MINIMUM_DATE"): PastHorizon,
    ("change_event_error", "START_DATE_TOO_OLD"): PastHorizon,
    ("change_status_error", "START_DATE_TOO_OLD"): PastHorizon,
}
"""Codes that differ from others of their kind."""

_CLASS_OF_STATUS: Mapping[str, type[SealbookError]] = {
    "UNAVAILABLE": Transient,
    "INTERNAL": Transient,
    "DEADLINE_EXCEEDED": Transient,
    "RESOURCE_EXHAUSTED": QuotaExceeded,
    "UNAUTHENTICATED": Forbidden,
    "PERMISSION_DENIED": Forbidden,
}
_WORST_FIRST = (Permanent, Forbidden, BadQuery, PastHorizon, QuotaExceeded, Transient)

_PROJECT = "Have the Cloud project of the credentials approved for the Google Ads API"
_LOGIN = "Set `login_customer_id` to a manager account above this one, or give the user access to it."
_ORGANISATION = "Move the Cloud project of the credentials below an organisation that Google has approved."
_ACCOUNT = "Take the account out of the settings, or have it enabled in Google Ads."
_LESS = "Ask for less: take segments out of the query, or make two of it."
_KIND_REMEDIES: Mapping[str, str] = {
    "authentication_error": "Check the credentials.",
    "authorization_error": "Check that the account is enabled, and that this login customer may read it.",
    "header_error": _LOGIN,
    "query_error": "Correct the text of the query.",
    "not_allowlisted_error": "Take out of the query what this account may not use, or ask Google for it.",
}
REMEDIES: Mapping[Code, str] = {
    ("authorization_error", "CLOUD_PROJECT_NOT_APPROVED_FOR_PRODUCTION"): f"{_PROJECT}, for real accounts.",
    ("authorization_error", "CLOUD_PROJECT_NOT_UNDER_ORGANIZATION"): _ORGANISATION,
    ("authorization_error", "PROJECT_DISABLED"): "Enable the Google Ads API in the Cloud project.",
    ("request_error", "CLOUD_PROJECT_NOT_FOUND"): "Use credentials that belong to a Cloud project.",
    # As older versions call what is a matter of the Cloud project by now.
    ("authorization_error", "DEVELOPER_TOKEN_NOT_APPROVED"): f"{_PROJECT}, for real accounts.",
    ("authorization_error", "DEVELOPER_TOKEN_NOT_ON_ALLOWLIST"): f"{_PROJECT}.",
    ("authorization_error", "DEVELOPER_TOKEN_PROHIBITED"): f"{_PROJECT}.",
    ("authentication_error", "DEVELOPER_TOKEN_INVALID"): f"{_PROJECT}.",
    ("request_error", "DEVELOPER_TOKEN_PARAMETER_MISSING"): f"{_PROJECT}.",
    ("authentication_error", "ORGANIZATION_NOT_ASSOCIATED_WITH_DEVELOPER_TOKEN"): _ORGANISATION,
    ("authentication_error", "ORGANIZATION_NOT_APPROVED"): _ORGANISATION,
    ("authentication_error", "ORGANIZATION_NOT_RECOGNIZED"): _ORGANISATION,
    ("authentication_error", "CUSTOMER_NOT_FOUND"): "Correct the account in the settings.",
    ("authentication_error", "NOT_ADS_USER"): "Give the user of the credentials access to an account.",
    ("authentication_error", "TWO_STEP_VERIFICATION_NOT_ENROLLED"): "Turn on two-step verification.",
    ("authorization_error", "USER_PERMISSION_DENIED"): _LOGIN,
    ("authorization_error", "INVALID_LOGIN_CUSTOMER_ID_SERVING_CUSTOMER_ID_COMBINATION"): _LOGIN,
    ("authorization_error", "CUSTOMER_NOT_ENABLED"): _ACCOUNT,
    ("authorization_error", "ACTION_NOT_PERMITTED_FOR_SUSPENDED_ACCOUNT"): _ACCOUNT,
    ("authorization_error", "INCOMPLETE_SIGNUP"): _ACCOUNT,
    ("authorization_error", "MISSING_TOS"): "Have the terms of service accepted in Google Ads.",
    ("authorization_error", "METRIC_ACCESS_DENIED"): "Take out of the query the metrics that are denied.",
    ("request_error", "LOGIN_CUSTOMER_ID_PARAMETER_MISSING"): _LOGIN,
    ("request_error", "INVALID_CUSTOMER_ID"): "Correct the account in the settings.",
    ("request_error", "CANNOT_BE_EXECUTED_BY_MANAGER_ACCOUNT"): "Name the accounts below the manager.",
    ("query_error", "REQUESTED_METRICS_FOR_MANAGER"): "Name the accounts below the manager.",
    ("request_error", "UNSUPPORTED_VERSION"): "Set `api_version` in the catalogue to a later one.",
    ("request_error", "RPC_DEADLINE_TOO_SHORT"): "Raise `timeout_seconds` among the options of the source.",
    ("quota_error", "ACCESS_PROHIBITED"): f"{_PROJECT}.",
    ("resource_count_limit_exceeded_error", "RESPONSE_ROW_LIMIT_EXCEEDED"): _LESS,
    ("size_limit_error", "RESPONSE_SIZE_LIMIT_EXCEEDED"): _LESS,
}


def class_of(codes: Iterable[Code], status: str) -> type[SealbookError]:
    """Go by the codes, and by the status of gRPC where they tell nothing. One permanent reason is enough."""
    told = {_class_of_code(code) for code in codes if code not in _VAGUE}
    by_status = _CLASS_OF_STATUS.get(status, Permanent)
    return next((kind for kind in _WORST_FIRST if kind in told), by_status)


def remedy_of(codes: Iterable[Code]) -> str | None:
    """Return the way out of the first error that has one."""
    found = (REMEDIES.get(code) or _KIND_REMEDIES.get(code[0]) for code in codes)
    return next(filter(None, found), None)


def _class_of_code(code: Code) -> type[SealbookError]:
    return CLASS_OF_CODE.get(code) or _CLASS_OF_KIND.get(code[0], Permanent)
