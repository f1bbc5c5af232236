"""A mirror of a table in which a load swaps a thousand partitions, and bare commits of the same actions.

No artifact is written: a commit names files of which the ledger knows all that it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from bench.harness import Result, duration, seconds_of
from sealbook.book import Book
from sealbook.config import MirrorFormat, MirrorSettings
from sealbook.ledger import migrate
from sealbook.model.publication import Published
from sealbook.model.selection import Selection
from sealbook.model.universe import AssetName
from sealbook.read.schema import KEY_TYPES
from sealbook.warehouse.layout import part_paths
from tests.support.ledger import accept
from tests.support.pointers import staged
from tests.support.published import QUERY, SOURCE, key, open_book

SWAPS = 1_000
ROUNDS = 7

_KEYS = [key(number % 10, number // 10) for number in range(SWAPS)]
_EPOCH = date(1970, 1, 1)
_WHY = (
    "It also reads from the ledger what changed, and from the table what it holds, and tells how far it came."
)


def mirrored(folder: Path) -> Iterator[Result]:
    """Measure what a mirror takes for a batch, against what the libraries take for nothing but the commit."""
    yield _compared(folder / "delta", MirrorFormat.DELTA, _delta_commit, "deltalake's bare commit", 2)
    yield _compared(
        folder / "iceberg", MirrorFormat.ICEBERG, _iceberg_commit, "pyiceberg's bare overwrite", 1.5
    )


Commit = Callable[[Path, list[Published], list[Published]], Callable[[], object]]
"""Makes what commits, from the folder of a book, and what was published before and after."""


def _compared(folder: Path, form: MirrorFormat, commit: Commit, peer: str, at_most: float) -> Result:
    with closing(_open(folder, form)) as book:
        for name in ("ours", "bare"):
            book.mirror(name).run()
        taken = [_round(book, commit(folder, *_swap(book, run))) for run in range(2, ROUNDS + 2)]
    mine, bare = map(median, zip(*taken, strict=True))
    detail = f"{mine * 1000:,.0f} ms, {peer} {bare * 1000:,.0f} ms"
    what = f"mirror a batch of {SWAPS:,} swaps, {form.value}"
    return duration(what, mine, bare, at_most=at_most, detail=detail, why=_WHY)


def _open(folder: Path, form: MirrorFormat) -> Book:
    """Return a book with two mirrors of the same; one is left to bare commits."""
    folder.mkdir()
    url = f"sqlite:///{folder}/book.db"
    migrate(url)
    queries = (AssetName(SOURCE, QUERY),)
    mirrors = {name: MirrorSettings(name, form, str(folder / name), queries) for name in ("ours", "bare")}
    book = Book(replace(open_book(url, folder / "warehouse").settings, mirrors=mirrors))
    _swap(book, 1)
    return book


def _swap(book: Book, run: int) -> tuple[list[Published], list[Published]]:
    """Publish another run of every partition; return what was published before and after."""
    following = Selection(source=SOURCE, queries=QUERY)
    pointers = book.ledger.pointers
    before = list(pointers.published(following))
    book.ledger.judge([accept(each, run, version="2") for each in _KEYS])
    pointers.swap([staged(each, run, version="2") for each in _KEYS])
    return before, list(pointers.published(following))


def _round(book: Book, bare: Callable[[], object]) -> tuple[float, float]:
    def ours() -> None:
        [done] = book.mirror("ours").run()
        assert (done.added, done.removed, done.rebuilt) == (SWAPS, SWAPS, None)

    return seconds_of(ours), seconds_of(bare)


def _delta_commit(folder: Path, before: list[Published], after: list[Published]) -> Callable[[], object]:
    actions: list[AddAction | RemoveAction] = [
        AddAction(
            _path(folder, each), each.bytes, _texts(each), 0, data_change=True, stats='{"numRecords":10}'
        )
        for each in after
    ]
    actions += [RemoveAction(_path(folder, each), True, 0, each.bytes, dict(_texts(each))) for each in before]

    def commit() -> None:
        table = DeltaTable(folder / "bare" / SOURCE / QUERY)
        table.create_write_transaction(actions, "append", table.schema(), list(KEY_TYPES))

    return commit


def _iceberg_commit(folder: Path, _before: list[Published], after: list[Published]) -> Callable[[], object]:
    files = [_data_file(folder, each) for each in after]

    def commit() -> None:
        with closing(load_catalog("bare", type="sql", uri=f"sqlite:///{folder}/book.db")) as catalog:
            table = catalog.load_table((SOURCE, QUERY))
            going = [each.file for each in table.scan().plan_files()]
            with table.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
                for file in going:
                    snapshot.delete_data_file(file)
                for file in files:
                    snapshot.append_data_file(file)
        assert len(going) == SWAPS

    return commit


def _path(folder: Path, published: Published) -> str:
    [path] = part_paths(published)
    return f"file://{folder}/warehouse/{path}"


def _texts(published: Published) -> dict[str, str | None]:
    return {name: str(getattr(published, name)) for name in KEY_TYPES}


def _data_file(folder: Path, published: Published) -> Any:
    values = (getattr(published, name) for name in KEY_TYPES)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=_path(folder, published),
        file_format=FileFormat.PARQUET,
        partition=Record(*((each - _EPOCH).days if isinstance(each, date) else str(each) for each in values)),
        record_count=published.record_count,
        file_size_in_bytes=published.bytes,
        spec_id=0,
    )
