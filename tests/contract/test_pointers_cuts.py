"""R-WH-7: a cut gives the same partitions and runs later, whatever was loaded, demoted or dropped since."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from sealbook.errors import Conflict, InvalidInput, NotFound
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.pointers.rows import lock_version
from sealbook.ledger.pointers.tables import pointer
from sealbook.model import PartitionKey
from sealbook.model.publication import Cut
from sealbook.model.selection import Selection
from tests.support.ledger import KEY, OTHER, PostgresqlServer, accept, reject, run_id, until_it_waits
from tests.support.pointers import SINCE, UNTIL, load, planned, seen


def test_a_cut_is_not_changed_by_what_comes_after(ledger: Ledger) -> None:
    """R-WH-7: reloads, demotions, hides and rollbacks leave a pinned read as it was."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    made = ledger.pointers.create_cut("month_end", note="for the auditors")
    pinned = list(ledger.pointers.published(Selection(queries=KEY.query_name), cut="month_end"))
    assert pinned == list(ledger.pointers.published(Selection(queries=KEY.query_name)))

    ledger.judge([accept(KEY, 2)])
    load(ledger)
    ledger.judge([reject(OTHER, 1, again="r")])
    load(ledger)
    ledger.judge([accept(KEY, 3)])
    load(ledger)
    ledger.rollback(KEY, run_id(2), actor="ann", reason="the third is worse")
    load(ledger)
    assert seen(ledger) == {KEY: run_id(2)}
    later = list(ledger.pointers.published(Selection(queries=KEY.query_name), cut="month_end"))
    assert [each._replace(withdrawn=None) for each in later] == pinned
    assert ledger.pointers.cuts() == [made]
    assert (made.token, made.note) == ("month_end", "for the auditors")


def test_a_cut_has_what_could_be_read_and_nothing_else(ledger: Ledger) -> None:
    """R-WH-7: the runs behind too, but nothing that a verdict had demoted, though no loader had hidden it."""
    third = type(KEY)(KEY.source, "9999999999", KEY.query_name, KEY.logical_date)
    ledger.judge([accept(key, 1) for key in (KEY, OTHER, third)])
    load(ledger)
    ledger.judge([accept(KEY, 2), reject(OTHER, 1, again="r"), reject(third, 1, again="r")])
    ledger.judge([accept(third, 2)])
    readable = seen(ledger)
    assert readable == {KEY: run_id(1)}
    ledger.pointers.create_cut("now")
    assert seen(ledger, cut="now") == readable
    load(ledger)
    assert seen(ledger) == {KEY: run_id(2), third: run_id(2)}
    assert seen(ledger, cut="now") == readable


def test_what_changes_while_a_cut_waits_for_its_turn(postgresql: PostgresqlServer) -> None:
    """R-WH-7: all is compared before the lock is taken; what is demoted or restored meanwhile counts too."""
    url = postgresql.create_ledger()
    with open_ledger(url) as ledger, closing(Database(url)) as database:
        ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
        load(ledger)
        ledger.judge([reject(OTHER, 1, again="unsafe when compared")])
        cutting = threading.Thread(target=ledger.pointers.create_cut, args=["now"])

        def hold(connection: Connection) -> None:
            lock_version(connection)
            cutting.start()
            until_it_waits(database, cutting)
            ledger.judge([accept(OTHER, 1, again="safe again"), reject(KEY, 1, again="unsafe by now")])

        database.write(hold)
        cutting.join()
        assert seen(ledger, cut="now") == seen(ledger) == {OTHER: run_id(1)}


def test_hiding_for_a_cut_is_told_and_leaves_the_plan_right(ledger: Ledger) -> None:
    """What a cut hides is hidden like by a loader: once, with word of it, and still to be loaded."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    ledger.judge([reject(KEY, 1, again="r"), reject(OTHER, 1, again="r")])
    ledger.judge([accept(OTHER, 2)])
    ledger.pointers.create_cut()
    hidden = [each for each in ledger.run_store.fetch_feed() if each.event.event_type == "PartitionHidden"]
    assert [each.event.partition for each in hidden] == [str(KEY), str(OTHER)]
    assert [(action.value, key) for action, key in planned(ledger)] == [("load", OTHER)]


def test_a_cut_takes_the_filters_of_a_read(ledger: Ledger) -> None:
    """The same questions, of another time."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 2)])
    load(ledger)
    ledger.pointers.create_cut("now")
    assert list(seen(ledger, cut="now", since=OTHER.logical_date)) == [OTHER]
    assert list(seen(ledger, cut="now", customers=[KEY.customer_id], runs=[run_id(1)])) == [KEY]
    assert seen(ledger, cut="now", customers=[]) == {}
    assert seen(ledger, "ad_daily", cut="now") == {}


def test_what_was_withdrawn_since_is_still_read_and_said(ledger: Ledger) -> None:
    """R-WH-7: rejected or rolled back; coverage names it, and strict leaves it out."""
    later = PartitionKey(KEY.source, KEY.customer_id, KEY.query_name, SINCE + timedelta(days=2))
    keys = [KEY, OTHER, later]
    ledger.judge([accept(key, run) for run in (1, 2) for key in keys])
    load(ledger)
    ledger.pointers.create_cut("then")
    ledger.judge([reject(KEY, 2, again="r")])
    ledger.rollback(OTHER, run_id(1), actor="ann", reason="the second is worse")
    ledger.judge([accept(later, 3)])  # superseded, which is no withdrawal
    load(ledger)

    read = {each.key: each for each in ledger.pointers.published(cut="then")}
    assert {key: (each.run_id, each.withdrawn) for key, each in read.items()} == {
        KEY: (run_id(2), "rejected"),
        OTHER: (run_id(2), "rolled back"),
        later: (run_id(2), None),
    }
    assert seen(ledger, cut="then", strict=True) == {later: run_id(2)}
    universe: Any = {
        "source": KEY.source,
        "customers": [KEY.customer_id],
        "since": SINCE,
        "until": later.logical_date,
        "cut": "then",
    }
    covered = list(ledger.pointers.coverage(KEY.query_name, **universe))
    assert [each.kind for each in covered] == ["withdrawn", "withdrawn", "published"]
    assert [each.run_id for each in covered] == [run_id(2)] * 3
    assert covered[0].why == f"run {run_id(2)} was rejected since; the cut still reads it"
    strict = list(ledger.pointers.coverage(KEY.query_name, **universe, strict=True))
    assert [each.run_id for each in strict] == [None, None, run_id(2)]

    ledger.judge([accept(KEY, 2, again="s")])
    ledger.rollback(OTHER, run_id(2), actor="ann", reason="it is not")
    assert {each.withdrawn for each in ledger.pointers.published(cut="then")} == {None}
    ledger.pointers.create_cut("now")
    ledger.rollback(OTHER, run_id(1), actor="ann", reason="it is")
    ledger.rollback(OTHER, run_id(2), actor="ann", reason="it is not")
    assert {each.withdrawn for each in ledger.pointers.published(cut="now")} == {None}


def test_coverage_at_a_cut(ledger: Ledger) -> None:
    """R-CON-3: what could be read then, and that the others could not."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.pointers.create_cut("then")
    ledger.judge([accept(OTHER, 1), accept(KEY, 2)])
    load(ledger)
    found = ledger.pointers.coverage(
        KEY.query_name, source=KEY.source, customers=[KEY.customer_id], since=SINCE, until=UNTIL, cut="then"
    )
    assert [(each.key, each.kind, each.run_id, each.why) for each in found] == [
        (KEY, "published", run_id(1), None),
        (OTHER, "missing", None, "it could not be read when cut then was made"),
    ]


def test_names_and_tokens(ledger: Ledger) -> None:
    """A cut without a name gets one; a name is taken once; no name looks like a token that is made."""
    first = ledger.pointers.create_cut()
    second = ledger.pointers.create_cut()
    assert [first.token, second.token] == ["v1", "v2"]
    assert (first.version, second.version, ledger.pointers.version()) == (1, 2, 2)
    ledger.pointers.create_cut("a-name_1")
    with pytest.raises(Conflict, match="a-name_1"):
        ledger.pointers.create_cut("a-name_1")
    assert ledger.pointers.version() == 3
    for wrong in ("", "A", "v4", "1a", "a b", "x" * 64, 7):
        with pytest.raises(InvalidInput):
            ledger.pointers.create_cut(wrong)  # type: ignore[arg-type]
    assert [each.token for each in ledger.pointers.cuts()] == ["v1", "v2", "a-name_1"]
    assert datetime.now(UTC) - first.created_at < timedelta(minutes=5)
    assert first == Cut("v1", 1, first.created_at, None)


def test_dropping(ledger: Ledger) -> None:
    """A dropped cut cannot be read, and its name can be given again."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.pointers.create_cut("now")
    ledger.pointers.drop_cut("now")
    assert ledger.pointers.cuts() == []
    with pytest.raises(NotFound, match="'now'"):
        seen(ledger, cut="now")
    with pytest.raises(NotFound, match="'now'"):
        ledger.pointers.drop_cut("now")
    ledger.pointers.create_cut("now")
    assert seen(ledger, cut="now") == {KEY: run_id(1)}


def test_cuts_take_no_space(ledger: Ledger) -> None:
    """A cut is one row, however much it pins."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    for _ in range(10):
        ledger.pointers.create_cut()
    with ledger._database.read() as connection:
        assert connection.execute(select(func.count()).select_from(pointer)).scalar_one() == 2
