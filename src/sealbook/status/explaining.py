"""Why a partition is as it is, in full: what consumers get, what is wrong, what happens next (R-PST-5)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, timedelta

from sealbook.ledger.reader import LedgerReader
from sealbook.model import Attempt, PartitionKey, RunEvent, Status
from sealbook.model.auto_due import LearnedDue
from sealbook.model.expectations import Expectations
from sealbook.model.explanation import Explanation, Following, History, Problem, Reading, Standing, Way
from sealbook.model.freshness import Freshness, day_end
from sealbook.model.horizons import IRREPLACEABLE
from sealbook.model.keys import check_key
from sealbook.model.outlook import Outlook
from sealbook.model.partition_events import PartitionFact, read_fact
from sealbook.model.sealed_day import DAY_OVER
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.universe import AssetName
from sealbook.model.words import counted
from sealbook.status.archive import RunArchive, Span
from sealbook.status.causes import Causes, time_text
from sealbook.status.outlooks import Outlooks
from sealbook.status.problems import Known, problems_of, stale_problem


def explain(
    ledger: LedgerReader, archive: RunArchive, expectations: Expectations, key: PartitionKey
) -> Explanation:
    """Explain a partition, also one that nobody ever touched."""
    check_key(key)
    causes = Causes(ledger.statuses, expectations)
    known = _known(ledger, archive, expectations, causes, key)
    line = known.line
    outlook = Outlooks(ledger.schedule, expectations.now).of(key)
    return Explanation(
        key,
        line.availability,
        line.display,
        _standing(known, expectations),
        (*problems_of(known), *_stale(known, causes)),
        _following(known, expectations, outlook),
        _history(known),
        outlook,
        _day(key, expectations),
        _learned(expectations.universe.freshness(key)),
    )


def _day(key: PartitionKey, expectations: Expectations) -> str | None:
    """Say from when to when a day lasts, and which time zones its account has had."""
    account = expectations.universe.accounts.get(key.source, {}).get(key.customer_id)
    if account is None or (account.zone is UTC and not account.earlier):
        return None
    begins_at, ends_at = account.window(key.logical_date)
    zones = [str(each.zone) for each in account.earlier] + [str(account.zone)]
    changes = [
        f"; from {each.before} on, days of the account are those of {zone}"
        for each, zone in zip(account.earlier, zones[1:], strict=True)
    ]
    zone = account.zone_on(key.logical_date)
    return (
        f"The day lasts from {time_text(begins_at)} to {time_text(ends_at)}, as in {zone}{''.join(changes)}."
    )


def _learned(freshness: Freshness | None) -> LearnedDue | None:
    if freshness is None or freshness.auto is None:
        return None
    return LearnedDue(freshness.due, freshness.reasons)


def _known(
    ledger: LedgerReader,
    archive: RunArchive,
    expectations: Expectations,
    causes: Causes,
    key: PartitionKey,
) -> Known:
    line = causes.line(key)
    facts = list(_facts(ledger.partition_log.events(key)))
    failed = line.last_attempt_run_id if line.last_attempt_outcome is AttemptOutcome.FAILED else None
    if failed is not None and all(fact.run_id != failed for fact in facts):
        facts += _archived(ledger, archive, failed, key)
    return Known(
        line,
        ledger.state(key),
        ledger.attempts(key),
        ledger.pointers.history(key),
        facts,
        expectations.code(key),
        expectations.universe.due_at(key),
    )


def _facts(events: list[RunEvent]) -> Iterator[PartitionFact]:
    for event in events:
        fact = read_fact(event)
        if fact is not None:
            yield fact


def _archived(
    ledger: LedgerReader, archive: RunArchive, run_id: str, key: PartitionKey
) -> Iterator[PartitionFact]:
    """Yield what a run that was retired told of a partition."""
    name = str(key)
    for retired in ledger.run_store.retirements(run_id):
        events = archive.events(Span.of(retired))
        yield from _facts([event for event in events if event.partition == name])


def _standing(known: Known, expectations: Expectations) -> Standing:
    line, pointer = known.line, known.pointer
    if line.availability.readable and pointer is not None:
        accepted = known.latest(pointer.run_id)
        count = None if accepted is None else accepted.record_count
        rows = "" if count is None else f"{counted(count, 'row')} of "
        published = time_text(pointer.published_at)
        provisional = "" if accepted is None or not _is_provisional(accepted) else _PROVISIONAL
        return Standing(
            Reading.READABLE,
            f"Consumers get run {pointer.run_id}, published {published}:"
            f" {rows}schema_version {pointer.schema_version}.{provisional}",
            pointer.run_id,
            pointer.published_at,
            pointer.schema_version,
            count,
        )
    if line.availability is Availability.HIDDEN:
        return Standing(Reading.NOT_READABLE, "Consumers get nothing any more.")
    if line.attempted or (line.expected and line.due):
        return Standing(Reading.NOT_READABLE, "Consumers get nothing: no run of it was ever published.")
    if line.expected and known.due_at is not None:
        return Standing(Reading.NOT_DUE, f"It is due {time_text(known.due_at)}.")
    return Standing(Reading.NOT_EXPECTED, f"Nothing is expected here: {_why_not(known.key, expectations)}.")


_PROVISIONAL = " It is provisional: it was fetched before the day was over."


def _is_provisional(judged: Attempt) -> bool:
    return any(check.name == DAY_OVER and not check.passed for check in judged.checks)


def _why_not(key: PartitionKey, expectations: Expectations) -> str:
    """Say which part of the configuration does not have a partition."""
    universe = expectations.universe
    asset = AssetName(key.source, key.query_name)
    if key.source not in universe.accounts:
        return f"no source {key.source} is configured{_but(universe.accounts)}"
    if asset not in universe.assets:
        queries = [each.query_name for each in universe.assets if each.source == key.source]
        return f"{key.source} has no query {key.query_name}{_but(queries)}"
    account = universe.accounts[key.source].get(key.customer_id)
    if account is None:
        customers = universe.accounts[key.source]
        return f"{key.source} has no customer {key.customer_id}{_but(customers)}"
    if account.last_day is not None and key.logical_date > account.last_day:
        return f"the last day of customer {key.customer_id} is {account.last_day}"
    first = account.first_day or universe.first_known.get(asset)
    if first is None:
        return f"nothing is known of {asset} yet, and customer {key.customer_id} has no first_day"
    whose = f"of customer {key.customer_id}" if account.first_day else f"that is known of {asset}"
    return f"the first day {whose} is {first}"


def _but(names: Collection[str]) -> str:
    """Say which names there are, or how many: one of them may have been meant."""
    return f", but {', '.join(sorted(names))}" if 0 < len(names) <= _FEW else f", of {len(names):,}"


_FEW = 5


def _stale(known: Known, causes: Causes) -> Iterator[Problem]:
    for reason in causes.reasons(known.key):
        found, more = causes.of(reason)
        yield replace(stale_problem(known, reason), causes=found, more=more)


def _following(known: Known, expectations: Expectations, outlook: Outlook | None) -> Following | None:
    """Say what happens next: what is planned, else what is planned in the next round, or is due again."""
    line, now = known.line, expectations.now
    if outlook is not None:
        return Following(outlook.sentence, outlook.next_run_at, outlook.ways)
    if known.state.status is Status.SUCCESS and line.availability is not Availability.PUBLISHED:
        return Following(f"{_ROUND} its loading: run {known.state.current_run_id} is accepted.")
    if (line.expected or line.attempted) and expectations.horizons.is_past(known.key):
        only = f" What is sealed of it is {IRREPLACEABLE}." if line.attempted else ""
        why = expectations.horizons.why(known.key.source)
        return Following(f"Nothing: it is past the horizon, as {why}.{only}")
    if not line.expected and line.attempted:
        return Following(f"Nothing: it is not expected any more, as {_why_not(known.key, expectations)}.")
    if not line.expected or (not line.due and not line.attempted):
        return None
    if known.due_at is not None and known.due_at > now:
        return Following(f"It is due {time_text(known.due_at)}.", known.due_at)
    if not line.availability.readable:
        return Following(f"{_ROUND} a fetch: it is due, and consumers get nothing.")
    freshness = expectations.universe.freshness(known.key)
    if freshness is None:
        return Following("Nothing by itself: its query has no due points.")
    end = day_end(known.key.logical_date, expectations.universe.zone(known.key))
    latest = replace(freshness, max_lag=timedelta()).deadline(end, now)
    if latest is not None and (line.last_materialization_at or latest.point) < latest.point:
        return Following(f"{_ROUND} another fetch: it is due again since {time_text(latest.point)}.")
    point = freshness.next_point(end, now)
    if point is not None:
        deadline = point + freshness.max_lag
        late = "" if deadline == point else f", and late from {time_text(deadline)} on"
        return Following(f"It is due again {time_text(point)}{late}.", point)
    if line.settled:
        return Following("Nothing: it is settled, and will not be due again.")
    return Following("Nothing by itself: its last due point has passed.")


_ROUND = "The next round of a control loop (`sealbook control tick`) plans"


def _history(known: Known) -> History:
    key = known.key
    runs = {each.run_id for each in known.attempts} | {fact.run_id for fact in known.facts}
    ways = (Way("see every judgement", f"sealbook state history {key}"),) if known.attempts else ()
    return History(len(known.attempts), len(runs), len(known.pointers), ways)
