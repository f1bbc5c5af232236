"""An Arrow filter as a selection that the ledger can be asked for: never less than the filter lets through.

A filter cannot be taken apart, but Arrow says whether rows of which something is known could pass it. So the
values of a key column are divided, at the constants of the filter, into each constant and the gaps between
them. Where nothing in a gap could pass, the constants that could are all that need be asked for. Which
constants are taken decides only how much is left out, and never what: whatever they are, no value is between
the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import date
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from sealbook.model.selection import Selection

_MOST = 100
"""More constants than this are not tried: Arrow looks at the whole filter for each of them."""

_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_SHORTENED = "..."
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PARQUET, _NOWHERE = ds.ParquetFileFormat(), pyarrow.fs.LocalFileSystem()

_Piece = tuple[Any, Any]
"""A constant, twice; or the two between which a gap is, of which None is no bound."""


def let_through(wanted: pc.Expression, schema: pa.Schema, source: str, question: str) -> Selection:
    """Return the partitions of a source that may have rows for which a filter holds, or more.

    Constants are those that the filter shows as text; where that shortens a list, also the question's.
    """
    text = str(wanted)
    if _SHORTENED in text:
        text += question
    quoted = set(chain.from_iterable(_QUOTED.findall(text)))

    def passing(column: str, constants: Collection[Any]) -> list[_Piece]:
        pieces = _pieces(constants if len(constants) <= _MOST else ())
        said = [(pc.field("source") == source) & _said_of(column, each) for each in pieces]
        fragments = [_PARQUET.make_fragment(str(at), _NOWHERE, each) for at, each in enumerate(said)]
        dataset = ds.FileSystemDataset(fragments, schema, _PARQUET, _NOWHERE)
        return [pieces[int(each.path)] for each in dataset.get_fragments(filter=wanted)]

    customers, runs = passing("customer_id", quoted), passing("run_id", quoted)
    days = passing("logical_date", set(_days(text)))
    chosen = Selection()
    if all(map(_is_constant, customers)):
        chosen = chosen.narrowed(customers=(value for value, _ in customers))
    if all(map(_is_constant, runs)):
        chosen = chosen.narrowed(runs=(value for value, _ in runs))
    if not days:
        return chosen.narrowed(customers=())
    first, last = zip(*days, strict=True)
    return chosen.narrowed(
        since=None if None in first else min(first), until=None if None in last else max(last)
    )


def _pieces(constants: Collection[Any]) -> list[_Piece]:
    """Divide all values of a column at some of them."""
    ordered = sorted(constants)
    return [*zip(ordered, ordered, strict=True), *pairwise([None, *ordered, None])]


def _said_of(column: str, piece: _Piece) -> pc.Expression:
    field = pc.field(column)
    above, below = piece
    if _is_constant(piece):
        return field == above
    condition = field.is_valid()
    if above is not None:
        condition &= field > above
    if below is not None:
        condition &= field < below
    return condition


def _is_constant(piece: _Piece) -> bool:
    above, below = piece
    return above is not None and above == below


def _days(text: str) -> Iterator[date]:
    for each in _DAY.findall(text):
        with suppress(ValueError):  # looks like one, and is none
            yield date.fromisoformat(each)
