"""What a clean-up takes away of a warehouse, and what it leaves alone (R-WH-7)."""

from __future__ import annotations

from datetime import date, timedelta

from sealbook.ledger import open_ledger
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Artifact
from sealbook.warehouse.cleanup import Cleanup
from sealbook.warehouse.layout import location_of, part_path
from sealbook.warehouse.store import ArtifactStore

KEY = PartitionKey("demo", "1001", "campaign_daily", date(2026, 1, 1))
ORPHAN = Artifact(KEY, RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE"), "1")


def test_what_no_load_published_goes_and_what_is_not_ours_stays(raw_url: str) -> None:
    store = ArtifactStore.open(raw_url)
    orphan = part_path(location_of(ORPHAN), 0, "0" * 64)
    strangers = ["My Notes/2026/read me.txt", "demo/campaign_daily/notes.txt", "demo/Other Query/x/y.parquet"]
    store.put_all(dict.fromkeys([orphan, *strangers], b"rows"))

    with open_ledger("sqlite://") as ledger:
        removed = list(Cleanup(ledger.pointers, store, timedelta(days=7)).remove())

    assert [(each.location, each.files, each.bytes, each.orphan) for each in removed] == [
        (location_of(ORPHAN), 1, 4, True)
    ]
    assert store.get(orphan) is None
    assert all(store.get(path) == b"rows" for path in strangers)
