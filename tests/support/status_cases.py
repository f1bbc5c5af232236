"""Generated universes, and rows of partition status as any history could have left them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert

from sealbook.ledger import Ledger
from sealbook.ledger.db.bulk import insert_rows
from sealbook.ledger.db.types import microseconds
from sealbook.ledger.events.projections import begin
from sealbook.ledger.events.tables import run_head
from sealbook.ledger.states.tables import validator
from sealbook.ledger.status.tables import SERIES, day_number, partition_status, status_series
from sealbook.model import PartitionKey
from sealbook.model.display import cell_of, display_status
from sealbook.model.expectations import Expectations
from sealbook.model.freshness import Freshness
from sealbook.model.partition_events import Stage
from sealbook.model.staleness import CodeInForce, StaleReason
from sealbook.model.standing import Standing
from sealbook.model.status import AttemptOutcome, Availability, LastAttempt, Materialization
from sealbook.model.status_line import StatusLine
from sealbook.model.universe import Account, Asset, AssetName, EarlierZone, Universe, Upstream
from tests.support.ledger import run_id

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CHANGES = (date(2026, 3, 8), date(2026, 11, 1))
"""Days on which clocks in New York go forward, and back."""
ZONES = (UTC, ZoneInfo("America/New_York"), ZoneInfo("Pacific/Kiritimati"), ZoneInfo("America/Sao_Paulo"))
CUSTOMERS = ("a", "b", "c")
ABOVE, BELOW, AGGREGATE = (AssetName("demo", name) for name in ("above", "below", "aggregate"))
ELSEWHERE = AssetName("other", "above")
HASHES = ("one", "two")


@dataclass(frozen=True)
class Row:
    """What a partition's row says; contract "" is a validator without one, None is no validator."""

    materialized_at: datetime | None
    contract: str | None
    attempt_at: datetime | None
    outcome: AttemptOutcome | None
    stage: Stage | None
    availability: Availability


def published_at(at: datetime) -> Row:
    """Return the row of a partition that was published at a time, and that is all."""
    return Row(at, "one", at, AttemptOutcome.SUCCEEDED, None, Availability.PUBLISHED)


@dataclass(frozen=True)
class Case:
    """Rows, and what they are held against."""

    expectations: Expectations
    rows: Mapping[PartitionKey, Row] = field(default_factory=dict)


freshness = st.one_of(
    st.none(),
    st.builds(
        Freshness,
        st.sampled_from([(timedelta(),), (6 * HOUR,), (6 * HOUR, 2 * DAY), (HOUR, DAY, 2 * DAY + HOUR)]),
        st.sampled_from([timedelta(), HOUR, DAY]),
    ),
)
upstreams = st.lists(
    st.sampled_from(
        [
            Upstream(ABOVE),
            Upstream(ABOVE, -1, -1),
            Upstream(ABOVE, -2, 0),
            Upstream(ABOVE, 0, 1),
            Upstream(ABOVE, all_customers=True),
            Upstream(ABOVE, -1, 0, all_customers=True),
            Upstream(ELSEWHERE),
            Upstream(ELSEWHERE, -1, 1, all_customers=True),
        ]
    ),
    max_size=3,
    unique=True,
).map(tuple)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a case around a change of clocks; its times are often equal, and at the edges that count."""
    middle = draw(st.sampled_from(CHANGES))
    days = [middle + number * DAY for number in range(-3, 4)]
    moments = st.builds(
        lambda day, hour, minute: (
            datetime(day.year, day.month, day.day, tzinfo=UTC) + hour * HOUR + minute * timedelta(minutes=1)
        ),
        st.sampled_from(days[2:6]),
        st.sampled_from([0, 4, 5, 6, 10, 11, 24]),
        st.sampled_from([0, 0, 0, 0, 59]),
    )
    chosen = draw(upstreams)
    assets = {
        ABOVE: Asset(ABOVE, draw(freshness)),
        BELOW: Asset(BELOW, draw(freshness), chosen),
        AGGREGATE: Asset(AGGREGATE, draw(freshness), tuple(each for each in draw(upstreams))),
        ELSEWHERE: Asset(ELSEWHERE, draw(freshness)),
    }
    day = st.sampled_from([None, *days])
    accounts: dict[str, dict[str, Account]] = {}
    for source in ("demo", "other"):
        accounts[source] = {}
        for customer in draw(st.sets(st.sampled_from(CUSTOMERS))):
            first, last = sorted([draw(day) or days[0], draw(day) or days[-1]])
            zone = draw(st.sampled_from(ZONES))
            open_end = draw(st.booleans())
            first_day = draw(st.sampled_from([first, None]))
            held = draw(st.dictionaries(st.sampled_from(days), st.sampled_from(ZONES), max_size=2))
            earlier = tuple(EarlierZone(*each) for each in sorted(held.items()))
            last_day = None if open_end else last
            accounts[source][customer] = Account(customer, zone, first_day, last_day, earlier)
    known = draw(st.dictionaries(st.sampled_from(list(assets)), st.sampled_from(days)))
    also = draw(st.sampled_from([frozenset[str](), frozenset(HASHES)]))  # a hash is of one query, if not here
    in_force = draw(
        st.dictionaries(
            st.sampled_from([*assets, AssetName("demo", "gone")]),
            st.builds(
                CodeInForce,
                st.sampled_from([*HASHES, "three"]),
                moments,
                st.just(also),
            ),
        )
    )
    expectations = Expectations(Universe(assets, accounts, known), draw(moments), in_force)
    names = [*assets, AssetName("demo", "gone")]
    keys = st.builds(
        lambda name, customer, day: PartitionKey(name.source, customer, name.query_name, day),
        st.sampled_from(names),
        st.sampled_from(CUSTOMERS),
        st.sampled_from(days),
    )
    return Case(expectations, draw(st.dictionaries(keys, _rows(moments), max_size=25)))


def _rows(moments: st.SearchStrategy[datetime]) -> st.SearchStrategy[Row]:
    def make(at: datetime | None, *others: object) -> Row:
        contract, attempted_at, outcome, stage, availability = others
        never = at is None
        return Row(
            at,
            None if never else contract,  # type: ignore[arg-type]
            attempted_at if outcome else None,  # type: ignore[arg-type]
            outcome,  # type: ignore[arg-type]
            stage if outcome is AttemptOutcome.FAILED else None,  # type: ignore[arg-type]
            Availability.NONE if never else availability,  # type: ignore[arg-type]
        )

    return st.builds(
        make,
        st.one_of(st.none(), moments, moments, moments),
        st.sampled_from([*HASHES, *HASHES, "", None]),
        moments,
        st.sampled_from([None, *AttemptOutcome]),
        st.sampled_from([Stage.EXTRACT, Stage.VALIDATE, Stage.LOAD]),
        st.sampled_from([Availability.PUBLISHED, Availability.BEHIND, Availability.HIDDEN]),
    )


RUN = run_id(1)


def prepare(ledger: Ledger) -> None:
    """Let the ledger know a run and the validators of all cases; two can judge by the same contract."""

    def work(connection: Connection) -> None:
        begin(connection, "partition_status")
        connection.execute(insert(run_head).values(run_id=RUN, last_seq=1))
        for place, each in enumerate(["", *HASHES, *HASHES]):
            values: dict[str, object] = {"digest": str(place), "version": "v", "checks": []}
            values["contract_hash"] = each or None
            connection.execute(insert(validator).values(values))

    ledger._database.write(work)


def store(ledger: Ledger, case: Case) -> None:
    """Put the rows of a case in place of any before."""

    def work(connection: Connection) -> None:
        for table in (partition_status, status_series):
            connection.execute(delete(table))
        if not case.rows:
            return
        validators: dict[str, list[int]] = {}
        for each in connection.execute(validator.select().order_by(validator.c.id)):
            validators.setdefault(each.contract_hash or "", []).append(each.id)
        run = connection.execute(run_head.select()).one().number
        number = begin(connection, "partition_status").id
        names = [dict(zip(SERIES, each, strict=True)) for each in sorted({_names(key) for key in case.rows})]
        connection.execute(insert(status_series), [each | {"projection_id": number} for each in names])
        series = {tuple(row[2:]): row.id for row in connection.execute(status_series.select())}
        rows = []
        for place, (key, row) in enumerate(case.rows.items(), 1):
            at = None if row.materialized_at is None else microseconds(row.materialized_at)
            tried = None if row.attempt_at is None else microseconds(row.attempt_at)
            judges = [None] if row.contract is None else validators[row.contract]
            rows.append(
                (
                    series[_names(key)], day_number(key.logical_date), row.availability.value, at, tried,
                    row.outcome and row.outcome.value, row.stage and row.stage.value,
                    judges[place % len(judges)], at and run, tried and run, at and place, tried and place,
                    1_000_000, place, None, None,
                )
            )  # fmt: skip
        insert_rows(connection, partition_status, rows)

    ledger._database.write(work)


def expected_lines(case: Case) -> list[StatusLine]:
    """Say by the pure functions alone what every line must be, in the order of keys."""
    keys = {*case.rows, *_due(case)}
    return [expected_line(case, key) for key in sorted(keys)]


def expected_line(case: Case, key: PartitionKey) -> StatusLine:
    """Say what the line of a partition must be."""
    expectations, row = case.expectations, case.rows.get(key)
    reasons = expected_reasons(case, key)
    at = None if row is None else row.materialized_at
    code = (row.contract or None) if row else None
    attempt = _attempt(row)
    materialization = None if at is None else Materialization(RUN, at, 1)
    availability = Availability.NONE if row is None else row.availability
    expected, due = expectations.universe.expects(key), expectations.is_due(key)
    return StatusLine(
        key=key,
        last_materialization_run_id=None if at is None else RUN,
        last_materialization_at=at,
        last_materialization_code_version=code,
        last_attempt_run_id=None if attempt is None else RUN,
        last_attempt_at=None if attempt is None else attempt.at,
        last_attempt_outcome=None if attempt is None else attempt.outcome,
        last_attempt_stage=None if attempt is None else attempt.stage,
        stale_since=reasons[0].since if reasons else None,
        stale_reason_code=reasons[0].code if reasons else None,
        stale_reasons=tuple(each.code for each in reasons),
        row_version=None,
        availability=availability,
        display=display_status(materialization, attempt, availability, stale=bool(reasons)),
        expected=expected,
        due=due,
        provisional=expected and not due,
        settled=expectations.is_settled(key, at),
        late=expectations.is_late(key, at),
        attempted=row is not None,
    )


def expected_reasons(case: Case, key: PartitionKey) -> list[StaleReason]:
    """Say why a partition must be stale."""
    row = case.rows.get(key)
    if row is None or row.materialized_at is None:
        return []

    def materialized(upstream: PartitionKey) -> datetime | None:
        found = case.rows.get(upstream)
        return None if found is None else found.materialized_at

    return case.expectations.reasons(key, row.materialized_at, row.contract or None, materialized)


def expected_standing(case: Case, key: PartitionKey) -> Standing | None:
    """Say how a partition must stand; None if it is neither expected nor there."""
    line = expected_line(case, key)
    if not line.expected and not line.attempted:
        return None
    attempt = _attempt(case.rows.get(key))
    cell = cell_of(
        line.display, attempt, attempted=line.attempted, running=False, provisional=line.provisional
    )
    return Standing(cell, line.availability, None if attempt is None else attempt.outcome)


def _attempt(row: Row | None) -> LastAttempt | None:
    if row is None or row.outcome is None or row.attempt_at is None:
        return None
    return LastAttempt(RUN, row.attempt_at, row.outcome, 1, row.stage)


def _due(case: Case) -> Iterator[PartitionKey]:
    universe = case.expectations.universe
    for asset in universe.assets:
        for customer in universe.accounts[asset.source]:
            for middle, number in product(CHANGES, range(-10, 11)):
                key = PartitionKey(asset.source, customer, asset.query_name, middle + number * DAY)
                if case.expectations.is_due(key):
                    yield key


def _names(key: PartitionKey) -> tuple[str, str, str]:
    return key.source, key.customer_id, key.query_name
