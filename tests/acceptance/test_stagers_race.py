"""R-WH-2: stagers of different contract and pyarrow versions at once, and readers at work all the while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

from sealbook.errors import Conflict
from sealbook.ledger import Ledger, open_ledger
from sealbook.load.staging import Stager, StagingTask, Written
from sealbook.model import PartitionKey, RunId, Verdict
from sealbook.model.artifacts import Artifact, PlanItem, Staged
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Contract
from sealbook.model.publication import Published
from sealbook.model.selection import Selection
from sealbook.raw import RawReader
from sealbook.read.plan import plan_read
from sealbook.read.table import read_table
from sealbook.rows.units import Unit
from sealbook.warehouse import encoding
from sealbook.warehouse.encoding import digest_of
from sealbook.warehouse.layout import location_of, part_paths
from sealbook.warehouse.part_files import PartFiles
from sealbook.warehouse.store import ArtifactStore
from tests.support.extraction import demo_keys, demo_queries
from tests.support.runs import new_run_id
from tests.support.validation import encoded, seal

KEYS = demo_keys(customers=25, days=2)
WAVES = 40
"""So many times the runs of all KEYS: two thousand rounds of stagers that planned together."""

WRITERS = ("first", "edited", "newer")


def contract(writer: str) -> Contract:
    """Return the contract by which one stages; one of them has edited a column of it."""
    [found] = demo_queries()["campaign_daily"].contracts.values()
    if writer != "edited":
        return found
    columns = (
        replace(each, type=ColumnType.DOUBLE) if each.name == "metrics_clicks" else each
        for each in found.columns
    )
    return replace(found, columns=tuple(columns))


def seal_wave(root: Path, wave: int) -> RunId:
    """Seal another run of every partition, the quick way."""
    run_id = new_run_id()
    names = [(column.name, column.type) for column in contract("first").columns]
    for number, key in enumerate(KEYS):
        row = {
            name: {
                ColumnType.DATE: str(key.logical_date),
                ColumnType.STRING: f"w{wave}",
                ColumnType.TIMESTAMP: "2026-01-01T00:00:00Z",
            }.get(each, wave * 1000 + number)
            for name, each in names
        }
        seal(root, key, encoded([row, row]), run_id)
    return run_id


def stage(writer: str, folder: Path, items: Sequence[PlanItem]) -> list[Staged]:
    """Stage what a load planned, as a task does."""
    stager = Stager(RawReader.open(folder / "raw"), ArtifactStore.open(folder / "warehouse"))
    units = tuple(Unit(number, item.key, RunId(str(item.run_id))) for number, item in enumerate(items))
    staged = []
    for result in stager(StagingTask(contract(writer), units)):
        assert isinstance(result, Written), result
        item = items[result.ordinal]
        artifact = Artifact(item.key, RunId(str(item.run_id)), "1")
        [part] = result.parts
        digest = digest_of([part.sha256])
        staged.append(Staged(artifact, part.rows, part.bytes, digest, location_of(artifact)))
    return staged


def load_waves(writer: str, folder: Path, url: str, planned: Barrier, done: Event) -> int:
    """Plan together with the others, stage, and swap one by one; return how many this one published."""
    if writer == "newer":
        encoding._WRITER["compression_level"] = 7  # another pyarrow writes other bytes: so does this
    published = 0
    with open_ledger(url) as ledger:
        while True:
            planned.wait()  # for a wave to be accepted
            if done.is_set():
                return published
            items = list(ledger.pointers.plan())
            assert len(items) == len(KEYS)
            planned.wait()  # for the others to have planned
            published += publish(ledger, stage(writer, folder, items))
            planned.wait()


def publish(ledger: Ledger, staged: Sequence[Staged]) -> int:
    """Swap one by one, and return how many of them this one published."""
    published = 0
    for each in staged:
        try:
            result = ledger.pointers.swap([each])
        except Conflict:
            continue  # another one published it, with other bytes
        published += len(result.loaded) + len(result.replaced)
    return published


def watch(folder: Path, url: str, ready: Barrier, done: Event) -> int:
    """Read what is published again and again, and see that no file that was ever seen has changed."""
    seen: dict[str, str] = {}
    warehouse = folder / "warehouse"
    query = demo_queries()["campaign_daily"]
    with open_ledger(url) as ledger:
        ready.wait()
        while not done.is_set():
            published = list(ledger.pointers.published(Selection(queries="campaign_daily")))
            check_files(warehouse, published, seen)
            plan = plan_read(ledger.pointers, query)
            clicks = read_table(PartFiles(str(warehouse)), plan)
            assert clicks.num_rows == 2 * len(plan.partitions)
        for path, digest in seen.items():
            assert sha256((warehouse / path).read_bytes()).hexdigest() == digest
    return len(seen)


def check_files(warehouse: Path, published: Sequence[Published], seen: dict[str, str]) -> None:
    """See that each file has the bytes that its record says, and that it had whenever it was read before."""
    for each in published:
        [path] = part_paths(each)
        digest = sha256((warehouse / path).read_bytes()).hexdigest()
        assert digest == each.digest
        assert seen.setdefault(path, digest) == digest


def accepted(keys: Sequence[PartitionKey], run_id: RunId) -> list[Verdict]:
    """Accept a run of each partition."""
    return [
        Verdict.accept(key, run_id, schema_version="1", record_count=2, validator_version="v") for key in keys
    ]


def test_no_file_under_a_pointer_ever_changes(tmp_path: Path, processes: ForkServerContext) -> None:
    """Two thousand times three stagers that planned together, of which one publishes each time."""
    url = f"sqlite:///{tmp_path}/book.db"
    with open_ledger(url) as ledger, processes.Pool(len(WRITERS) + 1) as pool, processes.Manager() as manager:
        planned, ready, done = manager.Barrier(len(WRITERS) + 1), manager.Barrier(2), manager.Event()
        loads = [pool.apply_async(load_waves, (writer, tmp_path, url, planned, done)) for writer in WRITERS]
        watching = pool.apply_async(watch, (tmp_path, url, ready, done))
        ready.wait()
        for wave in range(WAVES):
            ledger.judge(accepted(KEYS, seal_wave(tmp_path / "raw", wave)))
            for _ in range(3):
                planned.wait()
        done.set()
        planned.wait()
        published = [each.get() for each in loads]
        assert watching.get() >= len(KEYS)

        assert sum(published) == WAVES * len(KEYS)
        assert all(published), published  # each was first now and then
        records = list(ledger.pointers.load_records())
        assert len(records) == WAVES * len(KEYS)
        for each in ledger.pointers.stored_artifacts():
            [path] = part_paths(each)
            assert sha256((tmp_path / "warehouse" / path).read_bytes()).hexdigest() == each.digest
