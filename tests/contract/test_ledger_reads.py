"""What readers get from the ledger: the same on every database, and never by writing."""

from __future__ import annotations

import gc
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.tables import metadata
from sealbook.model import Check, PartitionKey, PartitionState, Severity, Status
from sealbook.model.selection import Selection
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id

DEMO = PartitionKey("demo", "Acme", "clicks", date(2026, 1, 3))
EARLY = PartitionKey("google_ads", "0000000001", "ad_daily", date(2025, 12, 31))


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    """A ledger with four partitions: two successes, a failure, and one that waits again."""
    ledger.judge([accept(KEY), reject(OTHER), accept(DEMO), reject(EARLY)])
    ledger.requeue([EARLY], actor="ann", reason="try again")
    return ledger


def rows(ledger: Ledger) -> dict[str, int]:
    """Count what is in each table."""
    with ledger._database.read() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }


def test_no_row_means_pending_and_reading_writes_nothing(ledger: Ledger) -> None:
    """R-STATE-1: a key that nobody touched is pending with no attempts, and stays without a row."""
    before = rows(ledger)
    assert ledger.state(KEY) == PartitionState.pending(KEY)
    assert (ledger.state(KEY).status, ledger.state(KEY).attempt_count) == (Status.PENDING, 0)
    assert ledger.attempts(KEY) == []
    assert list(ledger.states()) == []
    assert ledger.status_counts() == {Status.PENDING: 0, Status.SUCCESS: 0, Status.FAILED: 0}
    assert rows(ledger) == before


def test_states_come_in_key_order(filled: Ledger) -> None:
    """Whatever order they were judged in."""
    assert [state.key for state in filled.states()] == sorted([KEY, OTHER, DEMO, EARLY])
    assert all(filled.state(state.key) == state for state in filled.states())


def test_key_order_is_that_of_bytes(ledger: Ledger) -> None:
    """A database's own collation would put `a` before `B`, and `_` nowhere."""
    keys = [
        PartitionKey("demo", customer, "q", date(2026, 1, 1))
        for customer in ("a", "B", "_", "b", "A", "0", "9")
    ]
    ledger.judge([accept(key) for key in keys])
    assert [state.key for state in ledger.states()] == sorted(keys)


SELECTED_BY = {"customer_id": "customers", "query_name": "queries", "status": "statuses"}

FILTERS: list[tuple[dict[str, Any], list[PartitionKey]]] = [
    ({}, [DEMO, EARLY, KEY, OTHER]),
    ({"source": None, "status": None, "since": None}, [DEMO, EARLY, KEY, OTHER]),
    ({"source": "google_ads"}, [EARLY, KEY, OTHER]),
    ({"source": "absent"}, []),
    ({"customer_id": "1234567890"}, [KEY, OTHER]),
    ({"query_name": "clicks"}, [DEMO]),
    ({"since": date(2026, 1, 2)}, [DEMO, OTHER]),
    ({"until": date(2026, 1, 1)}, [EARLY, KEY]),
    ({"since": date(2026, 1, 1), "until": date(2026, 1, 1)}, [KEY]),
    ({"since": date.min, "until": date.max}, [DEMO, EARLY, KEY, OTHER]),
    ({"status": Status.SUCCESS}, [DEMO, KEY]),
    ({"status": "failed"}, [OTHER]),
    ({"status": "pending"}, [EARLY]),
    ({"source": "google_ads", "status": Status.SUCCESS, "since": date(2026, 1, 1)}, [KEY]),
]


def test_filters(filled: Ledger) -> None:
    """Filters join with and; None filters nothing; both ends of a range are included."""
    for filters, expected in FILTERS:
        assert [state.key for state in filled.states(**filters)] == expected, filters
        selection = Selection(**{SELECTED_BY.get(name, name): value for name, value in filters.items()})
        assert [state.key for state in filled.states(selection)] == expected, filters
        assert sum(filled.status_counts(selection).values()) == len(expected), filters


def test_states_of_keys_and_runs(filled: Ledger) -> None:
    """Keys may be any number; the run is the one that has authority."""
    assert [state.key for state in filled.states(Selection(keys=[OTHER, DEMO]))] == [DEMO, OTHER]
    assert [state.key for state in filled.states(Selection(runs=[run_id(1)]))] == [DEMO, KEY]
    assert list(filled.states(Selection(runs=[run_id(9)]))) == []
    many = [PartitionKey("demo", f"c{number}", "clicks", date(2026, 1, 3)) for number in range(5_000)]
    assert [state.key for state in filled.states(Selection(keys=[*many, KEY]))] == [KEY]


def test_status_counts(filled: Ledger) -> None:
    """Every status is there, be it with 0."""
    assert filled.status_counts() == {Status.PENDING: 1, Status.SUCCESS: 2, Status.FAILED: 1}
    assert filled.status_counts(Selection(source="demo")) == {
        Status.PENDING: 0,
        Status.SUCCESS: 1,
        Status.FAILED: 0,
    }


BAD_FILTERS: list[Any] = [
    {"source": "Google"},
    {"source": "a\0b"},
    {"source": "\ud800"},
    {"source": 1},
    {"customer_id": "123-456-7890"},
    {"customer_id": "a' OR 'a'='a"},
    {"query_name": "campaign daily"},
    {"query_name": ""},
    {"status": "done"},
    {"status": "SUCCESS"},
    {"status": 1},
    {"since": "yesterday"},
    {"until": datetime(2026, 1, 1, tzinfo=UTC)},
    {"until": 20260101},
]


def test_filters_that_no_key_could_match(ledger: Ledger) -> None:
    """They are refused when asked for, not found empty when read."""
    for filters in BAD_FILTERS:
        with pytest.raises(InvalidInput, match=next(iter(filters))):
            ledger.states(**filters)


def test_only_keys_are_asked_for(ledger: Ledger) -> None:
    not_keys: list[Any] = [str(KEY), None, ()]
    for value in not_keys:
        for ask in (ledger.state, ledger.attempts):
            with pytest.raises(InvalidInput, match=r"^key "):
                ask(value)


def test_writing_while_states_stream(ledger: Ledger) -> None:
    """A stream shows one instant; the writer neither waits for it nor disturbs it."""
    keys = [
        PartitionKey("demo", "Acme", "q", date(2000, 1, 1) + timedelta(days=number))
        for number in range(4_500)
    ]
    ledger.judge([accept(key) for key in keys])
    stream = ledger.states()
    first = list(islice(stream, 10))
    ledger.judge([accept(key, 2) for key in keys] + [accept(KEY)])
    rest = list(stream)
    assert [state.key for state in first + rest] == keys
    assert {state.current_run_id for state in first + rest} == {run_id(1)}
    assert {state.current_run_id for state in ledger.states(source="demo")} == {run_id(2)}


def test_dropped_streams_give_their_connection_back(ledger: Ledger) -> None:
    """Reading only the first rows, many times, does not use up the pool."""
    days = [date(2000, 1, 1) + timedelta(days=number) for number in range(3_000)]
    ledger.judge([accept(PartitionKey("demo", "Acme", "q", day)) for day in days])
    for _ in range(40):
        assert next(ledger.states()).logical_date == days[0]
    gc.collect()
    assert ledger._database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_an_unread_stream_has_asked_nothing(ledger: Ledger) -> None:
    streams = [ledger.states() for _ in range(100)]
    ledger.judge([accept(KEY)])
    assert len(list(streams[0])) == 1


EVIDENCE = (
    Check("payload", passed=True),
    Check(
        "rows", passed=False, violations=2**40, lines=(1, 2, 3, 4, 2**62), detail="Zażółć 🜚 '\"\\ %s :x $1"
    ),
    Check("share", passed=False, severity=Severity.WARN, detail="\n\ttabs\r\nand lines\u2028\x7f"),
)


def test_attempts_keep_every_field(ledger: Ledger) -> None:
    """R-VER-2: evidence comes back as it went in, oldest attempt first."""
    verdicts = [
        reject(KEY, 1, error="long " * 20_000, checks=EVIDENCE),
        accept(KEY, 2, version="2026.1", records=2**63 - 1, checks=EVIDENCE[:1]),
        accept(KEY, 1, again="Prüfung ✓"),
    ]
    states = [ledger.judge([verdict])[0] for verdict in verdicts]
    attempts = ledger.attempts(KEY)
    assert [attempt.attempt for attempt in attempts] == [1, 2, 3]
    for attempt, verdict, state in zip(attempts, verdicts, states, strict=True):
        for field in ("key", "run_id", "outcome", "schema_version", "record_count", "error_message"):
            assert getattr(attempt, field) == getattr(verdict, field)
        assert attempt.validator_version == verdict.validator_version
        assert attempt.checks == verdict.checks
        assert attempt.revalidation_id == verdict.revalidation_id
        assert attempt.judged_at == state.updated_at
    assert ledger.attempts(OTHER) == []


_TEXT = st.text(min_size=1).filter(lambda text: bool(text.strip()) and "\0" not in text)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(error=_TEXT, detail=_TEXT, again=_TEXT)
def test_any_text_survives(ledger: Ledger, error: str, detail: str, again: str) -> None:
    """R-VER-2: quotes, controls, emoji and combining marks, through both databases' JSON."""
    before = len(ledger.attempts(KEY))
    checks = (Check("any", passed=False, detail=detail),)
    ledger.judge([reject(KEY, before + 1, again=again, error=error, checks=checks)])
    found = ledger.attempts(KEY)[before]
    assert (found.error_message, found.checks, found.revalidation_id) == (error, checks, again)
    assert ledger.state(KEY).error_message == error


def test_days_of_every_year(ledger: Ledger) -> None:
    """R-KEY-2: a real calendar day, however long ago; text order stays day order."""
    days = [date.min, date(33, 4, 3), date(999, 12, 31), date(1582, 10, 10), date(2024, 2, 29), date.max]
    keys = [PartitionKey("demo", "Acme", "q", day) for day in days]
    ledger.judge([accept(key) for key in reversed(keys)])
    assert [state.key for state in ledger.states()] == keys
    for key in keys:
        assert ledger.state(key).attempt_count == 1
        day = key.logical_date
        assert [state.key for state in ledger.states(since=day, until=day)] == [key]
        assert [attempt.key for attempt in ledger.attempts(key)] == [key]


def test_times_come_back_aware_in_utc(ledger_url: str) -> None:
    """Whatever zone the clock is in, and to the microsecond."""
    local = datetime(2026, 1, 1, 1, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    expected = datetime(2025, 12, 31, 23, 30, 0, 123456, tzinfo=UTC)
    with open_ledger(ledger_url, clock=lambda: local) as ledger:
        [judged] = ledger.judge([reject(KEY)])
        read, streamed = ledger.state(KEY), next(ledger.states())
        requeued = ledger.requeue([KEY], actor="ann", reason="why not")[0].state
        [attempt] = ledger.attempts(KEY)
    for moment in (
        judged.updated_at,
        read.updated_at,
        streamed.updated_at,
        requeued.updated_at,
        attempt.judged_at,
    ):
        assert moment == expected
        assert moment is not None
        assert moment.tzinfo is UTC
    assert judged == read == streamed


def test_times_are_utc_whatever_the_session_says(postgresql: PostgresqlServer) -> None:
    """A user may ask the server for another zone; the ledger still speaks UTC."""
    with open_ledger(postgresql.create_ledger() + "&options=-ctimezone%3DAsia/Tokyo") as ledger:
        [judged] = ledger.judge([accept(KEY)])
        assert ledger.state(KEY) == judged
        updated_at = ledger.state(KEY).updated_at
        assert updated_at is not None
        assert updated_at.tzinfo is UTC


def test_a_naive_clock_is_refused(ledger_url: str) -> None:
    """It names no moment; nothing is written."""
    with open_ledger(ledger_url, clock=lambda: datetime(2026, 1, 1)) as ledger:  # noqa: DTZ001
        with pytest.raises(InvalidInput, match="a datetime with a time zone"):
            ledger.judge([accept(KEY)])
        assert list(ledger.states()) == []


def test_in_memory() -> None:
    """A ledger that lives and dies with its object, and that no other sees."""
    with open_ledger("sqlite://") as ledger, open_ledger("sqlite:///:memory:") as other:
        ledger.judge([accept(KEY), reject(OTHER)])
        stream = ledger.states()
        assert next(stream).key == KEY
        ledger.judge([accept(OTHER, 2)])  # its one connection is free while a stream is read
        assert [state.key for state in stream] == [OTHER]
        assert ledger.status_counts()[Status.SUCCESS] == 2
        assert other.status_counts()[Status.SUCCESS] == 0
