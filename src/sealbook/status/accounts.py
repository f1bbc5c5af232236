"""What is wrong with the accounts that sources tell of: gone, of no known time zone, or not asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sealbook.config import SourceSettings, find_zone
from sealbook.ledger.accounts import AccountReader, Refresh
from sealbook.model.accounts import KnownAccount, Presence
from sealbook.model.alerts import Alert, AlertKind
from sealbook.model.discovery import Discovery, Override, unknown_zone
from sealbook.model.selection import Selection

_OVERDUE = 2
"""After so many intervals without a refresh somebody should look why."""


@dataclass(frozen=True, slots=True)
class AccountProblem:
    """Something about an account that somebody should look at, and what can be done."""

    kind: AlertKind
    customer_id: str
    since: datetime | None
    message: str
    remedy: str


def account_problems(source: SourceSettings, known: Iterable[KnownAccount]) -> Iterator[AccountProblem]:
    """Yield what is wrong with accounts from which days are expected."""
    discovery = source.discovery
    if discovery is None:
        return
    found = {each.customer_id: each for each in known}
    for customer_id, each in found.items():
        if discovery.why_not(each.account) is None:
            yield from _of_account(source.name, discovery, customer_id, each)
    for customer_id in sorted((discovery.include or frozenset()) - found.keys()):
        yield AccountProblem(
            AlertKind.ACCOUNT_MISSING,
            customer_id,
            None,
            f"it is included, and {source.name} tells of no such account below {discovery.root}",
            "Correct `include`, or have the account linked below that root.",
        )


def _of_account(
    source: str, discovery: Discovery, customer_id: str, known: KnownAccount
) -> Iterator[AccountProblem]:
    if known.presence is Presence.VANISHED:
        yield AccountProblem(
            AlertKind.ACCOUNT_MISSING,
            customer_id,
            known.vanished_at,
            f"{source} tells of it no more below {discovery.root}; it stays expected",
            f"If that is right: `sealbook accounts forget {customer_id} --reason '…'`, or `exclude` it.",
        )
    zone = unknown_zone(known, find_zone)
    if zone is not None and discovery.overrides.get(customer_id, Override()).zone is None:
        earlier = discovery.account(known, find_zone)
        so = "nothing is expected of it" if earlier is None else f"its days stay those of {earlier.zone}"
        yield AccountProblem(
            AlertKind.ACCOUNT_ZONE_UNKNOWN,
            customer_id,
            known.history[-1].at,
            f"its time zone {zone!r} is not known here: {so}",
            "Update the time zones of this machine (tzdata), or name one in `override`.",
        )


def refresh_problem(source: SourceSettings, refresh: Refresh, now: datetime) -> str | None:
    """Say why the accounts of a source are not as they should be; None if they are."""
    if source.discovery is None:
        return None
    if refresh.failures:
        return f"they could not be asked for, {refresh.failures} times in a row: {refresh.error}"
    if refresh.refreshed_at is not None and now > refresh.refreshed_at + _OVERDUE * source.discovery.every:
        return f"they were last asked for at {refresh.refreshed_at:%Y-%m-%d %H:%M} UTC"
    return None


def account_alerts(
    reader: AccountReader, sources: Mapping[str, SourceSettings], selection: Selection, now: datetime
) -> Iterator[Alert]:
    """Yield what is wrong with the accounts of the sources that are chosen."""
    for name, source in sources.items():
        if source.discovery is None or not (selection.source is None or name in selection.source):
            continue
        refresh = reader.refresh(name)
        problem = refresh_problem(source, refresh, now)
        if problem is not None:
            since = refresh.refreshed_at or refresh.failed_at
            yield Alert(
                AlertKind.ACCOUNTS_NOT_REFRESHED,
                name,
                since,
                f"accounts of {name}: {problem}",
                f"sealbook accounts refresh --source {name}",
            )
        if refresh.refreshed_at is None:
            continue
        for each in account_problems(source, reader.known(name)):
            subject = f"{name}/{each.customer_id}"
            message = f"account {subject}: {each.message}"
            yield Alert(each.kind, subject, each.since, message, f"sealbook accounts list --source {name}")
