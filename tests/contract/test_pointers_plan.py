"""R-WH-1: the plan is what state and pointers differ in, and nothing else."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db import schema
from sealbook.ledger.pointers.tables import authority_change
from sealbook.model import PartitionKey
from sealbook.model.artifacts import FORMAT, Action
from sealbook.model.publication import Difference
from sealbook.model.selection import Selection
from tests.support.ledger import BACKENDS, KEY, OTHER, accept, reject, run_id
from tests.support.pointers import load, planned, stage, staged

JUDGED_AT = "2026-01-01T00:00:00.000000+00:00"


def changes(ledger: Ledger) -> int:
    """Return how many changes of authority wait to be looked at."""
    with ledger._database.read() as connection:
        count: int = connection.execute(select(func.count()).select_from(authority_change)).scalar_one()
    return count


def test_only_what_is_accepted_is_loaded(ledger: Ledger) -> None:
    """R-WH-1: load is for a success without a pointer; failed and requeued partitions are left alone."""
    assert planned(ledger) == []
    ledger.judge([accept(KEY), reject(OTHER)])
    assert planned(ledger) == [(Action.LOAD, KEY)]
    ledger.requeue([OTHER], actor="ann", reason="again")
    assert planned(ledger) == [(Action.LOAD, KEY)]


def test_a_plan_item_says_what_to_load(ledger: Ledger) -> None:
    """The loader need ask no more to stage an item; `earlier` says what the run was loaded as before."""
    ledger.judge([accept(KEY, 1, records=7)])
    [item] = ledger.pointers.plan()
    assert item.key == KEY
    assert item[4:] == (Action.LOAD, run_id(1), "1", 7, None, 0, None)

    load(ledger)
    ledger.judge([accept(KEY, 2, records=8)])
    [item] = ledger.pointers.plan()
    assert item[4:] == (Action.REPLACE, run_id(2), "1", 8, run_id(1), 0, None)

    load(ledger)
    ledger.judge([reject(KEY, 2, again="r")])
    [item] = ledger.pointers.plan()
    assert item[4:] == (Action.HIDE, None, None, None, run_id(2), 0, None)

    ledger.pointers.hide()
    ledger.judge([accept(KEY, 2, again="s", records=8)])
    [item] = ledger.pointers.plan()
    assert item[4:-1] == (Action.LOAD, run_id(2), "1", 8, None, 0)
    [_, second] = ledger.pointers.stored_artifacts()
    assert item.earlier == second
    assert (second.digest, second.format, second.copy, second.kept) == (staged(run=2).digest, FORMAT, 0, True)


def test_a_run_that_is_counted_anew_is_planned(ledger: Ledger) -> None:
    """R-STATE-10: a re-validation that changes only the record_count; the artifact's own count tells."""
    ledger.judge([accept(KEY, 1, records=10)])
    load(ledger)
    ledger.judge([accept(KEY, 1, records=11, again="counted anew")])
    assert planned(ledger) == [(Action.REPLACE, KEY)]
    assert ledger.pointers.swap([staged(KEY, 1, records=10)]).miscounted == (KEY,)
    assert planned(ledger) == [(Action.REPLACE, KEY)]
    ledger.judge([accept(KEY, 1, records=10, again="and again")])
    assert planned(ledger) == []


def test_what_was_hidden_is_loaded_when_it_is_good_again(ledger: Ledger) -> None:
    """R-WH-1: a hidden partition has no pointer."""
    ledger.judge([accept(KEY)])
    load(ledger)
    ledger.judge([reject(KEY, again="r1")])
    assert planned(ledger) == [(Action.HIDE, KEY)]
    assert ledger.pointers.hide() == [KEY]
    assert planned(ledger) == []
    ledger.judge([accept(KEY, again="r2")])
    assert planned(ledger) == [(Action.LOAD, KEY)]
    assert load(ledger).loaded == (KEY,)


def test_an_attempt_that_moves_no_authority_plans_nothing(ledger: Ledger) -> None:
    """R-STATE-3: a failed reprocessing, an older run and a re-validation leave the pointer right."""
    ledger.judge([accept(KEY, 5)])
    load(ledger)
    ledger.judge([reject(KEY, 6), accept(KEY, 4), accept(KEY, 5, again="r")])
    assert planned(ledger) == []
    assert changes(ledger) == 0


def test_a_plan_looks_only_at_what_changed(ledger: Ledger) -> None:
    """A warehouse of any size that is up to date is planned by looking at nothing."""
    ledger.judge([accept(KEY), accept(OTHER)])
    assert changes(ledger) == 2
    load(ledger)
    assert changes(ledger) == 0
    ledger.judge([accept(KEY, 2)])
    ledger.judge([accept(KEY, 3)])
    assert changes(ledger) == 2
    assert planned(ledger) == [(Action.REPLACE, KEY)]
    load(ledger)
    assert changes(ledger) == 0


def test_changes_that_came_to_nothing_are_forgotten(ledger: Ledger) -> None:
    """What was accepted and rejected again before any load need not be looked at for ever."""
    ledger.judge([accept(KEY)])
    ledger.judge([reject(KEY, again="r")])
    assert planned(ledger) == []
    assert changes(ledger) == 2
    assert ledger.pointers.hide() == []
    assert changes(ledger) == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_states_from_before_the_warehouse_are_planned(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-WH-1: what was accepted before there were pointers is to be loaded."""
    if backend == "postgresql":
        url = request.getfixturevalue("postgresql").create_database()
    else:
        url = f"sqlite:///{tmp_path}/book.db"
    with monkeypatch.context() as past:
        past.setattr(schema, "HEAD", "0002")
        with open_ledger(url, migrate=True) as ledger, ledger._database.engine.begin() as connection:
            for key, rest in (
                (KEY, f"'success', '{run_id(1)}', '1', 10, '{JUDGED_AT}', NULL, 1"),
                (OTHER, f"'failed', NULL, NULL, NULL, '{JUDGED_AT}', 'bad', 1"),
            ):
                values = ", ".join(f"'{value}'" for value in str(key).split("/"))
                connection.exec_driver_sql(f"INSERT INTO partition_state VALUES ({values}, {rest})")
    with open_ledger(url, migrate=True) as ledger:
        assert planned(ledger) == [(Action.LOAD, KEY)]


def test_a_success_that_nobody_judged_is_planned(ledger: Ledger) -> None:
    """However a success came into the table, say by a restored backup, it is to be loaded."""
    with ledger._database.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO partition_state VALUES ('google_ads', '1234567890', 'campaign_daily', '2026-01-01',"
            f" 'success', '{run_id(1)}', '1', 10, '2026-01-01T00:00:00.000000+00:00', NULL, 1)"
        )
    assert planned(ledger) == [(Action.LOAD, KEY)]


KEYS = [
    PartitionKey(source, customer, query, date(2026, 1, day))
    for source in ("demo", "other")
    for customer in ("a", "b", "c")
    for query in ("clicks", "views")
    for day in (1, 2)
]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, KEYS),
        ({"source": "demo"}, [key for key in KEYS if key.source == "demo"]),
        ({"queries": "views"}, [key for key in KEYS if key.query_name == "views"]),
        ({"customers": ["a", "c"]}, [key for key in KEYS if key.customer_id in "ac"]),
        ({"customers": []}, []),
        ({"since": date(2026, 1, 2)}, [key for key in KEYS if key.logical_date.day == 2]),
        (
            {"until": date(2026, 1, 1), "source": "demo"},
            [key for key in KEYS if key.logical_date.day == 1][:6],
        ),
    ],
)
def test_filters_apply_to_plan_load_and_lists(
    ledger: Ledger, filters: dict[str, Any], expected: list[PartitionKey]
) -> None:
    """Everything comes in key order and takes the same filters; nothing else is touched."""
    others, chosen = sorted(set(KEYS) - set(expected)), Selection(**filters)
    ledger.judge([accept(key) for key in reversed(KEYS)])
    assert planned(ledger, chosen) == [(Action.LOAD, key) for key in expected]

    assert load(ledger, chosen).loaded == tuple(expected)
    assert planned(ledger) == [(Action.LOAD, key) for key in others]
    load(ledger)

    pointers = ledger.pointers.pointers(chosen)
    assert [each.key for each in pointers] == sorted(expected, key=lambda key: (key.query_name, key))
    assert [each.key for each in ledger.pointers.load_records(chosen)] == expected

    ledger.judge([reject(key, again="r") for key in KEYS])
    assert ledger.pointers.hide(chosen) == expected
    assert planned(ledger) == [(Action.HIDE, key) for key in others]


def test_runs_and_statuses_are_those_of_the_state(ledger: Ledger) -> None:
    """A change names no run: the plan is asked for by the run that has authority."""
    ledger.judge([accept(KEYS[0], 1), accept(KEYS[1], 2)])
    assert planned(ledger, Selection(runs=[run_id(2)])) == [(Action.LOAD, KEYS[1])]
    assert planned(ledger, Selection(keys=KEYS[:2], runs=[run_id(1)])) == [(Action.LOAD, KEYS[0])]
    load(ledger)
    ledger.judge([reject(KEYS[0], 1, again="r")])
    assert planned(ledger, Selection(statuses="failed")) == [(Action.HIDE, KEYS[0])]
    assert planned(ledger, Selection(statuses="success")) == []


def test_plan_in_memory_leaves_the_connection_free() -> None:
    """While a plan is streamed, the swap of its first items can go on."""
    with open_ledger("sqlite:///:memory:") as ledger:
        ledger.judge([accept(KEY), accept(OTHER)])
        for item in ledger.pointers.plan():
            ledger.pointers.swap([stage(item)])
        assert planned(ledger) == []


def test_every_difference_between_pointer_and_state_is_named(ledger: Ledger) -> None:
    """Verification compares all pointers, also where no change was noted."""
    ledger.judge([accept(key, 2) for key in KEYS[:6]])
    load(ledger)
    assert list(ledger.pointers.differences()) == []
    ledger.judge([accept(KEYS[0], 3), reject(KEYS[1], 2, again="r"), accept(KEYS[2], 3, version="9")])
    ledger.judge([accept(KEYS[3], 2, records=11, again="r")])
    with ledger._database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM authority_change")
        connection.exec_driver_sql(
            f"DELETE FROM load_record WHERE customer_id = '{KEYS[4].customer_id}'"
            f" AND query_name = '{KEYS[4].query_name}' AND logical_date = '{KEYS[4].logical_date}'"
        )
    assert list(ledger.pointers.differences()) == sorted(
        [
            Difference(KEYS[0], "run_id", run_id(2), run_id(3), noted=False),
            Difference(KEYS[1], "status", "available", "failed", noted=False),
            Difference(KEYS[2], "run_id", run_id(2), run_id(3), noted=False),
            Difference(KEYS[2], "schema_version", "1", "9", noted=False),
            Difference(KEYS[3], "record_count", "10", "11", noted=False),
            Difference(KEYS[4], "record_count", "no load record", "10", noted=False),
        ],
        key=lambda difference: difference.key,
    )
