"""A look at all that a book stands on: does it work, and if not, what is to be done?

Nothing is changed, but for a small object that is written to raw store and warehouse and taken away again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING

from sealbook.book.checks import naming
from sealbook.clock import utc_now
from sealbook.config import Settings, SourceSettings
from sealbook.config.lineage import check_installed
from sealbook.errors import SealbookError
from sealbook.ledger.db import schema
from sealbook.ledger.db.connecting import ledger_exists
from sealbook.ledger.health import LedgerHealth, Rights
from sealbook.ledger.reader import open_ledger_reader
from sealbook.model.keys import TOLERANCE
from sealbook.model.words import counted
from sealbook.views.diagnosis import Finding, Level, examined, ok, warn
from sealbook.views.leftovers import ledger_leftovers, raw_leftovers, warehouse_leftovers

if TYPE_CHECKING:
    from sealbook.model.contract import Query

_MOST_SKEW = TOLERANCE / 10
_MOST_LINEAGE_LAG = timedelta(hours=1)
_FEW = 3


def diagnose(load: Callable[[], Settings], *, spark: bool = False, quick: bool = False) -> Iterator[Finding]:
    """Yield what is found of each part of a book, which `load` reads the settings of, as it is found.

    `spark` starts Spark, to see that it works, and has it analyse the rules of all contracts. `quick` leaves
    out what lists the whole raw store and warehouse.
    """
    yield from examined("java", _java)
    try:
        settings = load()
    except SealbookError as error:
        yield Finding(Level.FAIL, "configuration", str(error), error.remedy)
        return
    yield _configuration(settings)
    yield from examined("ledger", lambda: _ledger(settings.ledger))
    has_ledger = _can_be_read(settings.ledger)  # else what needs one would only say the same again
    places = [each for field in ("raw", "warehouse") for each in examined(field, _place(settings, field))]
    yield from places
    for source in settings.sources.values():
        yield from examined(f"source {source.name}", _source(source))
    for source in settings.sources.values():
        if source.discovery is not None:
            yield from examined(f"accounts of {source.name}", _accounts(settings, source, has_ledger))
    queries = [query for source in settings.sources.values() for query in source.queries.values()]
    if has_ledger:
        yield from examined("contracts", lambda: _columns(settings, queries))
    if settings.lineage is not None and has_ledger:
        yield from examined("lineage", lambda: _lineage(settings))
    if spark:
        yield from examined("spark", lambda: _spark(settings, queries))
    if has_ledger:
        yield from examined("ledger", lambda: ledger_leftovers(settings.ledger))
    if quick or not has_ledger or any(each.level is Level.FAIL for each in places):
        return
    yield from examined("raw", lambda: raw_leftovers(settings))
    yield from examined("warehouse", lambda: warehouse_leftovers(settings))


def _java() -> Iterator[Finding]:
    from sealbook.spark.java import java_version

    yield ok("java", f"Java {java_version()} for Spark {version('pyspark')}")


def _configuration(settings: Settings) -> Finding:
    queries = [query for source in settings.sources.values() for query in source.queries.values()]
    contracts = sum(len(query.contracts) for query in queries)
    has = f"{counted(len(settings.sources), 'source')}, {_queries(len(queries))}"
    return ok("configuration", f"{settings.file}: {has}, {counted(contracts, 'contract')}")


def _ledger(url: str) -> Iterator[Finding]:
    if not ledger_exists(url):
        yield ok("ledger", "there is none yet: the first command that writes makes it")
        return
    with LedgerHealth(url) as health:
        server, revision = health.server(), health.revision()
        if health.dialect == "sqlite" and revision != schema.HEAD and revision in schema.known_revisions():
            said = f"{server}, revision {revision}, and {schema.HEAD} is needed"
            yield warn("ledger", said, "The next command that writes migrates it by itself: keep a copy.")
            return
        health.check_revision()
        if (ahead := health.ahead()) > _MOST_SKEW:
            said = f"its last event is {ahead.total_seconds():,.0f} s ahead of its clock: that was set back"
            yield warn("ledger", said, "Set the clock right: leases and ages are counted by it.")
        rights = health.rights()
        if rights is None:
            yield ok("ledger", f"{server}, revision {revision}")
        else:
            yield from _on_postgresql(f"{server}, revision {revision}", health.skew(), rights)


def _can_be_read(url: str) -> bool:
    try:
        with open_ledger_reader(url):
            return True
    except SealbookError:
        return False


def _on_postgresql(said: str, skew: timedelta, rights: Rights) -> Iterator[Finding]:
    seconds = skew.total_seconds()
    works = ", ".join(rights.works) or "no role"
    yield ok("ledger", f"{said}, clock {abs(seconds):.2f} s apart, user {rights.user}: {works}")
    if abs(skew) > _MOST_SKEW:
        apart = f"{abs(seconds):,.0f} s {'behind' if seconds > 0 else 'ahead of'}"
        yield warn(
            "ledger",
            f"this machine's clock is {apart} the ledger's",
            "Set it right: the ledger goes by its own, but what is written elsewhere has this one's time.",
        )
    if not rights.works:
        remedy = f"Run `sealbook ledger grant`; in the database, GRANT sealbook_consumer TO {rights.user}."
        yield Finding(Level.FAIL, "ledger", f"user {rights.user} has the rights of no role", remedy)
    for role, missing in rights.lacking.items():
        said = f"role {role} lacks {counted(len(missing), 'right')}: {', '.join(missing[:_FEW])}"
        yield warn("ledger", said, "Run `sealbook ledger grant`: it is needed after each migration.")


def _place(settings: Settings, field: str) -> Callable[[], Iterator[Finding]]:
    def look() -> Iterator[Finding]:
        from sealbook.storage import missing_folder, open_storage

        url: str = getattr(settings, field)
        with naming(settings, field):
            folder = missing_folder(field, url)
            if folder is not None:
                yield ok(field, f"{folder} is not there yet: it is made when something is written")
                return
            where, storage = open_storage(field, url)
            storage.check(writing=True)
            storage.probe()
        yield ok(field, f"{where}: can be read and written, and honours create-only puts")

    return look


def _source(source: SourceSettings) -> Callable[[], Iterator[Finding]]:
    def look() -> Iterator[Finding]:
        from sealbook.extract.checking import check_sources, examine_source
        from sealbook.extract.source import Urgency
        from sealbook.model.selection import Selection

        check_sources({source.name: source}, [Selection(source=source.name, queries=source.queries)])
        customers = counted(len(source.customers), "customer")
        if source.discovery is not None:
            customers = f"accounts below {source.discovery.root}"
        has = f"{customers}, {_queries(len(source.queries))}"
        part = f"source {source.name}"
        yield ok(part, f"{has}; nothing speaks against fetching")
        for said, remedy, urgency in examine_source(source, utc_now().date()):
            level = Level.FAIL if urgency is Urgency.NOW else Level.WARN
            yield ok(part, said) if remedy is None else Finding(level, part, said, remedy)

    return look


def _accounts(
    settings: Settings, source: SourceSettings, has_ledger: bool
) -> Callable[[], Iterator[Finding]]:
    part, remedy = f"accounts of {source.name}", f"`sealbook accounts refresh --source {source.name}`"

    def look() -> Iterator[Finding]:
        from sealbook.config import find_zone
        from sealbook.status.accounts import account_problems, refresh_problem

        if not has_ledger:
            yield warn(part, "they were not asked for yet", remedy)
            return
        with open_ledger_reader(settings.ledger, scope=settings.scope) as ledger:
            refresh, known, now = (
                ledger.accounts.refresh(source.name),
                ledger.accounts.known(source.name),
                ledger.now(),
            )
        late = refresh_problem(source, refresh, now)
        if late is not None or refresh.refreshed_at is None:
            yield warn(part, late or "they were not asked for yet", remedy)
        if refresh.refreshed_at is None or source.discovery is None:
            return
        expected = len(source.discovery.accounts(known, find_zone))
        told = f"as of {refresh.refreshed_at:%Y-%m-%d %H:%M} UTC"
        yield ok(part, f"{counted(len(known), 'account')}, days of {expected:,} are expected, {told}")
        for each in account_problems(source, known):
            yield warn(part, f"{each.customer_id}: {each.message}", each.remedy)

    return look


def _columns(settings: Settings, queries: list[Query]) -> Iterator[Finding]:
    from sealbook.validate.contracts import column_errors

    with open_ledger_reader(settings.ledger) as ledger:
        errors = [error for query in queries for error in column_errors(ledger.contracts, query)]
    for error in errors:
        yield Finding(Level.FAIL, "contracts", str(error), error.remedy)
    if not errors:
        yield ok("contracts", "their columns are those that runs were accepted under")


def _lineage(settings: Settings) -> Iterator[Finding]:
    check_installed()
    with open_ledger_reader(settings.ledger, scope=settings.scope) as ledger:
        lag = ledger.lineage.lag()
    waits = (
        f"{counted(lag.events, 'event')} of the log not told yet, the oldest for {lag.seconds / 60:,.0f} min"
    )
    if lag.seconds > _MOST_LINEAGE_LAG.total_seconds():
        yield warn(
            "lineage", waits, "Run `sealbook lineage send`: it says what is wrong. A loop sends by itself."
        )
    else:
        yield ok("lineage", waits if lag.events else "all that the log has was told")


def _spark(settings: Settings, queries: list[Query]) -> Iterator[Finding]:
    from sealbook.spark.session import stage_session
    from sealbook.validate.contracts import rule_errors

    begun = time.monotonic()
    spark = stage_session(settings.spark)
    spark.range(10).count()
    seconds = time.monotonic() - begun
    yield ok("spark", f"{spark.version} on {settings.spark.master} starts and counts in {seconds:.1f} s")
    errors = [error for query in queries for error in rule_errors(spark, query)]
    for error in errors:
        yield Finding(Level.FAIL, "contracts", str(error), error.remedy)
    if not errors:
        yield ok("contracts", "Spark takes every rule")


def _queries(number: int) -> str:
    return f"{number:,} {'query' if number == 1 else 'queries'}"
