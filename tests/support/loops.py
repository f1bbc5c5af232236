"""Loops of processes of their own, on real ledgers and a real raw store, whose stages need no Spark."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from multiprocessing.context import ForkServerContext
from pathlib import Path
from random import Random
from typing import Any

import yaml

from sealbook.book import Book
from sealbook.config import load_settings
from sealbook.control.loop import Loop, Tell
from sealbook.extract.allowance import ALONE, Allowance
from sealbook.extract.extraction import Extraction
from sealbook.extract.extractor import Extractor
from sealbook.extract.plan import ExtractPlan
from sealbook.extract.ranges import Ranges
from sealbook.extract.results import Extracted
from sealbook.extract.retry import RetryPolicy
from sealbook.extract.sources.demo import demo_configuration
from sealbook.ledger import Ledger
from sealbook.load.loader import Loader, LoadPlan
from sealbook.load.publishing import swap_results
from sealbook.load.results import Loaded, LoadEnding
from sealbook.model import EventType, PartitionKey, RunId, Status, Verdict
from sealbook.model.artifacts import Action
from sealbook.model.claims import LOST, Fences
from sealbook.model.progress import OnProgress, no_progress
from sealbook.model.retry import Jitter, Retries, RetryPolicies
from sealbook.model.selection import Selection
from sealbook.model.work import LAPSED, WorkKind
from sealbook.pipeline import Pipeline
from sealbook.raw import RawReader
from sealbook.validate.plan import ValidatePlan
from sealbook.validate.results import Judged, NotJudged, Result
from sealbook.validate.validator import Validator
from tests.support.pointers import stage
from tests.support.schedule import work_in

BAD = ("c0",)
"""Customers whose rows no contract accepts."""
FIRST_DAY = date(2026, 1, 1)
RETRIES = RetryPolicies(Retries((timedelta(seconds=0.3),), Jitter.FULL, max_attempts=8))
_AT_ONCE = 20


def write_loop_book(folder: Path, ledger_url: str, *, customers: int, days: int, **control: Any) -> Path:
    """Write a book of customers with so many days each, of which one has bad rows and one is disabled."""
    names = [f"c{number}" for number in range(customers)]
    faults = [{"kind": "transient", "share": 0.05, "tries": 1}, {"kind": "permanent", "customers": ["c1"]}]
    last = FIRST_DAY + timedelta(days=days - 1)
    source = {
        "queries": "demo.yaml",
        "customers": [{"id": name, "first_day": FIRST_DAY, "last_day": last} for name in names],
        "options": {"rows": 2, "faults": faults},
    }
    settings = {
        "ledger": ledger_url,
        "sources": {"demo": source},
        "control": control,
    }
    catalogue = yaml.safe_load(demo_configuration())
    catalogue["queries"] = {"campaign_daily": catalogue["queries"]["campaign_daily"]}
    folder.mkdir(exist_ok=True)
    (folder / "demo.yaml").write_text(yaml.safe_dump(catalogue))
    (folder / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    return folder / "sealbook.yaml"


def keys_of(customers: int, days: int) -> list[PartitionKey]:
    """Return the partitions of such a book."""
    return [
        PartitionKey("demo", f"c{number}", "campaign_daily", FIRST_DAY + timedelta(days=day))
        for number in range(customers)
        for day in range(days)
    ]


class LightExtraction(Extraction):
    """Fetches and seals as a task does, in this process."""

    def begin(self) -> None:
        """Nothing is needed."""

    def run(
        self,
        plan: ExtractPlan,
        run_id: RunId,
        on_progress: OnProgress = no_progress,  # noqa: ARG002
        *,
        resumes: bool = True,
        begin: Callable[[], None] | None = None,  # noqa: ARG002
        allowances: Mapping[str, Allowance] | None = None,
    ) -> Generator[list[Extracted], None, None]:
        """Fetch a few at once, so that there are many moments at which to be killed."""
        for name in plan.keys:
            source = self._sources[name]
            ranges = plan.ranges(name, Ranges(source))
            extractor = Extractor(
                run_id=run_id,
                source_type=source.type,
                queries=source.queries,
                raw_url=self._raw_url,
                options=source.options,
                limits=source.limits,
                retry=RetryPolicy(base_seconds=0.0),
                resumes=resumes,
                allowance=(allowances or {}).get(name, ALONE),
            )
            for start in range(0, len(ranges), _AT_ONCE):
                yield extractor(ranges[start : start + _AT_ONCE])


class LightValidator(Validator):
    """Judges by the customer alone."""

    def _batches(self, plan: ValidatePlan, under: Fences | None) -> Generator[list[Result], None, None]:
        if plan.gone:
            yield list(plan.gone)
        assert under is not None
        for start in range(0, len(plan.candidates), _AT_ONCE):
            verdicts = [
                _verdict(each.key, each.run_id, each.revalidation_id, self._hash(each.key))
                for each in plan.candidates[start : start + _AT_ONCE]
            ]
            judged = self._verdicts.judge_under(verdicts, under)
            states = {state.key: state for state in judged.states}
            lost = {*judged.lost}
            yield [
                NotJudged(each.key, each.run_id, LOST)
                if each.key in lost
                else Judged(each, states[each.key], 2, 2)
                for each in verdicts
            ]

    def _hash(self, key: PartitionKey) -> str:
        [contract] = self._queries[key.source, key.query_name].contracts.values()
        return contract.hash


def _verdict(key: PartitionKey, run_id: RunId, revalidation_id: str | None, contract_hash: str) -> Verdict:
    if key.customer_id in BAD:
        return Verdict.reject(
            key,
            run_id,
            error_message="bad rows",
            validator_version="v1",
            checks=(),
            revalidation_id=revalidation_id,
            contract_hash=contract_hash,
        )
    return Verdict.accept(
        key,
        run_id,
        schema_version="1",
        record_count=2,
        validator_version="v1",
        checks=(),
        revalidation_id=revalidation_id,
    )


class LightLoader(Loader):
    """Publishes without writing anything."""

    def run(
        self,
        plan: LoadPlan,
        on_progress: OnProgress = no_progress,  # noqa: ARG002
        under: Fences | None = None,
    ) -> Generator[list[Loaded], None, None]:
        """Swap a few at once."""
        hidden = self._pointers.hide(plan.selection)
        yield [Loaded(key, LoadEnding.HIDDEN) for key in hidden]
        staged = [stage(item) for item in plan.items if item.action is not Action.HIDE]
        for start in range(0, len(staged), _AT_ONCE):
            batch = staged[start : start + _AT_ONCE]
            yield swap_results(batch, self._pointers.swap(batch, under))


def no_spark() -> Any:
    raise AssertionError("nothing here needs Spark")


def light_stages(book: Book, loader: type[Loader] = LightLoader, spark: Any = no_spark) -> Pipeline:
    """Return the pipeline of a book, with stages that need no Spark."""
    ledger, settings = book.ledger, book.settings
    stages = Pipeline(
        ledger,
        lambda: RawReader.open(settings.raw),
        LightExtraction(settings.sources, settings.raw, no_spark),
        LightValidator(
            ledger.reader, ledger.verdicts, ledger.contracts, lambda: book.raw, book.queries, no_spark
        ),
        loader(
            ledger.pointers,
            book.queries,
            spark,
            raw_url=settings.raw,
            warehouse_url=settings.warehouse,
        ),
        lambda: None,
    )
    stages._start = lambda: None  # type: ignore[method-assign]  # it would import what the stages on Spark need
    return stages


def open_light(file: Path, lease: timedelta, retries: RetryPolicies = RETRIES) -> Book:
    """Open a book whose leases are shorter than a person would have them, and its waits if none are given."""
    settings = load_settings(file)
    return Book(replace(settings, control=replace(settings.control, lease=lease, retries=retries)))


def light_loop(book: Book, batch: int = 500, tell: Tell | None = None) -> Loop:
    """Return a loop on it."""
    return book.loop(batch=batch, stages=light_stages(book), tell=tell)


def work_until_done(file: Path, lease: timedelta, batch: int, on_spark: bool = False) -> None:
    """Tick until nothing is open but what has stopped."""
    with open_light(file, lease) as book:
        while True:
            loop = book.loop(batch=batch) if on_spark else light_loop(book, batch)
            loop.tick()
            if all(row.work.stop is not None for row in work_in(book.ledger).values()):
                loop.open_round()  # a last one ends the runs of those who were killed at the end
                return
            time.sleep(0.05)


@dataclass(frozen=True)
class Kills:
    """How many workers there are, what they claim at once, and for how long they are killed, how often."""

    workers: int
    batch: int
    seconds: float
    pause: float
    lease: timedelta = timedelta(seconds=3)


def kill_at_random(processes: ForkServerContext, file: Path, kills: Kills, seed: int = 7) -> int:
    """Let workers work, and kill one after the other at random moments; return how many were killed."""
    draw = Random(seed)

    def start() -> Any:
        process = processes.Process(target=work_until_done, args=(file, kills.lease, kills.batch))
        process.start()
        return process

    workers = [start() for _ in range(kills.workers)]
    killed = 0
    try:
        end = time.monotonic() + kills.seconds
        while time.monotonic() < end:
            time.sleep(draw.uniform(0.2, 1.8) * kills.pause)
            place = draw.randrange(kills.workers)
            if workers[place].is_alive():
                os.kill(workers[place].pid, signal.SIGKILL)
                killed += 1
            workers[place].join()
            workers[place] = start()
        for worker in workers:
            worker.join(600)
            assert worker.exitcode == 0
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.kill()
            worker.join()
    return killed


def check_ends(ledger: Ledger, keys: Collection[PartitionKey]) -> Counter[str]:
    """Hold a ledger against the rules once all work has ended; return how many partitions ended how.

    Every partition is good, terminal or parked; attempts are verdicts; nothing published is lost; nothing is
    held, and every run has ended but those that wait for the judgement of what was given up before it.
    """
    ledger.projector().catch_up()
    judged: Counter[str | None] = Counter()
    ever_published: set[str | None] = set()
    runs: set[str] = set()
    after = 0
    while feed := ledger.run_store.fetch_feed(after, 1000):
        after = feed[-1].position
        for event in (each.event for each in feed):
            runs.add(event.run_id)
            judged[event.partition] += event.event_type == EventType.PARTITION_JUDGED
            if event.event_type == EventType.PARTITION_PUBLISHED:
                ever_published.add(event.partition)
    unjudged = {
        row.work.run_id
        for row in work_in(ledger).values()
        if row.work.kind is WorkKind.JUDGE and row.work.stop is not None and row.work.error == LAPSED.error
    }
    left = {run for run in runs if not ledger.run_store.project_snapshot(run).status.final}
    assert left <= unjudged, "every run has ended"
    published = {each.key: each.run_id for each in ledger.pointers.open_pointers()}
    assert ever_published == {str(key) for key in published}, "nothing published is lost"
    states = {state.key: state for state in ledger.states(Selection())}
    rows = work_in(ledger)
    assert all(row.holder is None for row in rows.values())
    ends: Counter[str] = Counter()
    for key in keys:
        state, row = states.get(key), rows.get(key)
        assert (0 if state is None else state.attempt_count) == judged[str(key)], key
        if row is None:
            assert state is not None
            assert (state.status, published.get(key)) == (Status.SUCCESS, state.current_run_id), key
            ends["good"] += 1
        else:
            assert row.work.stop is not None, row
            assert key not in published
            ends["terminal" if row.work.stop.terminal else "parked"] += 1
    return ends
