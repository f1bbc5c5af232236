"""A contract proposed from sealed runs: what they all hold, for somebody to read and to tighten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from sealbook.errors import InvalidInput, NotFound
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, RowCount
from sealbook.model.keys import PartitionKey
from sealbook.model.words import counted
from sealbook.raw import RawReader, SealedRun
from sealbook.rows.shapes import Shape
from sealbook.rows.values import Members, NotJson, decode

MOST_RUNS = 20
MOST_LINES = 10_000
"""Of each run."""
_MOST_KEY_COLUMNS = 3
_KEY_CANDIDATES = 16
_KEY_TYPES = (ColumnType.BIGINT, ColumnType.STRING, ColumnType.DATE, ColumnType.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A contract that every run that was looked at holds, and what should be known about it."""

    source: str
    contract: Contract
    runs: int
    rows: int
    notes: tuple[str, ...]


@dataclass
class _Sample:
    """Some rows of a partition, and how many it has, if that is known."""

    key: PartitionKey
    rows: list[dict[str, object]]
    record_count: int | None


def infer_contract(
    raw: RawReader, sealed: Iterable[SealedRun], schema_version: str, *, runs: int = MOST_RUNS
) -> Proposal:
    """Propose a contract from the newest sealed run of each partition, at most so many of them.

    NotFound if there is none; InvalidInput if they are of several queries, or have no columns.
    """
    chosen = _chosen(sealed, runs)
    queries = sorted({(run.key.source, run.key.query_name) for run in chosen})
    if not queries:
        raise NotFound("no sealed run is chosen", remedy="`sealbook raw list` shows what is sealed.")
    if len(queries) > 1:
        names = " and ".join("/".join(each) for each in queries[:2])
        raise InvalidInput(
            f"a contract is for one query, and there are runs of {names}",
            field="selection",
            remedy="Choose one by --query-name.",
        )
    notes: list[str] = []
    samples = []
    for run in chosen:
        sealed_run = raw.read(run.key, run.run_id)
        rows = _rows(sealed_run.lines(), f"{run.key} run {run.run_id}", notes)
        samples.append(_Sample(run.key, rows, sealed_run.metadata.record_count))
    return _propose(samples, schema_version, notes, counted(len(samples), "run"))


def infer_from_answer(
    key: PartitionKey, lines: Iterable[bytes], schema_version: str, *, is_whole: bool
) -> Proposal:
    """Propose a contract from the lines of an answer that is not sealed; of its first ones, if not whole.

    InvalidInput if they have no columns.
    """
    notes: list[str] = []
    rows = _rows(lines, str(key), notes)
    sample = _Sample(key, rows, len(rows) if is_whole else None)
    return _propose([sample], schema_version, notes, "what the source answered for one partition")


def _propose(samples: Sequence[_Sample], schema_version: str, notes: list[str], seen: str) -> Proposal:
    source, query_name = samples[0].key.source, samples[0].key.query_name
    shapes, rows = _shapes(samples)
    unfit = [name for name in shapes if not _is_column(name)]
    if unfit:
        names = ", ".join(map(repr, unfit))
        notes.append(f"Left out, for a column is a lower-case letter, then a-z, 0-9 and _: {names}.")
    columns = tuple(
        Column(name, shape.type(), required=rows > 0 and shape.nulls == 0)
        for name, shape in shapes.items()
        if name not in unfit
    )
    notes += [f"{name} was null in every row." for name, shape in shapes.items() if not shape.kinds]
    if not columns:
        raise InvalidInput(
            f"the runs of {source}/{query_name} have no columns to propose",
            field="selection",
            remedy="Choose partitions that have rows.",
        )
    date_column = _date_column(columns, samples)
    contract = Contract(
        query_name,
        schema_version,
        columns,
        primary_key=_primary_key([each for each in columns if each.name != date_column], samples),
        date_column=date_column,
        allow_empty=any(sample.record_count == 0 for sample in samples),
        row_count=_row_count([each.record_count for each in samples if each.record_count is not None]),
    )
    notes.insert(0, f"Proposed from {counted(rows, 'row')} of {seen} of {source}/{query_name}.")
    return Proposal(source, contract, len(samples), rows, tuple(notes))


def _chosen(sealed: Iterable[SealedRun], most: int) -> list[SealedRun]:
    """Choose the newest run of each partition, and of many partitions some from first to last."""
    newest = list({run.key: run for run in sealed}.values())
    if len(newest) <= most:
        return newest
    return [newest[place * (len(newest) - 1) // max(most - 1, 1)] for place in range(most)]


def _rows(lines: Iterable[bytes], whose: str, notes: list[str]) -> list[dict[str, object]]:
    rows, wrong = [], 0
    for line in islice(lines, MOST_LINES):
        try:
            value = decode(line.decode())
        except (NotJson, UnicodeDecodeError):
            value = None
        if isinstance(value, Members):
            rows.append(dict(value))
        else:
            wrong += 1
    if wrong:
        notes.append(f"{whose} has {counted(wrong, 'line')} that are no JSON objects.")
    return rows


def _shapes(samples: Sequence[_Sample]) -> tuple[dict[str, Shape], int]:
    shapes: dict[str, Shape] = {}
    rows = 0
    for row in (row for sample in samples for row in sample.rows):
        for name in row:
            if name not in shapes:
                shapes[name] = Shape(nulls=rows)  # absent so far
        for name, shape in shapes.items():
            shape.add(row.get(name))
        rows += 1
    return shapes, rows


def _is_column(name: str) -> bool:
    try:
        Column(name, ColumnType.STRING)
    except InvalidInput:
        return False
    return True


def _date_column(columns: Sequence[Column], samples: Sequence[_Sample]) -> str | None:
    """Return the column that has the partition's day in every row."""
    for column in columns:
        if column.type is ColumnType.DATE and all(
            row.get(column.name) == sample.key.logical_date.isoformat()
            for sample in samples
            for row in sample.rows
        ):
            return column.name
    return None


def _primary_key(columns: Sequence[Column], samples: Sequence[_Sample]) -> tuple[str, ...]:
    """Return the fewest columns whose values are unique in each run; none, if runs are too short to tell."""
    if max(len(sample.rows) for sample in samples) < 2:
        return ()
    able = [each.name for each in columns if each.required and each.type in _KEY_TYPES][:_KEY_CANDIDATES]
    for names in _candidates(able):
        if all(_is_unique(names, sample.rows) for sample in samples):
            return names
    return ()


def _candidates(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(1, _MOST_KEY_COLUMNS + 1):
        yield from combinations(names, size)


def _is_unique(names: Sequence[str], rows: Sequence[dict[str, object]]) -> bool:
    seen = set()
    for row in rows:
        values = tuple(row[name] for name in names)
        if values in seen:
            return False
        seen.add(values)
    return True


def _row_count(counts: Sequence[int]) -> RowCount:
    """Return bounds with as much room below and above as would be a surprise: half, and twice."""
    if not counts:
        return RowCount()
    least, greatest = min(counts), max(counts)
    return RowCount(min=least // 2 if least > 1 else None, max=2 * greatest if greatest else None)
