"""The validator's port: verdicts, applied in bulk, each exactly once (R-STATE-5, R-STATE-6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection, Executable, select

from sealbook.errors import Conflict, InvalidInput
from sealbook.ledger.db.bulk import encode_rows, given_rows, insert_rows
from sealbook.ledger.db.clock import LedgerClock
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.queries import same
from sealbook.ledger.db.tables import KEY
from sealbook.ledger.events.append import append_new, lock_runs
from sealbook.ledger.events.horizon import refuse_from_the_future
from sealbook.ledger.states import rows as state_rows
from sealbook.ledger.states.evidence import Validators, findings_of
from sealbook.ledger.states.holds import read_holds
from sealbook.ledger.states.tables import attempt
from sealbook.ledger.work.fences import lock_held
from sealbook.ledger.work.port import Follower
from sealbook.model import PartitionKey, PartitionState, Verdict, next_state
from sealbook.model.claims import Fences
from sealbook.model.partition_events import PartitionJudged


class Judged(NamedTuple):
    """What became of verdicts under fences: states in the order given, and what was no longer held."""

    states: list[PartitionState]
    lost: list[PartitionKey]


class VerdictWriter:
    """The port of the validator, the only one that judges."""

    def __init__(self, database: Database, clock: LedgerClock, follower: Follower) -> None:
        self._database = database
        self._clock = clock
        self._follower = follower
        self._validators = Validators(database)

    def judge(self, verdicts: Iterable[Verdict]) -> list[PartitionState]:
        """Apply verdicts in one transaction, all or none, and return the states in the order given.

        A verdict delivered again changes nothing. One that contradicts what is recorded is a Conflict.
        """
        return self._judge(verdicts, None).states

    def judge_under(self, verdicts: Iterable[Verdict], fences: Fences) -> Judged:
        """Apply the verdicts on what is still held under these fences, and leave the others out (R-CTL-4)."""
        return self._judge(verdicts, fences)

    def _judge(self, verdicts: Iterable[Verdict], fences: Fences | None) -> Judged:
        batch = list(verdicts)
        for verdict in batch:
            if not isinstance(verdict, Verdict):
                raise InvalidInput.of("verdict", verdict, "a Verdict")
        if not batch:
            return Judged([], [])
        validators = self._validators.ids(batch)

        def work(connection: Connection) -> Judged:
            # Before anything else is locked: all who have fences to show take their locks in this order.
            held = None if fences is None else lock_held(connection, fences)
            mine = [
                each for each in zip(batch, validators, strict=True) if held is None or each[0].key in held
            ]
            lost = [] if held is None else [each.key for each in batch if each.key not in held]
            return Judged(_judge(connection, mine, self._clock, self._follower), lost)

        while True:
            try:
                return self._database.write(work)
            except state_rows.Overtaken:
                continue  # at most once for each partition: rows are never deleted


_Identity = tuple[PartitionKey, str, str | None]
"""Key, run_id and revalidation_id: what makes a judgement this one; deliver it twice and it counts once."""

_Finding = tuple[str, str | None, int | None]
"""Outcome, schema_version and record_count: what two deliveries of one judgement must agree on."""


def _judge(
    connection: Connection,
    judging: Sequence[tuple[Verdict, int]],
    clock: LedgerClock,
    follower: Follower,
) -> list[PartitionState]:
    """Apply verdicts, each of which comes with the id of its validator."""
    verdicts = [verdict for verdict, _ in judging]
    keys = {verdict.key for verdict in verdicts}
    locked = state_rows.lock(connection, keys)
    states = {key: PartitionState.pending(key) for key in keys} | locked
    runs = {verdict.run_id for verdict in verdicts}
    lock_runs(connection, runs)
    # Once the locks are held: a later attempt has a later time, and its event is written now (R-EVT-9).
    now = clock.now(connection)
    refuse_from_the_future(connection, runs, now)
    at = state_rows.not_before(now, states.values())
    judged_before = [verdict for verdict in verdicts if states[verdict.key].attempt_count]
    recorded = _recorded(connection, judged_before)
    holds = read_holds(connection, {verdict.key for verdict in judged_before}) if judged_before else {}
    versions = {
        (key, run_id): version
        for (key, run_id, _), (_, version, _) in recorded.items()
        if version is not None
    }
    last = {(key, run_id): outcome for (key, run_id, _), (outcome, *_) in recorded.items()}
    results: list[PartitionState] = []
    changed: dict[PartitionKey, PartitionState] = {}
    attempts: list[tuple[object, ...]] = []
    facts: list[PartitionJudged] = []
    for verdict, validator_id in judging:
        key = verdict.key
        state = states[key]
        finding = _finding(verdict)
        known = recorded.setdefault((key, verdict.run_id, verdict.revalidation_id), finding)
        if known is finding:
            _check_version(verdict, versions)
            states[key] = changed[key] = state = next_state(state, verdict, at, holds.get(key))
            attempts.append(_attempt_row(verdict, state.attempt_count, validator_id, at))
            facts.append(PartitionJudged.of(verdict, state.attempt_count, last.get((key, verdict.run_id))))
            last[key, verdict.run_id] = verdict.outcome
        elif known != finding:
            raise _conflict(verdict, known)
        results.append(state)
    if attempts:
        state_rows.write_judged(connection, changed, locked)
        insert_rows(connection, attempt, attempts)
        append_new(connection, [fact.to_event() for fact in facts], at)
        follower.follow(connection, facts, at)
    return results


def _check_version(verdict: Verdict, versions: dict[tuple[PartitionKey, str], str]) -> None:
    """Refuse an acceptance under another schema_version than the run was accepted under (R-STATE-10)."""
    if verdict.schema_version is None:
        return
    known = versions.setdefault((verdict.key, verdict.run_id), verdict.schema_version)
    if known != verdict.schema_version:
        raise Conflict(
            f"{verdict.key} run {verdict.run_id} was accepted under schema_version {known}, and is delivered"
            f" under {verdict.schema_version}",
            remedy="The schema_version of a run never changes: judge it by today's contract of its own one,"
            " or fetch the partition again.",
        )


def _recorded(connection: Connection, verdicts: Sequence[Verdict]) -> dict[_Identity, _Finding]:
    """Return what was found earlier about the runs that are judged now, the oldest first."""
    if not verdicts:
        return {}
    runs = {(verdict.key, verdict.run_id) for verdict in verdicts}
    asked = encode_rows(state_rows.key_row(key) | {"run_id": run_id} for key, run_id in runs)
    rows = connection.execute(_recorded_findings(connection.dialect.name), asked)
    return {
        (PartitionKey(*row[:4]), row.run_id, row.revalidation_id): (
            row.outcome,
            row.schema_version,
            row.record_count,
        )
        for row in rows
    }


@cache
def _recorded_findings(dialect: str) -> Executable:
    asked = given_rows(dialect, [attempt.c[name] for name in (*KEY, "run_id")])
    names = (*KEY, "run_id", "revalidation_id", "outcome", "schema_version", "record_count")
    found = select(*(attempt.c[name] for name in names)).join(asked, same(attempt, asked, "run_id"))
    return found.order_by(attempt.c.attempt)


def _finding(verdict: Verdict) -> _Finding:
    return str.__str__(verdict.outcome), verdict.schema_version, verdict.record_count


def _attempt_row(verdict: Verdict, number: int, validator_id: int, at: datetime) -> tuple[object, ...]:
    """Return the values of an attempt in the order of its columns."""
    return (
        verdict.key.source,
        verdict.key.customer_id,
        verdict.key.query_name,
        verdict.key.logical_date,
        number,
        validator_id,
        at,
        verdict.record_count,
        verdict.run_id,
        str.__str__(verdict.outcome),
        verdict.schema_version,
        verdict.error_message,
        findings_of(verdict.checks),
        verdict.revalidation_id,
    )


def _conflict(verdict: Verdict, known: _Finding) -> Conflict:
    again = f" under revalidation {verdict.revalidation_id}" if verdict.revalidation_id else ""
    return Conflict(
        f"{verdict.key} run {verdict.run_id} was judged before{again}: recorded {_said(known)},"
        f" delivered {_said(_finding(verdict))}",
        remedy="To judge a run again on purpose, give the verdict a revalidation_id of its own.",
    )


def _said(finding: _Finding) -> str:
    outcome, schema_version, record_count = finding
    if schema_version is None:
        return outcome
    return f"{outcome} (schema_version {schema_version}, {record_count} records)"
