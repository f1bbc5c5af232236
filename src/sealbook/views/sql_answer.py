"""The answer to a question in SQL: as rows for people, as objects, as CSV."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from sealbook.errors import InvalidInput
from sealbook.views.encoding import encode

if TYPE_CHECKING:
    import pyarrow as pa


def objects_of(answer: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield an object for each row; InvalidInput if two columns have one name."""
    _check_distinct(answer.column_names)
    return (dict(zip(answer.column_names, row, strict=True)) for row in rows_of(answer))


def write_csv(answer: pa.Table, file: TextIO) -> None:
    """Write the names of columns, then the rows."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(answer.column_names)
    writer.writerows(rows_of(answer, nested_as_text=True))


def rows_of(answer: pa.Table, *, nested_as_text: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yield rows; arrays, structs and maps as JSON has them, or as its text."""
    import pyarrow as pa

    is_text = [nested_as_text and pa.types.is_nested(field.type) for field in answer.schema]
    for batch in answer.to_batches():
        values = (column.to_pylist(maps_as_pydicts="lossy") for column in batch.columns)
        yield from zip(
            *(map(_as_text, each) if text else each for each, text in zip(values, is_text, strict=True)),
            strict=True,
        )


def _check_distinct(names: Sequence[str]) -> None:
    """Refuse an answer in which an object would have a field twice."""
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InvalidInput(
            f"the answer has several columns {repeated[0]!r}, but JSON has each field once",
            field="SQL",
            remedy="Give them names: `select … as …`.",
        )


def _as_text(value: object) -> str | None:
    return None if value is None else encode(value).decode()
