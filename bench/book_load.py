"""Books of any size to ask: a few partitions that are real in every part, and any number around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, datetime, timedelta
from itertools import islice
from pathlib import Path

import sealbook
from sealbook.extract.sources.demo import demo_configuration
from sealbook.ledger import Ledger, open_ledger
from sealbook.model import PartitionKey, RunId, Verdict
from sealbook.model.partition_events import PartitionSealed, Stage
from sealbook.model.selection import Selection
from sealbook.raw.layout import METADATA, RunPaths
from tests.support.pointers import load

CUSTOMER = "1000000000"
DAY = date(2026, 1, 1)
_REAL_DAYS = 3
_DAYS = 1_000
_A_RUN = 1_000
QUERY = "campaign_daily"

_SETTINGS = """\
ledger: {ledger}
raw: raw
warehouse: warehouse
sources:
  demo:
    queries: demo.yaml
    customers: ["{customer}"]
    last_day: {last}
    options: {{rows: 20}}
spark:
  master: local[2]
"""


def small_book(folder: Path, ledger: str) -> RunId:
    """Make a book of three partitions of one customer, which went the whole way; return their run."""
    folder.mkdir(parents=True)
    last = DAY + timedelta(days=_REAL_DAYS - 1)
    (folder / "sealbook.yaml").write_text(_SETTINGS.format(ledger=ledger, customer=CUSTOMER, last=last))
    (folder / "demo.yaml").write_text(demo_configuration())
    open_ledger(ledger, migrate=True).close()
    with closing(sealbook.open(folder)) as book:
        outcome = book.run(Selection(customers=CUSTOMER, queries=QUERY, since=DAY, until=last))
    assert outcome.load.published == _REAL_DAYS, outcome
    return outcome.run_id


def enlarge(folder: Path, run_id: RunId, made: int, partitions: int) -> None:
    """Go on from so many partitions of other customers to so many, which the ledger takes for published.

    Their raw partitions look as those of the real ones do; their artifacts are not there.
    """
    with closing(sealbook.open(folder)) as book:
        real = PartitionKey("demo", CUSTOMER, QUERY, DAY)
        template = _Template(folder / "raw", real, run_id)
        remaining = _keys(made, partitions)
        while keys := list(islice(remaining, _A_RUN)):
            _run(book.ledger, keys, template)
        book.catch_up()


class _Template:
    """The files of a sealed run, to be written again under other keys."""

    def __init__(self, root: Path, key: PartitionKey, run_id: RunId) -> None:
        self._root = root
        self._key, self._run_id = key, run_id
        directory = root / RunPaths(key, run_id).directory
        self._seal = (directory / METADATA).read_text()
        [self._payload] = (file.name for file in directory.iterdir() if file.name != METADATA)

    def seal(self, key: PartitionKey, run_id: RunId) -> None:
        """Write them; what the seal says of the payload is not true."""
        directory = self._root / RunPaths(key, run_id).directory
        directory.mkdir(parents=True)
        (directory / self._payload).touch()
        said = self._seal.replace(self._run_id, run_id)
        said = said.replace(self._key.customer_id, key.customer_id)
        said = said.replace(self._key.logical_date.isoformat(), key.logical_date.isoformat())
        (directory / METADATA).write_text(said)


def _keys(made: int, partitions: int) -> Iterator[PartitionKey]:
    days = [DAY - timedelta(days=number) for number in range(_DAYS)]
    for number in range(made, partitions):
        customer, day = divmod(number, _DAYS)
        yield PartitionKey("demo", str(2_000_000_000 + customer), QUERY, days[day])


def _run(ledger: Ledger, keys: Sequence[PartitionKey], template: _Template) -> None:
    run_id = ledger.open_run()
    chosen = Selection(keys=keys)
    attempts = ledger.runs.open_steps(Stage.EXTRACT, [run_id], [chosen])
    for key in keys:
        template.seal(key, run_id)
    ledger.run_store.append_events(_sealed(key, run_id).to_event() for key in keys)
    ledger.runs.close_steps(Stage.EXTRACT, attempts)
    ledger.judge(
        Verdict.accept(key, run_id, schema_version="1", record_count=20, validator_version="v")
        for key in keys
    )
    load(ledger, chosen)
    ledger.runs.end_runs([run_id])


def _sealed(key: PartitionKey, run_id: RunId) -> PartitionSealed:
    return PartitionSealed(
        key=key,
        run_id=run_id,
        schema_version="1",
        record_count=20,
        payload_bytes=2_000,
        payload_sha256="0" * 64,
        query_hash="0" * 16,
        extracted_at=datetime.fromisoformat("2026-11-01T00:00:00+00:00"),
    )
