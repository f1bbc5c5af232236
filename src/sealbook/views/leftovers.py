"""What machines that died, or whose clocks were wrong, left behind in a book, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import timedelta

from sealbook.config import Settings
from sealbook.ledger.health import LedgerHealth
from sealbook.ledger.reader import open_ledger_reader
from sealbook.model import PartitionKey
from sealbook.model.keys import SEALED_AHEAD_REMEDY, is_ahead
from sealbook.model.selection import Selection
from sealbook.model.words import counted
from sealbook.storage import missing_folder
from sealbook.views.diagnosis import Finding, ok, warn

_NO_SIGN_OF_LIFE = timedelta(hours=1)
_OLD = timedelta(days=7)
"""What raw and warehouse clean-ups take by default."""

_FEW = 3


def ledger_leftovers(url: str) -> Iterator[Finding]:
    """Yield what the ledger itself says was left: to ask it costs little."""
    with LedgerHealth(url) as health:
        ahead = health.authorities_ahead()
        leases = health.abandoned_leases(_NO_SIGN_OF_LIFE)
        claims = health.abandoned_claims(_NO_SIGN_OF_LIFE)
        removals = health.abandoned_removals(_NO_SIGN_OF_LIFE)
    if ahead:
        have = counted(len(ahead), "partition", "has", "have")
        yield warn(
            "ledger",
            f"{have} a run from the future as authority, which no new run takes over: {_named(ahead)}",
            "Fetch and validate each again, and `sealbook state rollback` it to the new run.",
        )
    for lease in leases:
        yield warn(
            "ledger",
            f"lease {lease.name} of {lease.holder} ran out at {lease.expires_at:%Y-%m-%d %H:%M} (UTC)",
            "See whether its holder still runs. If it died, nothing need be done: the next who comes has it.",
        )
    for claim in claims:
        are = counted(claim.partitions, "partition", "is", "are")
        yield warn(
            "ledger",
            f"{are} claimed by {claim.holder}, and ran out from {claim.since:%Y-%m-%d %H:%M} (UTC) on",
            "See whether their holder still runs. If it died, start another: it has them at once.",
        )
    if removals:
        said = f"a clean-up died before it removed {counted(removals, 'artifact')}"
        yield warn("warehouse", said, "Run `sealbook warehouse gc`; loads do not wait for it.")


def raw_leftovers(settings: Settings) -> Iterator[Finding]:
    """Yield what lies in the raw store and is of no use; this lists all of it."""
    from sealbook.raw import RawReader

    if missing_folder("raw", settings.raw) is not None:
        return
    raw = RawReader.open(settings.raw)
    sealed, ahead = 0, []
    with open_ledger_reader(settings.ledger) as ledger:
        horizon = ledger.run_horizon()
        for run in raw.sealed():
            sealed += 1
            if is_ahead(run.run_id, horizon):
                ahead.append(run)
        judged = set(ledger.judged_runs(Selection(keys={run.key for run in ahead}))) if ahead else set()
    # What was judged before such runs were refused is told by the ledger, as long as it has authority.
    set_aside = [run.key for run in ahead if (run.key, run.run_id) not in judged]
    if set_aside:
        are = counted(len(set_aside), "sealed run", "is", "are")
        yield warn("raw", f"{are} from the future, and set aside: {_named(set_aside)}", SEALED_AHEAD_REMEDY)
    unsealed = list(raw.leftovers(Selection(), age=_OLD))
    if unsealed:
        size = _megabytes(each.bytes for each in unsealed)
        are = counted(len(unsealed), "file", "is", "are")
        yield warn("raw", f"{are} named by no seal, {size}", "Run `sealbook raw gc`.")
    if not set_aside and not unsealed:
        yield ok("raw", f"{counted(sealed, 'sealed run')}, and nothing left over")


def warehouse_leftovers(settings: Settings) -> Iterator[Finding]:
    """Yield what lies in the warehouse and nobody reads; this lists all of it."""
    from sealbook.ledger.db.clock import LedgerClock
    from sealbook.ledger.db.engine import Database
    from sealbook.ledger.pointers import Pointers
    from sealbook.ledger.schedule.following import WorkFollower
    from sealbook.warehouse.cleanup import Cleanup
    from sealbook.warehouse.store import ArtifactStore

    if missing_folder("warehouse", settings.warehouse) is not None:
        return
    with closing(Database(settings.ledger)) as database:
        pointers = Pointers(database, LedgerClock(), WorkFollower())
        removable = list(Cleanup(pointers, ArtifactStore.open(settings.warehouse), _OLD).plan())
    orphans = [each for each in removable if each.orphan]
    if orphans:
        size = _megabytes(each.bytes for each in orphans)
        said = f"files of {counted(len(orphans), 'artifact')} that no load published, {size}"
        yield warn("warehouse", said, "Run `sealbook warehouse gc`.")
    else:
        waiting = f"; {counted(len(removable), 'artifact')} can be cleaned up" if removable else ""
        yield ok("warehouse", f"nothing that no load published{waiting}")


def _named(keys: Iterable[PartitionKey]) -> str:
    distinct = list(dict.fromkeys(keys))
    more = ", …" if len(distinct) > _FEW else ""
    return ", ".join(map(str, distinct[:_FEW])) + more


def _megabytes(sizes: Iterable[int]) -> str:
    return f"{sum(sizes) / 1e6:,.1f} MB"
