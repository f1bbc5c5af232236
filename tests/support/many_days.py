"""Days that pass in a moment: a book whose loop lives through many of them, with faults and housekeeping."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import yaml
from sqlalchemy import func, select

from sealbook.book import Book
from sealbook.clock import utc_now
from sealbook.config import load_settings
from sealbook.control.loop import Loop
from sealbook.extract.allowance import Allowance
from sealbook.ledger import open_ledger
from sealbook.ledger.db.tables import metadata
from sealbook.load.loader import Loader
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import RunId
from sealbook.model.claims import Claim, Fences
from sealbook.model.retry import Retries, RetryPolicies
from sealbook.pipeline import StageBatch
from sealbook.status.archive import RunArchive
from sealbook.status.retention import Retirement, retire_runs
from sealbook.validate.results import Judged
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.store import ArtifactStore
from tests.support.in_process import in_process_spark
from tests.support.loops import light_stages, write_loop_book

CUSTOMERS = 8
ROWS = 2
DUE = ("0h", "1d", "3d")
RETAIN = timedelta(days=2)
KEEP_EVENTS = timedelta(days=10)
STEP = timedelta(hours=6)
RETRIES = RetryPolicies(Retries((timedelta(hours=1), timedelta(hours=6)), max_attempts=8))
_FAULTS = [
    {"kind": "transient", "share": 0.1},
    {"kind": "transient", "customers": ["c2"]},
    {"kind": "permanent", "customers": ["c1"]},
]
NEVER_GOOD = ("c0", "c1", "c2")
"""Customers whose rows are bad, who are disabled, and whose failures do not pass."""
_BREAKS_OFF = 1 / 15


class BrokenOff(Exception):
    """A worker that ends in the middle of its work, as by a lack of memory."""


@dataclass(frozen=True)
class Figures:
    """How large a book and its process are, after housekeeping."""

    day: int
    rss_mb: float
    tables: Mapping[str, int]
    published: int
    warehouse_files: int
    raw_files: int
    archive_files: int


class ManyDays:
    """A book on a virtual clock, which `pass_time` sets on; who uses it sees what became of its days."""

    def __init__(self, folder: Path, ledger_url: str, seed: int = 7) -> None:
        file = write_loop_book(folder, ledger_url, customers=CUSTOMERS, days=1)
        settings = yaml.safe_load(file.read_text())
        source = settings["sources"]["demo"]
        self.began = utc_now()
        first = {"first_day": self.began.date().isoformat()}
        source["customers"] = [{"id": account["id"], **first} for account in source["customers"]]
        source["options"] = {"rows": ROWS, "faults": _FAULTS}
        source["freshness"] = {"due": list(DUE)}
        settings["control"] = {"sources": {"demo": {"requests_per_day": 10_000}}}
        file.write_text(yaml.safe_dump(settings))
        loaded = load_settings(file)
        self.passed = timedelta()
        self.book = Book(replace(loaded, control=replace(loaded.control, retries=RETRIES)))
        self.book.ledger = open_ledger(ledger_url, clock=self.now, retries=RETRIES)
        self.archive = RunArchive(self.book.settings.retention.archive)
        self.artifacts = ArtifactStore.open(self.book.settings.warehouse)
        self.done: Counter[str] = Counter()
        """What was done by then, by the tables that have a row for each."""
        self._draw = Random(seed)
        self._stages = light_stages(self.book, Loader, in_process_spark)
        self._loop = self._new_loop()

    def now(self) -> datetime:
        """Return the time as the book has it."""
        return utc_now() + self.passed

    @property
    def day(self) -> int:
        """How many days have passed."""
        return self.passed.days

    def pass_time(self) -> None:
        """Let hours go by, and the loop do what is ready then; now and then it breaks off."""
        self.passed += STEP
        self._fail_elsewhere()
        try:
            self._loop.tick()
        except BrokenOff:
            self.done["broken off"] += 1
            self._loop = self._new_loop()

    def keep_house(self) -> None:
        """Do what an operator has a timer for: clean up, retire old runs, take the log in."""
        self.book.sweep()
        cleanup = Cleanup(self.book.ledger.pointers, self.artifacts, RETAIN)
        self.done["removal"] += sum(1 for _ in cleanup.remove())
        for run in retire_runs(
            self.book.ledger.run_store, self.archive, KEEP_EVENTS, actor="timer", reason="old"
        ):
            self.done["retired_run"] += run.became is Retirement.RETIRED

    def measure(self) -> Figures:
        """Return how large everything is by now."""
        with self.book.ledger._database.read() as connection:
            tables = {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in metadata.sorted_tables
            }
        root = self.book.settings.root
        return Figures(
            self.day,
            _rss_mb(),
            tables,
            sum(1 for _ in self.book.ledger.pointers.open_pointers()),
            *(
                sum(path.is_file() for path in (root / name).rglob("*"))
                for name in ("warehouse", "raw", "archive")
            ),
        )

    def work(
        self,
        claims: Iterable[Claim],
        run_id: RunId | None,
        under: Fences,
        allowances: Mapping[str, Allowance],
    ) -> Generator[StageBatch, None, None]:
        """Do what was claimed, count what comes of it, and break off at times."""
        self.done["run_head"] += run_id is not None
        for batch in self._stages.work(claims, run_id, under, allowances):
            for result in batch.results:
                self.done["attempt"] += isinstance(result, Judged)
                self.done["load_record"] += isinstance(result, Loaded) and result.ending in (
                    LoadEnding.LOADED,
                    LoadEnding.REPLACED,
                )
            yield batch
            if self._draw.random() < _BREAKS_OFF:
                raise BrokenOff

    def _fail_elsewhere(self) -> None:
        """Have other partitions fail for a while than before: with another seed the source has other luck."""
        sources = self.book.settings.sources
        self._stages.extraction._sources = {
            name: replace(source, options={**source.options, "seed": self.passed // STEP})
            for name, source in sources.items()
        }

    def _new_loop(self) -> Loop:
        loop = self.book.loop(stages=self)
        loop.clock = lambda: self.now().timestamp()
        return loop


def _rss_mb() -> float:
    gc.collect()
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line]
    return int(line.split()[1]) / 1024
