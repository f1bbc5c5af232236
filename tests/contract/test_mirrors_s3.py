"""Mirrors of a warehouse in a bucket: within it, and in another place."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from sealbook.errors import Conflict
from sealbook.ledger import migrate
from tests.support.ledger import reject
from tests.support.mirrors import KINDS, MIRROR, Lake
from tests.support.published import key, publish


@pytest.mark.parametrize("kind", KINDS)
def test_a_warehouse_in_a_bucket_is_mirrored(s3_apart: str, tmp_path: Path, kind: str) -> None:
    url = f"sqlite:///{tmp_path}/book.db"
    migrate(url)
    with closing(Lake.open(kind, url, s3_apart)) as lake:
        publish(lake.book.ledger, lake.warehouse, [key(), key(1)], 1, version="1", rows=2)
        assert lake.run().copied == (0 if kind == "iceberg" else 2)
        assert lake.is_equal()
        publish(lake.book.ledger, lake.warehouse, [key()], 2, version="2", rows=2)
        lake.book.ledger.judge([reject(key(1), 1, again="1")])
        [slow] = lake.book.mirror(MIRROR).queries
        batch = slow._batch(slow._plan(slow.table.latest(), None), slow.table.files())
        done = lake.run()
        assert (done.added, done.removed, done.copied) == (1, 2, 0)
        assert lake.is_equal()
        with pytest.raises(Conflict):
            slow.table.commit(batch)
        assert lake.is_equal()
