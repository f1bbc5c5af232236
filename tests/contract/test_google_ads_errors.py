"""Failures of Google Ads, over gRPC from a local server, are classed by their codes (R-CTL-7)."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sealbook.errors import (
    BadQuery,
    Forbidden,
    PastHorizon,
    Permanent,
    QuotaExceeded,
    QuotaScope,
    SealbookError,
    Transient,
)
from sealbook.extract.retry import RetryPolicy, with_retries
from sealbook.extract.source import Source, load_source
from tests.support.google_ads import (
    CUSTOMER_ID,
    Batch,
    Failure,
    GoogleAdsServer,
    google_ads_key,
    google_ads_query,
)
from tests.support.google_ads_limits import TOO_OLD

ROWS = Batch(["campaign.id"], [{"campaign": {"id": number}} for number in range(3)])
COLUMNS = [{"campaign_id": number} for number in range(3)]


def error(kind: str, name: str | int, message: str = "why", **details: Any) -> Mapping[str, Any]:
    return {"error_code": {kind: name}, "message": message, "details": details}


def quota(seconds: int, nanos: int = 0) -> Mapping[str, Any]:
    delay = {"retry_delay": {"seconds": seconds, "nanos": nanos}}
    return error("quota_error", "RESOURCE_TEMPORARILY_EXHAUSTED", quota_error_details=delay)


def source(server: GoogleAdsServer, **options: object) -> Source:
    return load_source("google_ads", {"endpoint": server.endpoint, **options})


def fetch(made: Source, customer_id: str = CUSTOMER_ID) -> list[Any]:
    return list(made.fetch(google_ads_key(customer_id), google_ads_query()))


def failure_of(server: GoogleAdsServer, *reply: Batch | Failure) -> SealbookError:
    server.reply(CUSTOMER_ID, list(reply))
    with pytest.raises(SealbookError) as caught:
        fetch(source(server))
    return caught.value


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure("UNAVAILABLE"), Transient),
        (Failure("INTERNAL"), Transient),
        (Failure("DEADLINE_EXCEEDED"), Transient),
        (Failure("RESOURCE_EXHAUSTED"), QuotaExceeded),
        (Failure("UNAUTHENTICATED"), Forbidden),
        (Failure("PERMISSION_DENIED"), Forbidden),
        (Failure("INVALID_ARGUMENT"), Permanent),
        (Failure("NOT_FOUND"), Permanent),
        (Failure("UNIMPLEMENTED"), Permanent),
        (Failure("UNKNOWN"), Permanent),
        (Failure("INTERNAL", [error("internal_error", "INTERNAL_ERROR")]), Transient),
        (Failure("UNAVAILABLE", [error("internal_error", "TRANSIENT_ERROR")]), Transient),
        (Failure("DEADLINE_EXCEEDED", [error("internal_error", "DEADLINE_EXCEEDED")]), Transient),
        (Failure("RESOURCE_EXHAUSTED", [error("quota_error", "RESOURCE_EXHAUSTED")]), QuotaExceeded),
        (Failure("UNAUTHENTICATED", [error("authentication_error", "OAUTH_TOKEN_EXPIRED")]), Forbidden),
        (Failure("PERMISSION_DENIED", [error("authorization_error", "CUSTOMER_NOT_ENABLED")]), Forbidden),
        (Failure("PERMISSION_DENIED", [error("authorization_error", "USER_PERMISSION_DENIED")]), Forbidden),
        (Failure("INVALID_ARGUMENT", [error("query_error", "UNRECOGNIZED_FIELD")]), BadQuery),
        (Failure("INVALID_ARGUMENT", [error("request_error", "INVALID_CUSTOMER_ID")]), Permanent),
        (Failure("INVALID_ARGUMENT", [TOO_OLD]), PastHorizon),
        (Failure("RESOURCE_EXHAUSTED", [error("quota_error", "ACCESS_PROHIBITED")]), Permanent),
        (Failure("INTERNAL", [error("database_error", "CONCURRENT_MODIFICATION")]), Transient),
    ],
    ids=str,
)
def test_a_failure_is_classed_by_its_code_and_status(
    google_ads_server: GoogleAdsServer, failure: Failure, expected: type[SealbookError]
) -> None:
    caught = failure_of(google_ads_server, failure)
    assert type(caught) is expected
    assert str(google_ads_key()) in str(caught)
    assert failure.status in str(caught)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure("INTERNAL", [error("query_error", "BAD_FIELD_NAME")]), BadQuery),
        (Failure("INVALID_ARGUMENT", [quota(1)]), QuotaExceeded),
        (Failure("INVALID_ARGUMENT", [error("internal_error", "TRANSIENT_ERROR")]), Transient),
        (Failure("INTERNAL", [error("internal_error", "TRANSIENT_ERROR"), quota(1)]), QuotaExceeded),
        (Failure("RESOURCE_EXHAUSTED", [quota(1), error("query_error", "BAD_FIELD_NAME")]), BadQuery),
    ],
    ids=str,
)
def test_codes_go_before_the_status_and_one_permanent_reason_is_enough(
    google_ads_server: GoogleAdsServer, failure: Failure, expected: type[SealbookError]
) -> None:
    assert type(failure_of(google_ads_server, failure)) is expected


@pytest.mark.parametrize(
    "vague",
    [
        error("internal_error", "ERROR_CODE_NOT_PUBLISHED"),
        error("internal_error", "UNKNOWN"),
        {"message": "of a kind that this client does not know"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("status", "expected"),
    [("UNAVAILABLE", Transient), ("RESOURCE_EXHAUSTED", QuotaExceeded), ("INVALID_ARGUMENT", Permanent)],
)
def test_where_the_code_tells_nothing_the_status_does(
    google_ads_server: GoogleAdsServer, vague: Mapping[str, Any], status: str, expected: type[SealbookError]
) -> None:
    assert type(failure_of(google_ads_server, Failure(status, [vague]))) is expected


def test_a_code_newer_than_the_client_is_reported_by_its_number(google_ads_server: GoogleAdsServer) -> None:
    caught = failure_of(google_ads_server, Failure("INVALID_ARGUMENT", [error("query_error", 9999)]))
    assert type(caught) is BadQuery
    assert "query_error.9999: why" in str(caught)


def test_details_that_cannot_be_decoded_leave_the_status_to_tell(google_ads_server: GoogleAdsServer) -> None:
    garbled = [("google.ads.googleads.v26.errors.googleadsfailure-bin", b"\xff\xff\xff")]
    caught = failure_of(google_ads_server, Failure("RESOURCE_EXHAUSTED", metadata=garbled))
    assert isinstance(caught, QuotaExceeded)


def test_every_reason_and_the_request_id_are_in_the_message(google_ads_server: GoogleAdsServer) -> None:
    reasons = [
        error("query_error", "BAD_FIELD_NAME", "no campain.id"),
        error("request_error", "UNKNOWN", "and more"),
    ]
    caught = failure_of(google_ads_server, Failure("INVALID_ARGUMENT", reasons, request_id="r-77"))
    assert "query_error.BAD_FIELD_NAME: no campain.id; request_error.UNKNOWN: and more" in str(caught)
    assert "r-77" in str(caught)
    assert caught.remedy == "Correct the text of the query."


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        (Failure("RESOURCE_EXHAUSTED", [quota(30, 500_000_000)]), 30.5),
        (Failure("RESOURCE_EXHAUSTED", [quota(5), quota(40)]), 40.0),
        (Failure("RESOURCE_EXHAUSTED", retry_info_seconds=7.25), 7.25),
        (Failure("RESOURCE_EXHAUSTED", [quota(5)], retry_info_seconds=9), 9.0),
        (Failure("RESOURCE_EXHAUSTED", [error("quota_error", "RESOURCE_EXHAUSTED")]), None),
        (Failure("RESOURCE_EXHAUSTED"), None),
        (Failure("UNAVAILABLE", retry_info_seconds=2.5), 2.5),
    ],
    ids=str,
)
def test_the_wait_that_the_server_asks_for_is_handed_on(
    google_ads_server: GoogleAdsServer, failure: Failure, seconds: float | None
) -> None:
    caught = failure_of(google_ads_server, failure)
    assert isinstance(caught, Transient)
    assert caught.retry_after == seconds


@pytest.mark.parametrize(
    ("details", "scope"),
    [
        ([{"rate_scope": "DEVELOPER"}], QuotaScope.SOURCE),
        ([{"rate_scope": "ACCOUNT"}], QuotaScope.ACCOUNT),
        ([{"rate_scope": "ACCOUNT"}, {"rate_scope": "DEVELOPER"}], QuotaScope.SOURCE),
        ([{"rate_scope": "UNKNOWN"}], QuotaScope.ACCOUNT),
        ([{}], QuotaScope.ACCOUNT),
        ([], QuotaScope.ACCOUNT),
    ],
    ids=str,
)
def test_a_quota_of_the_cloud_project_is_that_of_the_whole_source(
    google_ads_server: GoogleAdsServer, details: list[Mapping[str, str]], scope: QuotaScope
) -> None:
    """R-CTL-7: it pauses just its scope, the account or the source."""
    errors = [error("quota_error", "RESOURCE_EXHAUSTED", quota_error_details=each) for each in details]
    caught = failure_of(google_ads_server, Failure("RESOURCE_EXHAUSTED", errors))
    assert isinstance(caught, QuotaExceeded)
    assert caught.scope is scope


def test_an_error_of_a_query_shows_the_place_in_its_text(google_ads_server: GoogleAdsServer) -> None:
    wrong = error("query_error", "UNRECOGNIZED_FIELD", "Unrecognized field in the query: 'campaign.id'.")
    caught = failure_of(google_ads_server, Failure("INVALID_ARGUMENT", [wrong]))
    assert isinstance(caught, BadQuery)
    assert "(at line 1, column 8 of the query)" in str(caught)
    assert str(caught.excerpt).splitlines()[1] == f"{'':11}{'^' * 11}"


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure("UNAVAILABLE"), Transient),
        (Failure("INTERNAL"), Transient),
        (Failure("RESOURCE_EXHAUSTED", [quota(3)]), QuotaExceeded),
        (Failure("PERMISSION_DENIED", [error("authorization_error", "CUSTOMER_NOT_ENABLED")]), Forbidden),
    ],
    ids=str,
)
def test_a_stream_that_breaks_in_the_middle_fails_after_the_rows_before_it(
    google_ads_server: GoogleAdsServer, failure: Failure, expected: type[SealbookError]
) -> None:
    google_ads_server.reply(CUSTOMER_ID, [ROWS, failure])
    stream = source(google_ads_server).fetch(google_ads_key(), google_ads_query())
    assert [next(stream) for _ in COLUMNS] == COLUMNS
    with pytest.raises(SealbookError) as caught:
        next(stream)
    assert type(caught.value) is expected


def test_a_server_that_cannot_be_reached_is_transient() -> None:
    with socket.socket() as taken:  # bound but not listening: refused, and nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        made = load_source("google_ads", {"endpoint": f"127.0.0.1:{taken.getsockname()[1]}"})
        with pytest.raises(Transient, match="UNAVAILABLE"):
            fetch(made)


def test_a_stream_past_its_deadline_is_transient() -> None:
    with (
        GoogleAdsServer(default=[ROWS], latency_seconds=1.0) as server,
        pytest.raises(Transient, match="DEADLINE_EXCEEDED"),
    ):
        fetch(source(server, timeout_seconds=0.1))


def test_a_disabled_account_fails_alone(google_ads_server: GoogleAdsServer) -> None:
    customers = [str(1_000_000_000 + number) for number in range(12)]
    for customer_id in customers:
        google_ads_server.reply(customer_id, [ROWS])
    disabled = Failure("PERMISSION_DENIED", [error("authorization_error", "CUSTOMER_NOT_ENABLED")])
    google_ads_server.reply(customers[5], [disabled])
    made = source(google_ads_server)

    def outcome(customer_id: str) -> Any:
        try:
            return fetch(made, customer_id)
        except SealbookError as caught:
            return type(caught)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(outcome, customers))
    assert outcomes == [COLUMNS] * 5 + [Forbidden] + [COLUMNS] * 6


def test_a_retry_starts_the_stream_again_and_each_try_is_a_request(
    google_ads_server: GoogleAdsServer,
) -> None:
    google_ads_server.reply(
        CUSTOMER_ID,
        [ROWS, Failure("UNAVAILABLE")],
        [Failure("RESOURCE_EXHAUSTED", [quota(20)])],
        [ROWS, ROWS],
    )
    made, waits = source(google_ads_server), list[float]()
    found = with_retries(lambda: fetch(made), RetryPolicy(), sleep=waits.append, draw=lambda: 1.0)
    assert found == COLUMNS + COLUMNS
    assert waits == [1.0, 22.0]
    assert len(google_ads_server.requests) == 3


def test_a_permanent_failure_is_one_request(google_ads_server: GoogleAdsServer) -> None:
    google_ads_server.reply(CUSTOMER_ID, [Failure("PERMISSION_DENIED")])
    made = source(google_ads_server)
    with pytest.raises(Permanent):
        with_retries(lambda: fetch(made), RetryPolicy())
    assert len(google_ads_server.requests) == 1


def test_a_reader_that_stops_early_cancels_the_stream(google_ads_server: GoogleAdsServer) -> None:
    large = Batch(["campaign.name"], [{"campaign": {"name": "x" * 1000}}] * 1000)
    google_ads_server.reply(CUSTOMER_ID, [large] * 100)
    stream = source(google_ads_server).fetch(google_ads_key(), google_ads_query())
    assert isinstance(stream, Generator)
    next(stream)
    answers = inspect.getgeneratorlocals(stream)["answers"]
    held = inspect.getgeneratorlocals(answers)["stream"]  # as a traceback would: not left to the collector
    stream.close()
    assert google_ads_server.cancelled.wait(timeout=60)
    assert not held.is_active()
