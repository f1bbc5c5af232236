"""What is wrong now, as alerts; and how they are sent: in order, in batches, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice

import msgspec

from sealbook.config import SourceSettings
from sealbook.ledger.alerts import AlertTurn
from sealbook.ledger.events import Lag
from sealbook.ledger.reader import LedgerReader
from sealbook.model.alerts import Alert, AlertKind, Notice
from sealbook.model.display import Display
from sealbook.model.expectations import Expectations
from sealbook.model.outlook import Outlook, Prospect
from sealbook.model.selection import Selection
from sealbook.model.status import AttemptOutcome
from sealbook.model.status_line import StatusFilter, StatusLine
from sealbook.status.accounts import account_alerts
from sealbook.status.listing import iter_lines
from sealbook.status.outlooks import Outlooks
from sealbook.status.receivers import Receiver

BATCH = 1_000
"""Notices that a receiver gets at once: an outage of thousands of partitions is a few calls."""

_ALERTING = StatusFilter(displays=frozenset({Display.WITHDRAWN}), late=True)


def find_alerts(
    ledger: LedgerReader,
    expectations: Expectations,
    lags: Mapping[str, Lag],
    selection: Selection,
    sources: Mapping[str, SourceSettings],
) -> list[Alert]:
    """Return what is wrong now with what is expected, accounts and projections; the worst first."""
    found = [_of_lag(name, lag, expectations) for name, lag in lags.items() if lag.alert is not None]
    for line in iter_lines(ledger.statuses, expectations, selection, _ALERTING):
        if line.expected:
            found += _of_line(line, expectations)
    found += _stopped(ledger, expectations, selection)
    found += account_alerts(ledger.accounts, sources, selection, expectations.now)
    return sorted(found, key=_by_badness)


def send_notices(turn: AlertTurn, receiver: Receiver) -> int:
    """Send all that waits, and return how much; what the receiver does not take waits on."""
    sent = 0
    while waiting := turn.waiting(BATCH):
        receiver.take(encode_notices(waiting))
        turn.mark_sent(waiting)
        sent += len(waiting)
    return sent


def encode_notices(notices: Iterable[Notice]) -> bytes:
    """Return the JSON list that a receiver gets."""
    return msgspec.json.encode([each.to_dict() for each in notices])


def _by_badness(alert: Alert) -> tuple[int, str]:
    return list(AlertKind).index(alert.kind), alert.subject


def _of_line(line: StatusLine, expectations: Expectations) -> Iterator[Alert]:
    key = str(line.key)
    command = f"sealbook explain {key}"
    if line.display is Display.WITHDRAWN:
        rejected = line.last_attempt_outcome is AttemptOutcome.FAILED
        since = line.last_attempt_at if rejected else None
        run = line.last_materialization_run_id
        message = f"{key} cannot be read any more: run {run}, which was published, is withdrawn"
        yield Alert(AlertKind.WITHDRAWN, key, since, message, command)
    if line.late:
        deadline = expectations.deadline(line.key)
        at = None if deadline is None else deadline.at
        done = "was never published" if line.last_materialization_at is None else "was not published again"
        message = f"{key} {done} by its deadline" + ("" if at is None else f", {at:%Y-%m-%d %H:%M} UTC")
        yield Alert(AlertKind.LATE, key, at, message, command)


def _stopped(ledger: LedgerReader, expectations: Expectations, selection: Selection) -> Iterator[Alert]:
    """Yield what nothing more is tried of by itself, where this book has tried it and still expects it."""
    remaining = Outlooks(ledger.schedule, expectations.now).stopped(selection)
    while some := {each.key: each for each in islice(remaining, BATCH)}:
        own = Selection(keys=some)
        for line in ledger.statuses.lines(expectations, own, limit=len(some)):
            if line.expected and line.attempted:
                yield _of_outlook(some[line.key])


def _of_outlook(outlook: Outlook) -> Alert:
    kind = AlertKind.PARKED if outlook.prospect is Prospect.PARKED else AlertKind.TERMINAL
    by = "" if outlook.by is None else f" by {outlook.by}"
    message = f"{outlook.key} is {outlook.in_short}{by}: {outlook.why}"
    return Alert(kind, str(outlook.key), outlook.since, message, f"sealbook explain {outlook.key}")


def _of_lag(name: str, lag: Lag, expectations: Expectations) -> Alert:
    message = f"projection {name} is {lag.seconds:.0f} s and {lag.events:,} events behind the log"
    since = expectations.now - timedelta(seconds=lag.seconds)
    return Alert(AlertKind.PROJECTOR_LAG_HIGH, name, since, message, "sealbook project --follow")
