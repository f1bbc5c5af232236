"""Random histories of two partitions: verdicts, rollbacks, loads; and what consumers make of changes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from hypothesis import strategies as st

from sealbook.book import Book
from sealbook.book.snapshot import Snapshot
from sealbook.model import PartitionKey
from sealbook.model.artifacts import Action
from sealbook.model.published_changes import Changes, PublishedChange
from sealbook.model.selection import Selection
from tests.support.ledger import accept, reject, run_id
from tests.support.published import CONTRACTS, FIRST_DAY, QUERY, SOURCE, rows_of, write

WHO: Any = {"actor": "ann", "reason": "to try it"}
RUNS = st.integers(1, 4)
KEYS = st.integers(0, 1)
Step = tuple[str, int, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["accept", "accept", "reject", "roll back"]), KEYS, RUNS),
        st.tuples(st.sampled_from(["load", "load", "hide", "cut", "requeue"]), st.just(0), st.just(0)),
    ),
    min_size=4,
    max_size=14,
)
Rows = dict[PartitionKey, list[dict[str, Any]]]

_customers = count()
_judgements = count()


class History:
    """Some steps on two partitions of a customer of its own, so that many histories share a ledger."""

    def __init__(self, book: Book) -> None:
        self.book = book
        customer = f"h{next(_customers)}"
        self.keys = [PartitionKey(SOURCE, customer, QUERY, FIRST_DAY.replace(day=day)) for day in (1, 2)]
        self.selection = Selection(source=SOURCE, queries=QUERY, customers=customer)

    def take(self, step: Step) -> None:
        what, place, run = step
        ledger, key = self.book.ledger, self.keys[place]
        again = str(next(_judgements))
        match what:
            case "accept":
                ledger.judge([accept(key, run, again=again, records=2)])
            case "reject":
                ledger.judge([reject(key, run, again=again)])
            case "roll back":
                ledger.rollback(key, run_id(run), **WHO)
            case "load":
                self.load()
            case "hide":
                ledger.pointers.hide()
            case "cut":
                ledger.pointers.create_cut()
            case "requeue":
                ledger.requeue([each.key for each in ledger.states(status="failed")], **WHO)

    def load(self) -> None:
        ledger, warehouse = self.book.ledger, self.book.settings.warehouse
        ledger.pointers.hide()
        plan = [each for each in ledger.pointers.plan(self.selection) if each.action is not Action.HIDE]
        ledger.pointers.swap(
            write(warehouse, each.key, int(str(each.run_id)), contract=CONTRACTS["1"], rows=2)
            for each in plan
        )

    def rows(self, at: Snapshot | Book) -> Rows:
        """Read what consumers get."""
        found: Rows = {}
        names = [column.name for column in CONTRACTS["1"].columns]
        table = at.table(
            QUERY, customers=self.selection.customers, columns=["customer_id", "logical_date", *names]
        )
        for row in table.to_pylist():
            key = PartitionKey(SOURCE, row.pop("customer_id"), QUERY, row.pop("logical_date"))
            found.setdefault(key, []).append(row)
        return found

    def changes(self, after: str, limit: int | None = None, until: str | None = None) -> Changes:
        pointers = self.book.ledger.reader.pointers
        end = None if until is None else pointers.token(until)
        return pointers.changes(self.selection, pointers.token(after), limit, until=end)


def replayed(rows: Rows, found: Changes) -> Rows:
    """Apply changes to what was read: each run has rows of its own."""
    return applied(rows, found.items)


def applied(rows: Rows, changes: Iterable[PublishedChange]) -> Rows:
    """Do the same with changes from anywhere."""
    copy = dict(rows)
    for each in changes:
        if each.from_run_id is None:
            assert each.key not in copy
        else:
            assert copy.pop(each.key) == _rows_of(each.from_run_id)
        if each.to_run_id is not None:
            copy[each.key] = _rows_of(each.to_run_id)
    return copy


def _rows_of(run: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows_of(CONTRACTS["1"], 2, int(run)).to_pylist()
    return found
