"""Mirrors: each commit equals one instant of the book, by other engines, on each ledger and format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.errors import Conflict, IllegalMove, Irreconcilable, NotFound
from sealbook.model.artifacts import Action
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract
from sealbook.model.selection import Selection
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.store import ArtifactStore
from tests.support.ledger import accept, reject, run_id
from tests.support.mirrors import KINDS, MIRROR, Lake, same_rows
from tests.support.published import CONTRACTS, IRRECONCILABLE, QUERY, SOURCE, key, publish, write, write_table

WHO: Any = {"actor": "ann", "reason": "to try it"}

Opener = Callable[..., Lake]

_lakes = count()
_judgements = count()


@pytest.fixture(params=KINDS)
def open_lake(request: pytest.FixtureRequest, ledger_url: str, tmp_path: Path) -> Iterator[Opener]:
    with ExitStack() as opened:

        def open_one(**asked: Any) -> Lake:
            lake = Lake.open(request.param, ledger_url, tmp_path, **asked)
            opened.callback(lake.close)
            return lake

        yield open_one


@pytest.fixture
def lake(open_lake: Opener) -> Lake:
    return open_lake()


def test_a_mirror_has_what_is_published_and_goes_on_from_its_own_commit(lake: Lake) -> None:
    publish(lake.book.ledger, lake.warehouse, [key(0, 0), key(1, 1)], 1, version="1")
    publish(lake.book.ledger, lake.warehouse, [key(0, 1)], 1, version="2", parts=2)
    publish(lake.book.ledger, lake.warehouse, [key(2, 0)], 1, version="2", rows=0)
    first = lake.run()
    assert (first.partitions, first.rebuilt) == (4, "it is new")
    assert lake.is_equal()
    assert lake.run().commit is None
    publish(lake.book.ledger, lake.warehouse, [key(0, 0)], 2, version="2")
    lake.book.ledger.judge([reject(key(1, 1), 1, again="1")])
    second = lake.run()
    assert (second.partitions, second.rebuilt) == (2, None)
    assert lake.is_equal()
    assert [token for _, token in lake.commits()] == [first.token, second.token]


def test_demotions_and_rollbacks_reach_the_next_commit_whether_or_not_a_load_came_by(lake: Lake) -> None:
    ledger = lake.book.ledger
    for run in (1, 2):
        publish(ledger, lake.warehouse, [key()], run, version="2")
    lake.run()
    ledger.rollback(key(), run_id(1), **WHO)
    lake.run()
    assert set(lake.rows()["run_id"].to_pylist()) == {run_id(1)}
    ledger.judge([reject(key(), 1, again="1")])
    lake.run()
    assert lake.rows().num_rows == 0
    ledger.judge([accept(key(), 1, again="2", version="2")])
    assert lake.run().rebuilt is None
    assert lake.is_equal()


def test_what_was_withdrawn_and_came_back_in_between_stays_as_it_is(lake: Lake) -> None:
    publish(lake.book.ledger, lake.warehouse, [key(), key(1)], 1, version="2")
    lake.run()
    lake.book.ledger.judge([reject(key(), 1, again="1")])
    lake.book.ledger.pointers.hide()
    lake.book.ledger.judge([accept(key(), 1, again="2", version="2")])
    lake.book.ledger.pointers.swap([write(lake.warehouse, key(), 1, contract=CONTRACTS["2"])])
    done = lake.run()
    assert (done.partitions, done.added, done.removed) == (1, 0, 0)
    assert lake.is_equal()


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["accept", "accept", "reject", "roll back"]), st.integers(0, 1), st.integers(1, 4)
        ),
        st.tuples(
            st.sampled_from(["load", "load", "hide", "requeue", "mirror", "mirror"]), st.just(0), st.just(0)
        ),
    ),
    min_size=6,
    max_size=16,
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_each_commit_of_any_history_equals_one_instant_of_the_book(
    lake: Lake, steps: list[tuple[str, int, int]]
) -> None:
    customer = next(_lakes)
    keys = [key(customer, day) for day in (0, 1)]
    seen: dict[str, pa.Table] = {}
    for step in [("accept", 0, 1), ("load", 0, 0), *steps, ("mirror", 0, 0)]:
        try:
            _take(lake, keys, step, seen)
        except (IllegalMove, NotFound):
            continue
    assert lake.is_equal()
    for commit, rows in seen.items():
        assert same_rows(lake.rows(commit), rows)


def _take(lake: Lake, keys: list[Any], step: tuple[str, int, int], seen: dict[str, pa.Table]) -> None:
    what, place, run = step
    ledger, again = lake.book.ledger, f"h{next(_judgements)}"
    match what:
        case "accept":
            version = str(1 + run % 2)
            ledger.judge([accept(keys[place], run, again=again, records=2, version=version)])
        case "reject":
            ledger.judge([reject(keys[place], run, again=again)])
        case "roll back":
            ledger.rollback(keys[place], run_id(run), **WHO)
        case "hide":
            ledger.pointers.hide()
        case "requeue":
            ledger.requeue([each.key for each in ledger.states(status="failed")], **WHO)
        case "load":
            ledger.pointers.hide()
            planned = ledger.pointers.plan(Selection(keys=keys))
            ledger.pointers.swap(
                write(
                    lake.warehouse,
                    each.key,
                    int(str(each.run_id)),
                    contract=CONTRACTS[str(each.schema_version)],
                    rows=2,
                )
                for each in planned
                if each.action is not Action.HIDE
            )
        case "mirror":
            done = lake.run()
            if done.commit is not None:
                seen[done.commit] = lake.book.table(QUERY)


def _contract(version: str, *columns: Column) -> Contract:
    return Contract(QUERY, version, columns)


def test_a_new_version_widens_renames_and_adds_columns_in_one_commit(open_lake: Opener) -> None:
    first = {
        "1": _contract(
            "1",
            Column("id", ColumnType("int")),
            Column("cost", ColumnType("decimal(9,2)")),
            Column("kind", ColumnType("int")),
            Column("label", ColumnType("string")),
        )
    }
    second = first | {
        "2": _contract(
            "2",
            Column("id", ColumnType("bigint")),
            Column("cost", ColumnType("decimal(12,2)")),
            Column("kind", ColumnType("double")),
            Column("title", ColumnType("string"), renamed_from="label"),
            Column("tags", ColumnType("array<string>")),
            Column("more", ColumnType("json")),
        )
    }
    lake = open_lake(contracts=first, present="1")
    lake.book.ledger.judge([accept(key(), 1, version="1", records=2)])
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "cost": pa.array([None, "1.25"]).cast(pa.decimal128(9, 2)),
            "kind": pa.array([3, None], pa.int32()),
            "label": ["a", None],
        }
    )
    lake.book.ledger.pointers.swap([write_table(lake.warehouse, key(), 1, rows)])
    assert lake.run().copied == 0
    assert lake.is_equal()
    lake = open_lake(contracts=second, present="2")
    lake.book.ledger.judge([accept(key(1), 1, version="2", records=1)])
    rows = pa.table(
        {
            "id": pa.array([2**40], pa.int64()),
            "cost": pa.array(["7777777777.25"]).cast(pa.decimal128(12, 2)),
            "kind": [0.5],
            "title": ["b"],
            "tags": pa.array([["x", None]], pa.list_(pa.field("element", pa.string()))),
            "more": ['{"a": 1}'],
        }
    )
    lake.book.ledger.pointers.swap([write_table(lake.warehouse, key(1), 1, rows, version="2")])
    done = lake.run()
    assert done.rebuilt == "columns or places are others"
    assert done.copied == 1  # an int is a double for no format, and the other version is as it should be
    assert lake.is_equal()
    assert len(lake.commits()) == 2


def test_files_are_referred_to_where_the_format_reads_them_as_the_book_does(open_lake: Opener) -> None:
    first = _contract("1", Column("id", ColumnType("int")), Column("label", ColumnType("string")))
    second = _contract(
        "2",
        Column("id", ColumnType("bigint")),
        Column("title", ColumnType("string"), renamed_from="label"),
    )
    lake = open_lake(contracts={"1": first, "2": second}, present="2")
    lake.book.ledger.judge([accept(key(), 1, version="1", records=1)])
    rows = pa.table({"id": pa.array([1], pa.int32()), "label": ["a"]})
    lake.book.ledger.pointers.swap([write_table(lake.warehouse, key(), 1, rows)])
    assert lake.run().copied == (0 if lake.kind == "iceberg" else 1)
    assert lake.is_equal()


def test_a_column_of_two_types_is_told(open_lake: Opener) -> None:
    lake = open_lake(contracts=IRRECONCILABLE, present="3")
    [done] = lake.book.mirror(MIRROR).run()
    assert done.failed is not None
    assert "column clicks" in done.failed
    with pytest.raises(Irreconcilable):
        lake.book.mirror(MIRROR).queries[0].run()


def _foreign_rows(lake: Lake) -> pa.Table:
    rows = lake.rows()
    return pa.table([each.combine_chunks() for each in rows.columns], schema=rows.schema)


def append_rows(lake: Lake) -> None:
    if lake.kind == "iceberg":
        lake.iceberg().append(_foreign_rows(lake))
    else:
        write_deltalake(lake.delta(), _foreign_rows(lake), mode="append")


def delete_rows(lake: Lake) -> None:
    if lake.kind == "iceberg":
        lake.iceberg().delete(f"customer_id = '{key(1).customer_id}'")
    else:
        lake.delta().delete(f"customer_id = '{key(1).customer_id}'")


def change_columns(lake: Lake) -> None:
    if lake.kind == "iceberg":
        with lake.iceberg().update_schema() as update:
            update.rename_column("clicks", "klicks")
    else:
        write_deltalake(
            lake.delta(),
            _foreign_rows(lake).drop_columns(["clicks"]),
            mode="overwrite",
            schema_mode="overwrite",
        )


@pytest.mark.parametrize("tamper", [append_rows, delete_rows, change_columns])
def test_a_mirror_that_others_changed_is_noticed_and_made_anew(
    lake: Lake, tamper: Callable[[Lake], None]
) -> None:
    publish(lake.book.ledger, lake.warehouse, [key(0), key(1)], 1, version="2")
    lake.run()
    tamper(lake)
    assert not lake.is_equal()
    assert lake.run().rebuilt == "its latest commit is not of the mirror"
    assert lake.is_equal()
    publish(lake.book.ledger, lake.warehouse, [key(0)], 2, version="2")
    assert lake.run().rebuilt is None
    assert lake.is_equal()


def test_copies_that_were_removed_are_written_again_by_a_check(lake: Lake) -> None:
    publish(lake.book.ledger, lake.warehouse, [key(0)], 1, version="2")
    contract = _contract("1", Column("id", ColumnType("int")), Column("share", ColumnType("int")))
    lake = Lake.open(lake.kind, lake.url, Path(lake.warehouse).parent, {"1": contract, "2": CONTRACTS["2"]})
    with closing(lake):
        publish_one(lake, contract)
        assert lake.run().copied == 1
        for copy in Path(lake.location).rglob("copied/**/*.parquet"):
            copy.unlink()
        assert lake.run(check=True).commit is None
        assert lake.is_equal()


def publish_one(lake: Lake, contract: Contract) -> None:
    lake.book.ledger.judge([accept(key(1), 1, version=contract.schema_version, records=3)])
    lake.book.ledger.pointers.swap([write(lake.warehouse, key(1), 1, contract=contract, rows=3)])


def test_a_check_finds_files_that_were_written_anew_under_other_names(lake: Lake) -> None:
    ledger, contract = lake.book.ledger, CONTRACTS["2"]
    publish(ledger, lake.warehouse, [key()], 1, version="2")
    lake.run()
    before = sorted(Path(lake.warehouse).rglob("part-*.parquet"))
    ledger.pointers.refile([write(lake.warehouse, key(), 1, contract=contract, copy=1)])
    for file in before:
        file.unlink()
    assert lake.run().commit is None  # nothing that is published changed
    done = lake.run(check=True)
    assert done.rebuilt == "its files are not those of what is published"
    assert lake.is_equal()
    assert lake.run(check=True).commit is None


def test_clean_up_keeps_what_a_mirror_refers_to_until_it_has_moved_on(lake: Lake) -> None:
    ledger = lake.book.ledger
    publish(ledger, lake.warehouse, [key()], 1, version="2")
    lake.run()
    before = lake.rows()
    publish(ledger, lake.warehouse, [key()], 2, version="2")
    assert _cleaned(lake) == []
    assert same_rows(lake.rows(), before)
    lake.run()
    assert _cleaned(lake) == [run_id(1)]
    assert lake.is_equal()


def test_clean_up_keeps_what_a_mirror_refers_to_that_died_before_it_said_so(lake: Lake) -> None:
    ledger = lake.book.ledger
    publish(ledger, lake.warehouse, [key()], 1, version="2")
    lake.run()
    first = ledger.pointers.consumer(f"mirror.{MIRROR}", SOURCE, QUERY)
    assert first is not None
    publish(ledger, lake.warehouse, [key()], 2, version="2")
    lake.run()
    # As the ledger is if it was killed right after its commit.
    ledger.pointers.advance(first.name, SOURCE, QUERY, first.token, holds=True)
    publish(ledger, lake.warehouse, [key()], 3, version="2")
    assert run_id(2) not in _cleaned(lake)
    assert set(lake.rows()["run_id"].to_pylist()) == {run_id(2)}


def test_a_consumer_that_holds_nothing_keeps_nothing(lake: Lake) -> None:
    ledger = lake.book.ledger
    publish(ledger, lake.warehouse, [key()], 1, version="2")
    lake.run()
    ledger.pointers.advance("reports", SOURCE, QUERY, "1")
    publish(ledger, lake.warehouse, [key()], 2, version="2")
    ledger.pointers.drop_consumer(f"mirror.{MIRROR}")
    assert _cleaned(lake) == [run_id(1)]


def _cleaned(lake: Lake) -> list[str]:
    found = Cleanup(lake.book.ledger.pointers, ArtifactStore.open(lake.warehouse), timedelta(0)).remove()
    return [str(each.run_id) for each in found]


def test_a_mirror_from_before_a_ledger_went_back_is_made_anew(lake: Lake) -> None:
    publish(lake.book.ledger, lake.warehouse, [key()], 1, version="2")
    lake.run()
    [query] = lake.book.mirror(MIRROR).queries
    latest = query.table.latest()
    assert latest is not None
    plan = query._plan(latest, None)
    assert plan.rebuilt is None
    ahead = query._plan(replace(latest, token="999"), None)
    assert ahead.rebuilt == "its position is none of this ledger"


def test_where_each_query_stands_is_told(lake: Lake) -> None:
    mirror = lake.book.mirror(MIRROR)
    [none] = mirror.standings()
    assert (none.commit, none.changes) == (None, None)
    publish(lake.book.ledger, lake.warehouse, [key(0), key(1)], 1, version="2")
    done = lake.run()
    publish(lake.book.ledger, lake.warehouse, [key(0)], 2, version="2")
    [standing] = mirror.standings()
    assert (standing.commit, standing.token, standing.changes) == (done.commit, done.token, 1)
    assert standing.committed_at is not None
    [consumer] = lake.book.ledger.pointers.consumers()
    assert (consumer.name, consumer.token, consumer.holds) == (f"mirror.{MIRROR}", done.token, True)


def test_of_two_that_commit_at_once_one_is_refused(lake: Lake) -> None:
    publish(lake.book.ledger, lake.warehouse, [key()], 1, version="2")
    lake.run()
    publish(lake.book.ledger, lake.warehouse, [key()], 2, version="2")
    [slow], [quick] = (lake.book.mirror(MIRROR).queries for _ in range(2))
    latest = slow.table.latest()
    plan = slow._plan(latest, None)
    batch = slow._batch(plan, slow.table.files())
    quick.run()
    with pytest.raises(Conflict, match="somebody else"):
        slow.table.commit(batch)
    assert lake.is_equal()
