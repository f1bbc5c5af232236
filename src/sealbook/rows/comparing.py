"""Two tables of the same columns, compared row by row: Arrow, no Spark.

One hash join finds which rows belong together; columns are then compared as a whole. The join is tried as if
each key were there once, which accepted runs promise: its own counts tell if that is not so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import msgspec
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from sealbook.model.run_diff import ColumnDiff, Number, RowChange, RowChangeKind, RowsDiff

_BEFORE, _AFTER, _NTH = "__before", "__after", "__nth"
_LARGEST = 2**63 - 1
_ENCODER = msgspec.json.Encoder(order="deterministic")


def compare_rows(before: pa.Table, after: pa.Table, primary_key: Sequence[str], limit: int) -> RowsDiff:
    """Compare tables of the same columns by a primary key, or by whole rows if it is empty.

    The sample has at most `limit` rows of each kind, the first ones.
    """
    key = tuple(primary_key)
    names = key or tuple(before.column_names)
    plain, other = _plain(before), _plain(after)
    pairs = _matched(_numbered(plain.select(names), _BEFORE), _numbered(other.select(names), _AFTER))
    is_removed, is_added = pc.is_null(pairs[_AFTER]), pc.is_null(pairs[_BEFORE])
    removed, added = pairs[_BEFORE].filter(is_removed), pairs[_AFTER].filter(is_added)
    matched = pairs.filter(pc.invert(pc.or_(is_removed, is_added))).combine_chunks()
    differing = {
        name: _differ(plain[name].take(matched[_BEFORE]), other[name].take(matched[_AFTER]))
        for name in before.column_names
        if name not in names
    }
    is_changed = reduce(pc.or_, differing.values(), pa.repeat(False, matched.num_rows))
    changed = _count(is_changed)
    return RowsDiff(
        primary_key=key,
        added=len(added),
        removed=len(removed),
        changed=changed,
        unchanged=matched.num_rows - changed,
        columns=tuple(
            _column_diff(name, before[name], after[name], differing.get(name), has_total=name not in key)
            for name in before.column_names
        ),
        sample=(
            *_changed_rows(before, after, key, _first(matched.filter(is_changed), limit), differing),
            *_whole_rows(before, RowChangeKind.REMOVED, key, _first(pa.table({_BEFORE: removed}), limit)),
            *_whole_rows(after, RowChangeKind.ADDED, key, _first(pa.table({_AFTER: added}), limit)),
        ),
    )


def _plain(table: pa.Table) -> pa.Table:
    """Return the table with nested values as text: Arrow cannot compare them."""
    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            values = table[field.name].to_pylist(maps_as_pydicts="lossy")
            texts = [None if each is None else _ENCODER.encode(each) for each in values]
            table = table.set_column(place, field.name, pa.array(texts, pa.binary()))
    return table


def _numbered(keys: pa.Table, name: str) -> pa.Table:
    """Add the number of each row; columns get names that no column of a contract has."""
    renamed = keys.rename_columns([f"__{place}" for place in range(keys.num_columns)])
    return renamed.append_column(name, _numbers(keys.num_rows))


def _numbers(count: int) -> pa.Array:
    return pc.indices_nonzero(pa.repeat(True, count))


def _matched(before: pa.Table, after: pa.Table) -> pa.Table:
    """Return which rows belong together, by number; a row of one side alone has null for the other."""
    pairs = _joined(before, after)
    in_pairs = [len(pairs) - pairs[each].null_count for each in (_BEFORE, _AFTER)]
    if in_pairs == [before.num_rows, after.num_rows]:
        return pairs
    # A key that is there several times was matched with each of its like.
    return _joined(_with_occurrences(before), _with_occurrences(after))


def _joined(before: pa.Table, after: pa.Table) -> pa.Table:
    *keys, _ = before.column_names
    if any(table[name].null_count for table in (before, after) for name in keys):
        before, after = _without_nulls(before), _without_nulls(after)
    sides = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(each)) for each in (before, after)
    ]
    options = acero.HashJoinNodeOptions("full outer", keys, keys, [_BEFORE], [_AFTER])
    return acero.Declaration("hashjoin", options, sides).to_table()


def _without_nulls(keys: pa.Table) -> pa.Table:
    """Make null a key like others: a join would match it with nothing."""
    for place, name in enumerate(keys.column_names[:-1]):
        values = keys[name] if pa.types.is_binary(keys[name].type) else keys[name].cast(pa.string())
        marked = pc.binary_join_element_wise(pa.scalar("=", values.type), values, pa.scalar("", values.type))
        keys = keys.set_column(place, name, pc.fill_null(marked, pa.scalar("", values.type)))
    return keys


def _with_occurrences(keys: pa.Table) -> pa.Table:
    """Count the rows of each key: the n-th of one side is matched with the n-th of the other."""
    ordered = keys.sort_by([(name, "ascending") for name in keys.column_names]).combine_chunks()
    *names, _ = ordered.column_names
    count = ordered.num_rows
    numbers = _numbers(count)
    repeats = [pc.invert(_differ(ordered[name][1:], ordered[name][:-1])) for name in names]
    is_first = pa.chunked_array(
        [pa.repeat(True, min(count, 1)), *pc.invert(reduce(pc.and_, repeats)).chunks]
    ).combine_chunks()
    begins = pc.cumulative_max(pc.if_else(is_first, numbers, pa.scalar(0, numbers.type)))
    return ordered.add_column(0, _NTH, pc.subtract(numbers, begins))


def _differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Say where values are distinct; two nulls are not."""
    found = pc.not_equal(one, other)
    return pc.coalesce(found, pc.xor(pc.is_null(one), pc.is_null(other))) if found.null_count else found


def _count(mask: pa.ChunkedArray) -> int:
    found: int | None = pc.sum(mask).as_py()
    return found or 0


def _column_diff(
    name: str,
    before: pa.ChunkedArray,
    after: pa.ChunkedArray,
    differing: pa.ChunkedArray | None,
    *,
    has_total: bool,
) -> ColumnDiff:
    return ColumnDiff(
        name=name,
        changed=0 if differing is None else _count(differing),
        nulls_before=before.null_count,
        nulls_after=after.null_count,
        total_before=_total(before) if has_total else None,
        total_after=_total(after) if has_total else None,
    )


def _total(values: pa.ChunkedArray) -> Number | None:
    """Add numbers up; None for what is none."""
    kind = values.type
    if pa.types.is_integer(kind):
        least, most = pc.min_max(values).as_py().values()
        if max(abs(least or 0), abs(most or 0)) * len(values) > _LARGEST:  # Arrow would overflow silently
            values = values.cast(pa.decimal128(38))
    elif not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    total: Number | None = pc.sum(values).as_py()
    return int(total) if total is not None and pa.types.is_integer(kind) else total


def _first(pairs: pa.Table, limit: int) -> pa.Table:
    """Return the first of what was matched, in the order of its table: a join gives it in any."""
    if limit <= 0 or not pairs.num_rows:
        return pairs.slice(0, 0)
    by = pairs.column_names[0]
    return pairs.take(pc.select_k_unstable(pairs, limit, sort_keys=[(by, "ascending")]))


def _whole_rows(
    table: pa.Table, kind: RowChangeKind, key: tuple[str, ...], chosen: pa.Table
) -> Iterator[RowChange]:
    for row in table.take(chosen[0]).to_pylist(maps_as_pydicts="lossy"):
        before, after = (row, None) if kind is RowChangeKind.REMOVED else (None, row)
        yield RowChange(kind, {name: row[name] for name in key}, before, after)


def _changed_rows(
    before: pa.Table, after: pa.Table, key: tuple[str, ...], chosen: pa.Table, names: Iterable[str]
) -> Iterator[RowChange]:
    rows = (
        table.take(chosen[each]).to_pylist(maps_as_pydicts="lossy")
        for table, each in ((before, _BEFORE), (after, _AFTER))
    )
    for was, now in zip(*rows, strict=True):
        changed = [name for name in names if was[name] != now[name]]
        yield RowChange(
            RowChangeKind.CHANGED,
            {name: was[name] for name in key},
            {name: was[name] for name in changed},
            {name: now[name] for name in changed},
        )
