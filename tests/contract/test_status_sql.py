"""R-PST-3 to R-PST-6, R-PST-8: what SQL says of any rows is what the pure functions say of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.status.reader import StatusReader
from sealbook.ledger.status.tables import partition_status, time_of
from sealbook.model import PartitionKey
from sealbook.model.display import Cell, Display
from sealbook.model.expectations import Expectations
from sealbook.model.freshness import Freshness
from sealbook.model.partition_events import Stage
from sealbook.model.selection import Selection, key_of
from sealbook.model.staleness import StaleCode
from sealbook.model.standing import BLANK, BY_CODE
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.status_line import ALL, QueryCounts, StatusFilter, StatusLine
from sealbook.model.universe import Account, Asset, AssetName, Universe, Upstream
from sealbook.views.grid import Step
from sealbook.views.sheet import sheet_of
from tests.support.ledger import BACKENDS, PostgresqlServer
from tests.support.status_cases import (
    ABOVE,
    AGGREGATE,
    BELOW,
    CHANGES,
    CUSTOMERS,
    DAY,
    HOUR,
    Case,
    cases,
    expected_line,
    expected_lines,
    expected_reasons,
    expected_standing,
    prepare,
    published_at,
    store,
)

FILTERS = st.sampled_from(
    [
        *(StatusFilter(displays=frozenset([display])) for display in Display),
        StatusFilter(stale=True),
        StatusFilter(failed=True),
        StatusFilter(missing=True),
        StatusFilter(late=True),
        StatusFilter(attention=True),
        StatusFilter(frozenset([Display.WITHDRAWN, Display.STALE]), failed=True, missing=True),
    ]
)
DAYS = [middle + number * DAY for middle in CHANGES for number in range(-3, 4)]
SELECTIONS = st.one_of(
    st.just(Selection()),
    st.builds(
        lambda customers, queries, day, length: Selection(
            customers=customers,
            queries=queries,
            since=day,
            until=None if length is None else day + length * DAY,
        ),
        st.none() | st.sets(st.sampled_from(CUSTOMERS), min_size=1),
        st.none() | st.sets(st.sampled_from(["above", "below", "aggregate", "gone"]), min_size=1),
        st.sampled_from(DAYS),
        st.none() | st.integers(0, 5),
    ),
    st.builds(
        lambda query, customer, days: Selection(
            keys=[PartitionKey("demo", customer, query, day) for day in days]
        ),
        st.sampled_from(["above", "below", "aggregate"]),
        st.sampled_from(CUSTOMERS),
        st.sets(st.sampled_from(DAYS[:7]), min_size=2, max_size=4),
    ),
    st.builds(
        lambda keys: Selection(keys=keys),
        st.lists(
            st.builds(
                lambda query, customer, day: PartitionKey("demo", customer, query, day),
                st.sampled_from(["above", "below", "aggregate", "gone"]),
                st.sampled_from(CUSTOMERS),
                st.sampled_from(DAYS),
            ),
            min_size=1,
            max_size=4,
            unique=True,
        ),
    ),
)


@pytest.fixture(params=BACKENDS)
def shared(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """A ledger whose rows each example puts in place of those of the one before."""
    on_disk = request.param == "postgresql"
    url = request.getfixturevalue("postgresql").create_ledger() if on_disk else "sqlite://"
    with open_ledger(url) as ledger:
        prepare(ledger)
        yield ledger


def lines_of(
    ledger: Ledger, case: Case, selection: Selection, where: StatusFilter, page: int
) -> list[StatusLine]:
    """Read all lines, page by page."""
    found: list[StatusLine] = []
    while True:
        after = found[-1].key if found else None
        lines = ledger.reader.statuses.lines(
            case.expectations, selection, where=where, after=after, limit=page
        )
        found += lines
        if len(lines) < page:
            return [line._replace(row_version=None) for line in found]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(case=cases(), selection=SELECTIONS, where=st.just(ALL) | FILTERS, page=st.integers(1, 30))
def test_lines(shared: Ledger, case: Case, selection: Selection, where: StatusFilter, page: int) -> None:
    store(shared, case)
    expected = [line for line in expected_lines(case) if selection.matches(line.key) and where.takes(line)]
    assert lines_of(shared, case, selection, where, page) == expected


def test_equal_times_are_fresh(shared: Ledger) -> None:
    """R-PST-3: at the due point, and at the moment of the upstream; a moment earlier is neither."""
    day, due = date(2026, 3, 9), datetime(2026, 3, 10, 6, tzinfo=UTC)
    assets = {
        ABOVE: Asset(ABOVE),
        BELOW: Asset(BELOW, Freshness((6 * HOUR,)), (Upstream(ABOVE), Upstream(ABOVE, -1, 0))),
        AGGREGATE: Asset(AGGREGATE, upstreams=(Upstream(ABOVE, all_customers=True),)),
    }
    universe = Universe(assets, {"demo": {"a": Account("a", first_day=day)}})
    for moment, reasons in (
        (due, ()),
        (due - timedelta(microseconds=1), (StaleCode.FRESHNESS_POLICY, StaleCode.UPSTREAM_CHANGED)),
    ):
        case = Case(
            Expectations(universe, datetime(2026, 3, 10, 6, tzinfo=UTC)),
            {
                PartitionKey("demo", "a", asset.query_name, day): published_at(at)
                for asset, at in ((ABOVE, due), (BELOW, moment), (AGGREGATE, moment))
            },
        )
        store(shared, case)
        lines = lines_of(shared, case, Selection(), ALL, 10)
        assert lines == expected_lines(case)
        assert [line.stale_reasons for line in lines] == [(), reasons[1:], reasons]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)
@given(case=cases(), selection=SELECTIONS)
def test_counts(shared: Ledger, case: Case, selection: Selection) -> None:
    store(shared, case)
    lines = [line for line in expected_lines(case) if selection.matches(line.key)]
    counts = shared.reader.statuses.counts(case.expectations, selection)
    assert counts.displays == {each: sum(line.display is each for line in lines) for each in Display}
    assert counts.availabilities == {
        each: sum(line.availability is each for line in lines) for each in Availability
    }
    assert counts.reasons == {each: sum(each in line.stale_reasons for line in lines) for each in StaleCode}
    by_query = {name: [line for line in lines if _asset(line) == name] for name in map(_asset, lines)}
    assert {name: each for name, each in counts.queries.items() if each != QueryCounts()} == {
        name: counted for name, of in by_query.items() if (counted := _counted(of)) != QueryCounts()
    }


def _asset(line: StatusLine) -> AssetName:
    return AssetName(line.key.source, line.key.query_name)


def _counted(lines: list[StatusLine]) -> QueryCounts:
    due = [line for line in lines if line.due]
    failed = [line.last_attempt_stage for line in due if line.last_attempt_outcome is AttemptOutcome.FAILED]
    readable = [line for line in lines if line.availability.readable]
    return QueryCounts(
        due=len(due),
        readable=sum(line.availability.readable for line in due),
        behind=sum(line.availability is Availability.BEHIND for line in due),
        failed=sum(stage is not Stage.EXTRACT for stage in failed),
        not_fetched=sum(stage is Stage.EXTRACT for stage in failed),
        late=sum(line.late for line in due),
        missing=sum(line.missing for line in due),
        newest_day=max((line.key.logical_date for line in readable), default=None),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=100)
@given(case=cases(), selection=SELECTIONS)
def test_cells_and_standings(shared: Ledger, case: Case, selection: Selection) -> None:
    store(shared, case)
    middle = case.expectations.now.date()
    first, last = middle - 12 * DAY, middle + 4 * DAY
    statuses = shared.reader.statuses
    cells = statuses.cells(case.expectations, selection, first, last)
    standings = statuses.cells(case.expectations, selection, first, last, as_codes=True)
    for row, codes in zip(cells, standings, strict=True):
        assert row[:3] == codes[:3]
        for number, (letter, code) in enumerate(zip(row.letters, codes.letters, strict=True)):
            key = PartitionKey(row.source, row.customer_id, row.query_name, first + number * DAY)
            standing = expected_standing(case, key) if selection.matches(key) else None
            assert letter == (standing.cell.letter if standing else BLANK), key
            assert BY_CODE.get(code) == standing, key


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=40)
@given(case=cases(), selection=SELECTIONS.filter(lambda each: not each.keys))
def test_a_sheet_adds_up_to_what_partitions_are_and_to_the_counts(
    shared: Ledger, case: Case, selection: Selection
) -> None:
    store(shared, case)
    sheet = sheet_of(shared.reader, case.expectations, selection)
    if sheet.days is None:
        return
    first, last = sheet.days
    expected: Counter[tuple[tuple[str, str, str], date, Cell]] = Counter()
    for key in _keys(case, selection, first, last):
        standing = expected_standing(case, key)
        if standing is not None:
            expected[key_of(key)[:3], key.logical_date, standing.cell] = 1
    found = sheet.page()
    assert found.total == Counter(cell for _, _, cell in expected)
    for row in found.rows:
        own = row.source, row.customer_id, row.query_name
        assert row.counts == Counter(cell for name, _, cell in expected if name == own)
    for column, total in zip(found.columns, found.column_totals, strict=True):
        assert total == Counter(cell for _, day, cell in expected if day == column.first)
    assert sheet.page(Step.MONTH).total == found.total
    counts = shared.reader.statuses.counts(case.expectations, replace(selection, since=first, until=last))
    for asset in case.expectations.universe.assets:
        missing = sum(
            cell is Cell.MISSING for (source, _, query), _, cell in expected if (source, query) == asset
        )
        assert missing == counts.queries.get(asset, QueryCounts()).missing


def _keys(case: Case, selection: Selection, first: date, last: date) -> Iterator[PartitionKey]:
    """Yield every partition of what is configured, be it expected on that day or not."""
    universe = case.expectations.universe
    for asset in universe.assets:
        for customer in universe.accounts[asset.source]:
            for number in range((last - first).days + 1):
                key = PartitionKey(asset.source, customer, asset.query_name, first + number * DAY)
                if selection.matches(key):
                    yield key


def test_days_of_centuries(shared: Ledger) -> None:
    """More days than there are characters below those that are none."""
    days = [date(1700, 1, 1), date(1850, 6, 1), date(2026, 3, 9)]
    universe = Universe({ABOVE: Asset(ABOVE)}, {"demo": {"a": Account("a", first_day=days[0])}})
    rows = {
        PartitionKey("demo", "a", "above", day): published_at(datetime(2026, 3, 9, tzinfo=UTC))
        for day in days
    }
    case = Case(Expectations(universe, datetime(2026, 3, 11, tzinfo=UTC)), rows)
    store(shared, case)
    [found] = shared.reader.statuses.cells(case.expectations, Selection(), days[0], days[-1])
    assert [days[0] + place * DAY for place, each in enumerate(found.letters) if each == "■"] == days


def test_postgresql_plans_for_what_it_is_given_however_often_asked(
    postgresql: PostgresqlServer,
) -> None:
    """A plan for anything would look through the numbers of all series for each row."""
    asset = Asset(ABOVE, upstreams=(Upstream(ABOVE, -1, -1), Upstream(ABOVE, all_customers=True)))
    universe = Universe({ABOVE: asset}, {"demo": {"a": Account("a", first_day=CHANGES[0])}})
    case = Case(
        Expectations(universe, datetime(2026, 3, 10, tzinfo=UTC)),
        {PartitionKey("demo", "a", "above", CHANGES[0]): published_at(datetime(2026, 3, 9, tzinfo=UTC))},
    )
    with open_ledger(postgresql.create_ledger()) as ledger:
        prepare(ledger)
        store(ledger, case)
        with ledger._database.snapshot() as at_once:  # the driver forgets what it prepared when that ends
            for _ in range(20):
                StatusReader(at_once, ledger._clock).counts(case.expectations)
            with at_once.read() as connection:
                plans = connection.exec_driver_sql(
                    "SELECT custom_plans, generic_plans FROM pg_prepared_statements"
                    " WHERE statement LIKE '%%FROM partition_status%%ANY%%'"
                ).all()
    assert len(plans) == 3, "the counts, and two that gather"
    assert all(custom > 10 and generic == 0 for custom, generic in plans), plans


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(case=cases())
def test_one_line_and_its_reasons(shared: Ledger, case: Case) -> None:
    """Known or not; with every reason, and the upstreams that it comes from."""
    store(shared, case)
    statuses = shared.reader.statuses
    for key in [*case.rows, PartitionKey("demo", "a", "above", date(2026, 3, 9))]:
        line = statuses.line(key, case.expectations)
        assert line._replace(row_version=None) == expected_line(case, key)
        assert statuses.reasons(key, case.expectations) == expected_reasons(case, key)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(case=cases(), selection=SELECTIONS)
def test_a_sweep_writes_what_reads_say_and_changes_no_answer(
    shared: Ledger, case: Case, selection: Selection
) -> None:
    """R-PST-7."""
    store(shared, case)
    before = lines_of(shared, case, Selection(), ALL, 100)
    counts = shared.reader.statuses.counts(case.expectations)
    stale = [line for line in before if selection.matches(line.key) and line.stale_reasons]
    assert shared.sweeper.sweep(case.expectations, selection) == len(stale)
    assert shared.sweeper.sweep(case.expectations, selection) == 0
    assert lines_of(shared, case, Selection(), ALL, 100) == before
    assert shared.reader.statuses.counts(case.expectations) == counts
    assert _swept(shared) == Counter((line.stale_since, line.stale_reason_code) for line in stale)


def _swept(ledger: Ledger) -> Counter[tuple[object, object]]:
    query = select(partition_status.c.stale_since, partition_status.c.stale_reason)
    with ledger._database.read() as connection:
        rows = connection.execute(query.where(partition_status.c.stale_reason.is_not(None))).all()
    return Counter((time_of(since), code) for since, code in rows)
