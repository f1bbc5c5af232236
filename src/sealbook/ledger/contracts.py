"""Contracts by their hash, and when each came into force: what one has judged can be read by it for ever."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, func, insert, select

from sealbook.errors import NotFound
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.contract_tables import contract, contract_in_force
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.schema import wait_for_turn
from sealbook.ledger.states.tables import attempt
from sealbook.model import Outcome
from sealbook.model.contract import Contract, Query
from sealbook.model.staleness import CodeInForce
from sealbook.model.universe import AssetName

_encode = msgspec.json.Encoder(decimal_format="number", enc_hook=str).encode
_decode = msgspec.json.Decoder(Contract, dec_hook=lambda kind, text: kind(text)).decode


class InForce(NamedTuple):
    """A contract of a query's schema_version, by its hash, and since when it has been in force."""

    source: str
    query_name: str
    schema_version: str
    since: datetime
    hash: str


class ContractReader:
    """The port of whoever must know what a run was judged by."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def contract(self, digest: str) -> Contract:
        """Return the contract of a hash; NotFound if none of that hash has been in force."""
        with self._database.read() as connection:
            body = connection.execute(select(contract.c.body).where(contract.c.hash == digest)).scalar()
        if body is None:
            raise NotFound(f"no contract has the hash {digest}")
        return _decode(body)

    def as_recorded(self, query: Query) -> Query:
        """Return a query with the contracts by which its accepted runs are read, whatever it says by now.

        The shape of a schema_version is fixed once a run is accepted under it (R-WH-7). Rules are those of
        the query as it is given.
        """
        fixed = {each.schema_version: each for each in self._fixed(query)}
        return replace(query, contracts={**query.contracts, **fixed}) if fixed else query

    def reshaped(self, query: Query) -> list[Contract]:
        """Return the recorded contracts with accepted runs that a query has in another shape."""
        return [each for each in self._fixed(query) if each.schema_version in query.contracts]

    def _fixed(self, query: Query) -> list[Contract]:
        """Return the contracts with accepted runs that a query lacks, or has in another shape."""
        of_query = (contract_in_force.c.source == query.source, contract_in_force.c.query_name == query.name)
        in_order = (
            select(contract_in_force.c.schema_version, contract.c.body)
            .join(contract, contract.c.hash == contract_in_force.c.hash)
            .where(*of_query)
            .order_by(contract_in_force.c.since)
        )
        with self._database.read() as connection:
            latest: dict[str, str] = dict(connection.execute(in_order).all())
            recorded = [_decode(body) for body in latest.values()]
            return [
                each
                for each in recorded
                if (configured := query.contracts.get(each.schema_version)) is None
                or configured.shape != each.shape
                if _has_accepted(connection, query, each.schema_version)
            ]

    def in_force(self, queries: Iterable[Query]) -> dict[AssetName, CodeInForce]:
        """Return what partitions of queries are judged by now, by contracts of their present schema_version.

        A query whose contract has not judged anything yet has none.
        """
        latest = {(each.source, each.query_name, each.schema_version): each for each in self.history()}

        def of(query: Query, version: str) -> InForce | None:
            return latest.get((query.source, query.name, version))

        found = {}
        for query in queries:
            present = of(query, query.schema_version)
            if present is not None:
                others = (of(query, span.schema_version) for span in query.spans)
                also = frozenset(each.hash for each in others if each is not None and each is not present)
                found[AssetName(query.source, query.name)] = CodeInForce(present.hash, present.since, also)
        return found

    def history(self, source: str | None = None, query_name: str | None = None) -> list[InForce]:
        """Return every contract that came into force, oldest first within its schema_version."""
        query = select(contract_in_force).order_by(*contract_in_force.primary_key)
        if source is not None:
            query = query.where(contract_in_force.c.source == source)
        if query_name is not None:
            query = query.where(contract_in_force.c.query_name == query_name)
        with self._database.read() as connection:
            return [InForce(*row) for row in connection.execute(query)]


class ContractWriter:
    """The port of the validator, which puts contracts into force by judging with them."""

    def __init__(self, database: Database, clock: LedgerClock) -> None:
        self._database = database
        self._clock = clock

    def put_in_force(self, queries: Iterable[Query]) -> list[InForce]:
        """Record the contracts of these queries that were not in force yet, and return those."""
        given = {
            (query.source, query.name, version): each
            for query in queries
            for version, each in query.contracts.items()
        }
        with self._database.read() as connection:  # nearly always there is nothing to write
            if not _new(connection, given):
                return []

        def work(connection: Connection) -> list[InForce]:
            wait_for_turn(connection)  # validators that start together find the same change
            # Later than any before: the latest is the one in force, whatever a clock says (R-STATE-11).
            last = connection.execute(select(func.max(contract_in_force.c.since))).scalar()
            at = self._clock.now(connection, not_before=last and last + timedelta(microseconds=1))
            changed = [InForce(*name, at, given[name].hash) for name in _new(connection, given)]
            known = set(connection.execute(select(contract.c.hash)).scalars())
            for each in changed:
                if each.hash not in known:
                    body = _encode(given[each[:3]]).decode()
                    connection.execute(insert(contract).values((each.hash, *each[:3], body)))
                    known.add(each.hash)
                connection.execute(insert(contract_in_force).values(each))
            return changed

        return self._database.write(work)


def _has_accepted(connection: Connection, query: Query, version: str) -> bool:
    accepted = select(attempt.c.attempt).where(
        attempt.c.source == query.source,
        attempt.c.query_name == query.name,
        attempt.c.schema_version == version,
        attempt.c.outcome == Outcome.ACCEPTED.value,
    )
    return connection.execute(accepted.limit(1)).one_or_none() is not None


def _new(connection: Connection, given: dict[tuple[str, str, str], Contract]) -> list[tuple[str, str, str]]:
    """Return the names of contracts that are not the ones in force."""
    query = select(contract_in_force).order_by(contract_in_force.c.since)
    latest = {tuple(row[:3]): row.hash for row in connection.execute(query)}
    return [name for name, each in given.items() if latest.get(name) != each.hash]
