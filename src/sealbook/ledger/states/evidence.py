"""Evidence as the ledger keeps it: a validator's checks once, and of each attempt only what they found.

A check that passed and found nothing follows from the validator: its version, and the checks that it made, in
their order. That is one row for all the partitions that a contract accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.types import json_text
from sealbook.ledger.states.tables import validator
from sealbook.model import Check, Severity, Verdict

_Checks = tuple[tuple[str, str], ...]
"""Names and severities, in the order in which a validator makes its checks."""

Finding = tuple[int, Check]
"""A check that found something, and its place among those of its validator."""


class Validators:
    """The rows of the validators whose verdicts this process has recorded."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids: dict[str, int] = {}

    def ids(self, verdicts: Sequence[Verdict]) -> list[int]:
        """Return the row of each verdict's validator; who has none gets one, in a transaction of its own.

        So two who judge by the same contract for the first time wait for each other with nothing else locked.
        """
        digests = [
            _digest(verdict.validator_version, _checks(verdict), verdict.contract_hash)
            for verdict in verdicts
        ]
        ids = self._ids
        if not ids.keys() >= set(digests):
            rows = {
                digest: {
                    "digest": digest,
                    "version": verdict.validator_version,
                    "checks": _checks(verdict),
                    "contract_hash": verdict.contract_hash,
                }
                for digest, verdict in zip(digests, verdicts, strict=True)
            }
            ids = self._database.write(lambda connection: _recorded(connection, rows), repeatable=True)
            self._ids = ids if len(self._ids) > _REMEMBERED else self._ids | ids
        return [ids[digest] for digest in digests]


_REMEMBERED = 10_000  # a validator of another's making may name its checks anew each time


def findings_of(checks: Iterable[Check]) -> list[Finding] | None:
    """Return the checks that do not follow from the validator, by their places; None if all do."""
    found = [
        (place, check) for place, check in enumerate(checks) if check != _plain(check.name, check.severity)
    ]
    return found or None


def checks_of(names: Iterable[Sequence[str]], findings: object) -> tuple[Check, ...]:
    """Return every check of an attempt: those of its validator, with what they found."""
    checks = [_plain(name, Severity(severity)) for name, severity in names]
    for place, check in msgspec.convert(findings or [], list[Finding]):
        checks[place] = check
    return tuple(checks)


@lru_cache(maxsize=1_000)
def _plain(name: str, severity: Severity) -> Check:
    return Check(name, passed=True, severity=severity)


def _checks(verdict: Verdict) -> _Checks:
    return tuple((check.name, check.severity) for check in verdict.checks)


@lru_cache(maxsize=1_000)  # many verdicts are of one validator
def _digest(version: str, checks: _Checks, contract_hash: str | None) -> str:
    named = [version, checks] if contract_hash is None else [version, checks, contract_hash]
    return sha256(json_text(named).encode()).hexdigest()


def _recorded(connection: Connection, rows: Mapping[str, dict[str, Any]]) -> dict[str, int]:
    """Return the ids of validators, by digest; those that are new are written."""
    found = _find(connection, rows)
    new = [rows[digest] for digest in sorted(rows.keys() - found.keys())]
    if new:
        insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        connection.execute(insert(validator).on_conflict_do_nothing(), new)
        found |= _find(connection, [row["digest"] for row in new])
    return found


def _find(connection: Connection, digests: Iterable[str]) -> dict[str, int]:
    query = select(validator.c.digest, validator.c.id)
    found: dict[str, int] = {}
    wanted = list(digests)
    for start in range(0, len(wanted), _A_STATEMENT):
        page = validator.c.digest.in_(wanted[start : start + _A_STATEMENT])
        rows: Any = connection.execute(query.where(page))
        found |= dict(rows.all())
    return found


_A_STATEMENT = 5_000
