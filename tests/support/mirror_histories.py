"""A book that one writer changes, and what it had at each instant, against commits of its mirror."""

from __future__ import annotations

import random
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from sealbook.errors import IllegalMove
from sealbook.model import PartitionKey
from tests.support.ledger import accept, reject
from tests.support.mirrors import Lake, same_rows
from tests.support.published import CONTRACTS, QUERY, key, write

ROWS = 2
_KEYS = [key(customer, day) for customer in range(3) for day in range(3)]


@dataclass
class History:
    """What a book had at each instant, by token, and in their order."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def remember(self, lake: Lake) -> None:
        """Take down the present."""
        with lake.book.snapshot() as at:
            if at.token not in self.order[-1:]:
                self.order.append(at.token)
                self.tables[at.token] = at.table(QUERY)

    def check(self, lake: Lake, known: Container[str] = ()) -> list[str]:
        """Hold each commit but those that are known against the instant it names; return all commits."""
        found = lake.commits()
        instants = iter(self.order)
        assert all(str(token) in instants for _, token in found), (
            "an instant was repeated, or came out of order"
        )
        for commit, token in found:
            if commit not in known:
                assert same_rows(lake.rows(commit), self.tables[str(token)]), commit
        return [commit for commit, _ in found]


class ChangingBook:
    """The only writer of a book: it publishes and demotes, and remembers each instant."""

    def __init__(self, lake: Lake, keys: Sequence[PartitionKey] = _KEYS) -> None:
        self._lake = lake
        self._keys = keys
        self._chance = random.Random(7)
        self._runs = count(1)
        self.history = History()
        self.history.remember(lake)

    def change(self) -> None:
        """Publish another run of some partitions, or demote one."""
        lake, number = self._lake, next(self._runs)
        if number % 4 == 0:
            chosen = self._chance.choice(self._keys)
            state = lake.book.ledger.state(chosen)
            with suppress(IllegalMove):
                lake.book.ledger.judge([reject(chosen, int(state.current_run_id or 0), again=f"k{number}")])
        else:
            keys, version = self._chance.sample(self._keys, 2), self._chance.choice("12")
            lake.book.ledger.judge([accept(each, number, version=version, records=ROWS) for each in keys])
            self.history.remember(lake)
            contract = CONTRACTS[version]
            lake.book.ledger.pointers.swap(
                [write(lake.warehouse, each, number, contract=contract, rows=ROWS) for each in keys]
            )
        self.history.remember(lake)
