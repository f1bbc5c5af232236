"""R-STATE-2: on PostgreSQL whoever appends keeps status up, control builds it again, a consumer reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from sealbook.errors import Permanent
from sealbook.ledger import grant_roles, open_ledger
from sealbook.ledger.roles import RIGHTS
from sealbook.model.display import Display
from sealbook.model.expectations import Expectations
from sealbook.model.scope import Scope
from sealbook.model.staleness import CodeInForce
from sealbook.model.universe import AssetName, Universe
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept
from tests.support.pointers import load

UrlAs = Callable[[str], str]
APPENDING = [role for role in RIGHTS if role not in ("consumer", "viewer")]
EXPECTED = Expectations(
    Universe({}, {}),
    datetime(2026, 2, 1, tzinfo=UTC),
    {AssetName(KEY.source, KEY.query_name): CodeInForce("new", datetime(2026, 1, 1, tzinfo=UTC))},
)


@pytest.fixture
def url_as(postgresql: PostgresqlServer) -> Iterator[UrlAs]:
    """A ledger with something published, of which nothing is projected, and its URL for each role."""
    url, prefix = postgresql.create_ledger(), f"s{uuid4().hex[:12]}_"
    grant_roles(url, prefix)
    with open_ledger(url) as ledger:
        ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
        load(ledger)
    for role in RIGHTS:
        postgresql.execute(f"CREATE ROLE user_{prefix}{role} LOGIN IN ROLE {prefix}{role}")
    yield lambda role: postgresql.url(str(make_url(url).database), f"user_{prefix}{role}")
    with psycopg.connect(url, autocommit=True) as admin:
        for role in RIGHTS:
            admin.execute(f"DROP ROLE user_{prefix}{role}".encode())
            admin.execute(f"DROP OWNED BY {prefix}{role}".encode())
            admin.execute(f"DROP ROLE {prefix}{role}".encode())


@pytest.mark.parametrize("role", APPENDING)
def test_whoever_appends_keeps_status_up_and_sweeps(url_as: UrlAs, role: str) -> None:
    with open_ledger(url_as(role)) as ledger:
        assert ledger.projector().catch_up().events == 0
        assert ledger.sweeper.sweep(EXPECTED) == 2
    with open_ledger(url_as(role), scope=Scope("acme")) as ledger:
        ledger.open_run()
        assert ledger.projector().catch_up().events == 0


def test_a_consumer_reads_what_is_projected_and_writes_nothing(url_as: UrlAs) -> None:
    with open_ledger(url_as("loader")) as ledger:
        ledger.projector().catch_up()
    with open_ledger(url_as("consumer")) as ledger:
        statuses = ledger.reader.statuses
        assert statuses.counts(EXPECTED).displays[Display.STALE] == 2
        assert statuses.line(KEY, EXPECTED).display is Display.STALE
        assert statuses.lag().events == 0
        for act in (lambda: ledger.sweeper.sweep(EXPECTED), ledger.projector().rebuild):
            with pytest.raises(Permanent, match="permission denied"):
                act()


def test_control_builds_it_again_and_nobody_else_removes_rows(url_as: UrlAs) -> None:
    with open_ledger(url_as("control")) as ledger:
        ledger.projector().rebuild()
        assert ledger.reader.statuses.line(KEY, EXPECTED).attempted
    for role in RIGHTS:
        for table in ("partition_status", "status_series", "run_scope"):
            with psycopg.connect(url_as(role)) as connection:
                if role == "control" and table != "run_scope":
                    connection.execute(f"DELETE FROM {table}".encode())
                    connection.rollback()
                    continue
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"DELETE FROM {table}".encode())
