"""What is looked at before a job starts: what is wrong would fail in every partition of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sealbook.config import Settings
from sealbook.config.documents import error_in
from sealbook.errors import ConfigError, Irreplaceable, Permanent, Unwritable
from sealbook.model.horizons import IRREPLACEABLE
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.ledger.contracts import ContractReader
    from sealbook.ledger.rollbacks import RolledBack
    from sealbook.model import PartitionState
    from sealbook.model.contract import Query
    from sealbook.model.horizons import Horizons
    from sealbook.model.selection import Selection
    from sealbook.raw import RawReader


def check_columns(contracts: ContractReader, queries: Iterable[Query], selection: Selection) -> None:
    """Refuse columns that were changed under a schema_version that has accepted runs (R-WH-7)."""
    from sealbook.validate.contracts import column_errors

    for query in queries:
        if selection.has_query(query.source, query.name):
            for error in column_errors(contracts, query):
                raise error


def check_raw(settings: Settings, raw: Callable[[], RawReader]) -> None:
    """Refuse a raw store that is not there, or that its user cannot do with what it was opened for."""
    with naming(settings, "raw"):
        raw().check()


def check_warehouse(settings: Settings, *, writing: bool) -> None:
    """Refuse a warehouse that is not there or, if it is for `writing`, takes nothing."""
    from sealbook.warehouse.store import ArtifactStore

    with naming(settings, "warehouse"):
        ArtifactStore.open(settings.warehouse).check(writing=writing)


def check_rollback(horizons: Horizons, before: PartitionState, plan: Callable[[], RolledBack]) -> None:
    """Refuse to roll a day back from rows to none that its source does not give any more."""
    if not before.record_count or not horizons.is_past(before.key):
        return
    after = plan().state
    if not after.record_count:
        raise Irreplaceable(
            f"{before.key} is {IRREPLACEABLE}, as {horizons.why(before.key.source)}:"
            f" run {after.current_run_id} is empty, and would replace {counted(before.record_count, 'row')}",
            remedy=f"If that is meant: --confirm {IRREPLACEABLE}.",
        )


@contextmanager
def naming(settings: Settings, field: str) -> Iterator[None]:
    """Name the line of the settings in what is wrong with a place; to be full is not wrong."""
    try:
        yield
    except Unwritable:
        raise
    except (ConfigError, Permanent) as error:
        if settings.file is None:
            raise ConfigError(f"{field}: {error}", remedy=error.remedy) from error
        raise error_in(settings.file, (field,), str(error), remedy=error.remedy) from error
