"""Tokens that are kept under the names of consumers, and who has which run of a partition (R-CON-5)."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, and_, delete, or_, select
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.errors import NotFound
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import at_key
from sealbook.ledger.pointers.conditions import AT_CUT, WITHDRAWN
from sealbook.ledger.pointers.published import PublishedReader
from sealbook.ledger.pointers.tables import consumer, cut, pointer
from sealbook.model import PartitionKey
from sealbook.model.publication import Withdrawal
from sealbook.model.published_changes import (
    ChangeToken,
    Consumer,
    Holder,
    UnreadPointer,
    check_consumer_name,
)
from sealbook.model.selection import Selection, key_of

_PLACE = [consumer.c[name] for name in ("name", "source", "query_name")]
_ADVANCED = ("version", "token", "advanced_at", "holds")
_REACHED = and_(
    pointer.c.source == consumer.c.source,
    pointer.c.query_name == consumer.c.query_name,
    pointer.c.valid_from <= consumer.c.version,
    or_(pointer.c.valid_to.is_(None), pointer.c.valid_to > consumer.c.version),
)
"""The pointer held at the instant up to which a consumer has come."""


class ConsumerReader:
    """The port of whoever asks who follows what."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def consumers(self) -> list[Consumer]:
        """Return every consumer with a token, by name and then by query."""
        with self._database.read() as connection:
            rows = connection.execute(select(consumer).order_by(*_PLACE))
            return [Consumer(*row) for row in rows]

    def consumer(self, name: str, source: str, query_name: str) -> Consumer | None:
        """Return how far a consumer has come with a query; None if it has not begun."""
        check_consumer_name(name)
        here = (column == value for column, value in zip(_PLACE, (name, source, query_name), strict=True))
        query = select(consumer).where(*here)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Consumer(*row)

    def holders(self, key: PartitionKey) -> list[Holder]:
        """Return which cuts and consumers have a run of a partition, and whether it was withdrawn since."""
        with self._database.read() as connection:
            return [*_cuts(connection, key), *_consumers(connection, key)]


class ConsumerWriter:
    """The port of consumers that keep their tokens in the ledger."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def advance(
        self, name: str, source: str, query_name: str, token: str, *, holds: bool = False
    ) -> Consumer:
        """Keep the token up to which a consumer has come with a query, be it further or back.

        With `holds`, clean-up keeps what was published then or since, until it advances or is dropped.
        InvalidInput if it is none of this ledger; NotFound if it names a cut that is not there.
        """
        check_consumer_name(name)
        reader = PublishedReader(self._database)
        reached = reader.token(token)
        reader.changes(Selection(source=source, queries=query_name), reached, limit=1)

        def work(connection: Connection) -> Consumer:
            at = self._clock.now(connection)
            kept = Consumer(name, source, query_name, reached.version, str(reached), at, holds)
            insert_into = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            statement = insert_into(consumer).values(kept._asdict())
            changed = {each: statement.excluded[each] for each in _ADVANCED}
            connection.execute(statement.on_conflict_do_update(index_elements=_PLACE, set_=changed))
            return kept

        return self._database.write(work, repeatable=True)

    def drop_consumer(self, name: str) -> int:
        """Forget a consumer; return of how many queries. NotFound if there is none of that name."""
        check_consumer_name(name)

        def work(connection: Connection) -> int:
            dropped = connection.execute(delete(consumer).where(consumer.c.name == name)).rowcount
            if not dropped:
                raise NotFound(
                    f"there is no consumer {name!r}", remedy="`sealbook consumers` lists the consumers."
                )
            return dropped

        return self._database.write(work)


def _cuts(connection: Connection, key: PartitionKey) -> Iterator[Holder]:
    query = (
        select(cut.c.token, cut.c.version, pointer.c.run_id, WITHDRAWN)
        .select_from(cut)
        .join(pointer, AT_CUT)
        .where(*at_key(pointer, key))
        .order_by(cut.c.version, cut.c.token)
    )
    for name, version, run_id, withdrawn in connection.execute(query):
        yield Holder("cut", name, version, run_id, _withdrawal(withdrawn))


def _consumers(connection: Connection, key: PartitionKey) -> Iterator[Holder]:
    query = (
        select(consumer.c.name, consumer.c.token, consumer.c.version)
        .add_columns(pointer.c.valid_from, pointer.c.run_id, WITHDRAWN)
        .select_from(consumer)
        .join(pointer, _REACHED)
        .where(*at_key(pointer, key))
        .order_by(consumer.c.name)
    )
    for name, token, version, valid_from, run_id, withdrawn in connection.execute(query):
        # Who was told already that it cannot be read has it no more.
        if UnreadPointer(*key_of(key), valid_from) not in ChangeToken.parse(token).unread:
            yield Holder("consumer", name, version, run_id, _withdrawal(withdrawn))


def _withdrawal(found: str | None) -> Withdrawal | None:
    return None if found is None else Withdrawal(found)
