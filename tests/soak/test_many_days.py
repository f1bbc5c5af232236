"""The control loop on virtual days with faults: nothing is lost, memory is flat, files are bounded.

Tables grow as they are documented to. It takes ten minutes on each database, or SOAK_SECONDS seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from sealbook.model import PartitionKey, Status
from sealbook.model.selection import Selection
from sealbook.status.verify import verify_ledger
from sealbook.warehouse.verification import Verification
from tests.support.many_days import (
    CUSTOMERS,
    DUE,
    KEEP_EVENTS,
    NEVER_GOOD,
    RETAIN,
    ROWS,
    STEP,
    Figures,
    ManyDays,
)
from tests.support.schedule import work_in

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
TICKS_A_WEEK = timedelta(weeks=1) // STEP
LANES = 4
_SPENDING_DAYS = 32
_LATE = timedelta(days=4)
_GROWN_MB = 20.0
"""By so much the memory of a process may vary once it is warm, and grow with its book."""


@pytest.mark.timeout(4 * SECONDS + 600)
def test_many_days(ledger_url: str, tmp_path: Path) -> None:
    """Loops break off, sources fail, days are restated; housekeeping is done once a week."""
    days = ManyDays(tmp_path, ledger_url)
    with closing(days.book):
        began = time.monotonic()
        weeks: list[Figures] = []
        warm: Figures | None = None
        while (passed := time.monotonic() - began) < SECONDS or len(weeks) < 4:
            for _ in range(TICKS_A_WEEK):
                days.pass_time()
            days.keep_house()
            weeks.append(days.measure())
            check_files(weeks[-1])
            check_tables(days, weeks[-1])
            if warm is None and passed > SECONDS / 4 and len(weeks) > 2:
                warm = weeks[-1]
        check_nothing_is_lost(days)
    last = weeks[-1]
    print(f"{time.monotonic() - began:.0f} s: {dict(days.done)}\n{weeks[1]}\n{warm}\n{last}")  # noqa: T201 - the figures of a soak
    assert warm is not None
    assert last.rss_mb < warm.rss_mb + _GROWN_MB
    assert days.done["broken off"] > 0
    assert last.tables["run_event"] < 2 * weeks[2].tables["run_event"], "old runs are in the archive"


def check_files(found: Figures) -> None:
    """The warehouse has what is read, and what was read within the retention; raw is for ever."""
    readable_of_late = RETAIN.days * CUSTOMERS * len(DUE)
    assert 0 <= found.warehouse_files - found.published <= readable_of_late, found
    assert found.archive_files == 2 * found.tables["retired_run"], "a run's events, and their digest"


def check_tables(days: ManyDays, found: Figures) -> None:
    """What has a row for each event, run, judgement or publication has just that; the rest is bounded."""
    tables, done = found.tables, days.done
    for name in ("attempt", "load_record", "removal", "retired_run", "run_head"):
        assert tables[name] == done[name], name
    assert tables["pointer"] == tables["load_record"], "a row for each publication"
    assert tables["run_snapshot"] == tables["run_head"] - tables["retired_run"]
    assert tables["partition_status"] <= CUSTOMERS * (found.day + 1)
    assert tables["partition_state"] <= tables["partition_status"]
    assert tables["work"] <= tables["partition_status"]
    assert tables["status_series"] == CUSTOMERS
    assert tables["flow_pass"] <= CUSTOMERS * LANES
    assert tables["lane_pass"] <= LANES
    assert tables["spending"] <= 2 * LANES * _SPENDING_DAYS * (timedelta(days=1) // STEP)
    assert (tables["newest_run"], tables["warehouse_version"]) == (1, 1)
    for name in ("contract", "contract_in_force", "lease", "projection", "validator"):
        assert tables[name] < 10, name
    for name in ("alert", "alert_notice", "cut", "pause", "plan", "rate_share", "reservation", "rollback"):
        assert tables[name] == 0, name


def check_nothing_is_lost(days: ManyDays) -> None:
    """Each day that was due is readable, or there is work that says when it is tried again, or why not."""
    book, ledger = days.book, days.book.ledger
    states = {state.key: state for state in ledger.states(Selection())}
    published = {each.key: each.run_id for each in ledger.pointers.open_pointers()}
    rows = work_in(ledger)
    assert all(row.holder is None for row in rows.values())
    keys = list(due_keys(days))
    assert len(keys) >= CUSTOMERS * (days.day - 1)
    for key in keys:
        if key not in rows:
            state = states[key]
            assert (state.status, published[key]) == (Status.SUCCESS, state.current_run_id), key
        elif key.customer_id in NEVER_GOOD:
            assert key not in published
        else:
            assert rows[key].work.stop is None, "it is tried again"
            assert key in published or days.now().date() - key.logical_date < _LATE, key
    assert book.table("campaign_daily").num_rows == ROWS * len(published)
    assert list(verify_ledger(ledger.reader, archive=days.archive)) == []
    verification = Verification(ledger.pointers, days.artifacts)
    assert list(verification.pointers(Selection())) == []
    assert [each for each in verification.artifacts(Selection()) if each.mismatches] == []
    oldest = min((run.last_event_at for run in ledger.run_store.quiet_runs(timedelta())), default=days.now())
    assert oldest > days.now() - KEEP_EVENTS - timedelta(weeks=1)


def due_keys(days: ManyDays) -> Iterator[PartitionKey]:
    """Yield every partition that is due by now."""
    expectations = days.book.expectations()
    for each in expectations.universe.due(Selection(), expectations.now):
        for offset in range((each.last - each.first).days + 1):
            day = each.first + timedelta(days=offset)
            yield PartitionKey(each.source, each.customer_id, each.query_name, day)
