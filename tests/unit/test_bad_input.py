"""Malformed keys, run ids and verdicts: each is refused with an InvalidInput that names the field."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from sealbook.errors import InvalidInput
from sealbook.model import Check, Outcome, PartitionKey, RunId, Verdict

KEY = PartitionKey("google_ads", "1234567890", "campaign_daily", date(2026, 1, 1))
RUN = "01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
LONGEST_NAME = "a" * 63
FULL_WIDTH_A = "\uff41"
ARABIC_DIGITS = "\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669\u0660"
LONE_SURROGATE = "\ud800"

BAD_NAMES: list[object] = [
    "",
    " ",
    "A",
    "Google_ads",
    "1abc",
    "_abc",
    "a-b",
    "a.b",
    "a b",
    "a/b",
    "a\n",
    "\na",
    "a\0",
    "é",
    FULL_WIDTH_A,
    LONE_SURROGATE,
    LONGEST_NAME + "a",
    "a'; DROP TABLE partition_state; --",
    "../a",
    None,
    1,
    True,
    b"abc",
    ["a"],
]

BAD_GOOGLE_ADS_CUSTOMERS: list[object] = [
    "",
    "123-456-7890",
    "123456789",
    "12345678901",
    "123456789a",
    "1234567890\n",
    " 1234567890",
    "+123456789",
    "-123456789",
    "12345.7890",
    "1_23456789",
    ARABIC_DIGITS,
    None,
    1234567890,
    b"1234567890",
]

BAD_CUSTOMERS: list[object] = [
    "",
    "a-b",
    "a b",
    "a/b",
    "a.b",
    "..",
    "a=b",
    "a\n",
    "a\0",
    "ä",
    FULL_WIDTH_A,
    LONE_SURROGATE,
    "a" * 65,
    None,
    7,
    ["a"],
]

BAD_DAYS: list[object] = [
    None,
    "2026-01-01",
    20260101,
    1.5,
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1),  # noqa: DTZ001 - as wrong as the aware one
    (2026, 1, 1),
]

BAD_KEY_TEXTS: list[object] = [
    "",
    "/",
    "///",
    "////",
    "google_ads",
    "google_ads/1234567890/campaign_daily",
    "google_ads/1234567890/campaign_daily/",
    "google_ads/1234567890/campaign_daily/2026-01-01/",
    "/google_ads/1234567890/campaign_daily/2026-01-01",
    "google_ads/1234567890/campaign_daily/2026-01-01/01J8ZQ6T5N8W3Y2V7R4K9M0XCE",
    "google_ads//campaign_daily/2026-01-01",
    "/1234567890/campaign_daily/2026-01-01",
    "google_ads/1234567890//2026-01-01",
    "google_ads 1234567890 campaign_daily 2026-01-01",
    "google_ads:1234567890:campaign_daily:2026-01-01",
    "google_ads\\1234567890\\campaign_daily\\2026-01-01",
    "google_ads/123-4567890/campaign_daily/2026-01-01",
    "google_ads/12345/campaign_daily/2026-01-01",
    "google_ads/1234567890/Campaign/2026-01-01",
    "Google_Ads/1234567890/campaign_daily/2026-01-01",
    "google_ads/1234567890/campaign_daily/2026-1-1",
    "google_ads/1234567890/campaign_daily/20260101",
    "google_ads/1234567890/campaign_daily/2026-W01-4",
    "google_ads/1234567890/campaign_daily/2026-001",
    "google_ads/1234567890/campaign_daily/26-01-01",
    "google_ads/1234567890/campaign_daily/01-01-2026",
    "google_ads/1234567890/campaign_daily/2026-02-29",
    "google_ads/1234567890/campaign_daily/2026-02-30",
    "google_ads/1234567890/campaign_daily/2026-13-01",
    "google_ads/1234567890/campaign_daily/2026-00-10",
    "google_ads/1234567890/campaign_daily/2026-01-00",
    "google_ads/1234567890/campaign_daily/0000-01-01",
    "google_ads/1234567890/campaign_daily/12026-01-01",
    "google_ads/1234567890/campaign_daily/-2026-01-01",
    "google_ads/1234567890/campaign_daily/2026-01-01T00:00:00",
    "google_ads/1234567890/campaign_daily/2026-01-01 ",
    "google_ads/1234567890/campaign_daily/2026-01-01\n",
    "google_ads/1234567890/campaign_daily/today",
    " google_ads/1234567890/campaign_daily/2026-01-01",
    "source=google_ads/customer_id=1234567890/query_name=campaign_daily/logical_date=2026-01-01",
    None,
    5,
    b"google_ads/1234567890/campaign_daily/2026-01-01",
    ["google_ads", "1234567890", "campaign_daily", "2026-01-01"],
]

BAD_RUN_IDS: list[object] = [
    "",
    "latest",
    RUN.lower(),
    RUN[:-1],
    RUN + "0",
    " " + RUN[1:],
    RUN[:-1] + "\n",
    "8" + RUN[1:],  # beyond 128 bits
    "Z" + RUN[1:],
    *(RUN[:-1] + letter for letter in "ILOU"),  # not letters of Crockford's base 32
    RUN[:-1] + "-",
    RUN[:-1] + "é",
    "0191a5a0-1b1c-7d1e-8f1f-2a2b2c2d2e2f",
    None,
    0,
    RUN.encode(),
]

BAD_TEXTS: list[object] = [
    "",
    " ",
    "\n\t",
    "a\0b",
    LONE_SURROGATE,
    f"a{LONE_SURROGATE}",
    None,
    1,
    b"text",
    ["text"],
]
BAD_COUNTS: list[object] = [-1, 2**63, 1.0, 1.5, "1", None, True, float("nan")]
BAD_LINES: list[object] = [
    (0,),
    (-1,),
    (1.0,),
    ("1",),
    (None,),
    (True,),
    (1, 2, 3, 4, 5, 6),
    [1],
    1,
    None,
    "1",
]
BAD_CHECKS: list[object] = [("seal",), (None,), ({"name": "seal", "passed": True},), (True,)]


def accept(**changes: Any) -> Verdict:
    arguments = {
        "key": KEY,
        "run_id": RUN,
        "schema_version": "1",
        "record_count": 1,
        "validator_version": "v",
    }
    return Verdict.accept(**{**arguments, **changes})


def reject(**changes: Any) -> Verdict:
    return Verdict.reject(
        **{"key": KEY, "run_id": RUN, "error_message": "bad", "validator_version": "v", **changes}
    )


def test_what_is_changed_below_is_good_as_it_stands() -> None:
    assert accept().accepted
    assert not reject().accepted
    assert PartitionKey.parse(str(KEY)) == KEY
    assert PartitionKey(LONGEST_NAME, "a" * 64, LONGEST_NAME, date.max).source == LONGEST_NAME
    assert accept(record_count=2**63 - 1).record_count == 2**63 - 1


@pytest.mark.parametrize("field", ["source", "query_name"])
@pytest.mark.parametrize("value", BAD_NAMES, ids=ascii)
def test_names(field: str, value: Any) -> None:
    """R-KEY-2."""
    fields: dict[str, Any] = {
        "source": "demo",
        "customer_id": "a",
        "query_name": "q",
        "logical_date": date.min,
    }
    with pytest.raises(InvalidInput) as caught:
        PartitionKey(**{**fields, field: value})
    assert (caught.value.field, caught.value.value) == (field, value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("source", "value"),
    [("google_ads", value) for value in BAD_GOOGLE_ADS_CUSTOMERS]
    + [("demo", value) for value in BAD_CUSTOMERS],
    ids=ascii,
)
def test_customer_ids(source: str, value: Any) -> None:
    """R-KEY-2: inside, a hyphen is an error too."""
    with pytest.raises(InvalidInput) as caught:
        PartitionKey(source, value, "q", date(2026, 1, 1))
    assert (caught.value.field, caught.value.value) == ("customer_id", value)


@pytest.mark.parametrize("value", BAD_DAYS, ids=ascii)
def test_logical_dates(value: Any) -> None:
    """R-KEY-2: a real calendar day, and no time of day in disguise."""
    with pytest.raises(InvalidInput, match="logical_date"):
        PartitionKey("demo", "a", "q", value)


@pytest.mark.parametrize("text", BAD_KEY_TEXTS, ids=ascii)
def test_key_texts(text: Any) -> None:
    """R-KEY-1."""
    with pytest.raises(InvalidInput) as caught:
        PartitionKey.parse(text)
    assert caught.value.field in ("partition key", "source", "customer_id", "query_name", "logical_date")


@pytest.mark.parametrize("text", BAD_RUN_IDS, ids=ascii)
def test_run_ids(text: Any) -> None:
    """R-RUN-1."""
    for make in (RunId, lambda run_id: accept(run_id=run_id), lambda run_id: reject(run_id=run_id)):
        with pytest.raises(InvalidInput, match="run_id"):
            make(text)


@pytest.mark.parametrize("value", [None, str(KEY), ("google_ads", "1234567890"), 1], ids=ascii)
@pytest.mark.parametrize("make", [accept, reject])
def test_keys_of_verdicts(make: Any, value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^key "):
        make(key=value)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (accept, "schema_version"),
        (accept, "validator_version"),
        (accept, "revalidation_id"),
        (reject, "error_message"),
        (reject, "validator_version"),
        (reject, "revalidation_id"),
    ],
)
@pytest.mark.parametrize("value", BAD_TEXTS, ids=ascii)
def test_texts_of_verdicts(make: Any, field: str, value: object) -> None:
    if field == "revalidation_id" and value is None:
        assert make(revalidation_id=None).revalidation_id is None
        return
    with pytest.raises(InvalidInput) as caught:
        make(**{field: value})
    assert (caught.value.field, caught.value.value) == (field, value)


@pytest.mark.parametrize("value", BAD_COUNTS, ids=ascii)
def test_counts(value: Any) -> None:
    with pytest.raises(InvalidInput, match="record_count"):
        accept(record_count=value)
    with pytest.raises(InvalidInput, match="check violations"):
        Check("seal", passed=False, violations=value)


@pytest.mark.parametrize("value", BAD_TEXTS, ids=ascii)
def test_texts_of_checks(value: Any) -> None:
    with pytest.raises(InvalidInput, match="check name"):
        Check(value, passed=True)
    if value is not None:
        with pytest.raises(InvalidInput, match="check detail"):
            Check("seal", passed=True, detail=value)


@pytest.mark.parametrize("value", [None, 0, 1, "yes", "", []], ids=ascii)
def test_outcomes_of_checks(value: Any) -> None:
    with pytest.raises(InvalidInput, match="check passed"):
        Check("seal", passed=value)


@pytest.mark.parametrize("value", BAD_LINES, ids=ascii)
def test_lines_of_checks(value: Any) -> None:
    """R-VER-2: up to five line numbers."""
    with pytest.raises(InvalidInput, match="check line"):
        Check("seal", passed=False, lines=value)


@pytest.mark.parametrize("value", ["fatal", "", None, 1, "ERROR"], ids=ascii)
def test_severities_of_checks(value: Any) -> None:
    with pytest.raises(InvalidInput, match="check severity"):
        Check("seal", passed=False, severity=value)


@pytest.mark.parametrize("value", BAD_CHECKS, ids=ascii)
@pytest.mark.parametrize("make", [accept, reject])
def test_checks_of_verdicts(make: Any, value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^check "):
        make(checks=value)


@pytest.mark.parametrize("value", [None, 1, True], ids=ascii)
@pytest.mark.parametrize("make", [accept, reject])
def test_checks_that_are_no_tuple(make: Any, value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^checks "):
        make(checks=value)


def test_an_acceptance_with_a_failed_check() -> None:
    """R-VER-1: what failed an error check is not accepted."""
    with pytest.raises(InvalidInput, match="no failed check of severity error in an acceptance"):
        accept(checks=(Check("seal", passed=False),))


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "maybe"},
        {"outcome": Outcome.ACCEPTED, "error_message": "but"},
        {"outcome": Outcome.ACCEPTED, "record_count": None},
        {"outcome": Outcome.ACCEPTED, "schema_version": None},
        {"outcome": Outcome.REJECTED, "error_message": None},
        {"outcome": Outcome.REJECTED, "error_message": "x", "record_count": 1},
        {"run_id": "latest"},
    ],
    ids=ascii,
)
def test_verdicts_built_by_hand(changes: dict[str, Any]) -> None:
    """The constructor is no way around the checks of `accept` and `reject`."""
    good: dict[str, Any] = {
        "key": KEY,
        "run_id": RunId(RUN),
        "outcome": Outcome.ACCEPTED,
        "schema_version": "1",
        "record_count": 1,
        "error_message": None,
        "validator_version": "v",
        "checks": (),
        "revalidation_id": None,
    }
    with pytest.raises(InvalidInput):
        Verdict(**{**good, **changes})
