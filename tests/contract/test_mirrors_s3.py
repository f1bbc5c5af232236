"""A Delta mirror of a warehouse in a bucket: within it, and in another place."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from sealbook.errors import Conflict
from sealbook.ledger import migrate
from tests.support.ledger import reject
from tests.support.mirrors import MIRROR, Lake, same_rows
from tests.support.published import QUERY, key, publish


@pytest.mark.parametrize("kind", ["delta inside", "delta apart"])
def test_a_warehouse_in_a_bucket_is_mirrored(s3_url: str, tmp_path: Path, kind: str) -> None:
    url = f"sqlite:///{tmp_path}/book.db"
    migrate(url)
    with closing(Lake.open(kind, url, s3_url.removesuffix("/raw"))) as lake:
        publish(lake.book.ledger, lake.warehouse, [key(), key(1)], 1, version="1", rows=2)
        assert lake.run().copied == 2
        publish(lake.book.ledger, lake.warehouse, [key()], 2, version="2", rows=2)
        lake.book.ledger.judge([reject(key(1), 1, again="1")])
        [slow] = lake.book.mirror(MIRROR).queries
        batch = slow._batch(slow._plan(slow.table.latest(), None), slow.table.files())
        lake.run()
        with pytest.raises(Conflict):
            slow.table.commit(batch)
        table = lake.delta(allow_http="true")
        read = table.to_pyarrow_table() if kind == "delta inside" else pa.table(table.scan().read_all())
        assert same_rows(read, lake.book.table(QUERY))
