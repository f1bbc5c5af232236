"""R-RAW-2: what no seal names is removed, once it is older than any write can take; nothing else ever is."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import obstore
import pytest

from sealbook.clock import utc_now
from sealbook.errors import InvalidInput
from sealbook.model.selection import Selection
from sealbook.raw import RawStore, leftovers
from sealbook.raw.layout import RunPaths
from sealbook.raw.leftovers import LEAST_AGE
from tests.support.s3 import KEY, RUN, SEAL, numbered, seal_rows

PATHS = RunPaths(KEY, RUN)
WEEK = timedelta(days=7)


@pytest.fixture
def a_week_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before is old."""
    monkeypatch.setattr(leftovers, "utc_now", lambda: utc_now() + WEEK)


def put(store: RawStore, name: str, data: bytes = b"{}\n") -> str:
    path = f"{PATHS.directory}/{name}"
    obstore.put(store._storage._store, path, data)
    return path


def found(store: RawStore) -> list[str]:
    return [each.path for each in store.leftovers(age=WEEK)]


@pytest.mark.usefixtures("a_week_later")
def test_what_no_seal_names_is_found_and_removed(raw_store: RawStore) -> None:
    payload = raw_store.write(KEY, RUN, numbered(3))
    torn = [put(raw_store, name) for name in ("payload.jsonl", f"_staged-{'a' * 32}", "_intent")]
    draft = put(raw_store, f"_new-{'b' * 32}")
    unsealed = [*torn, draft, PATHS.payload(payload.name)]
    assert sorted(found(raw_store)) == sorted(unsealed)
    assert {(each.key, each.run_id) for each in raw_store.leftovers(age=WEEK)} == {(KEY, RUN)}

    sealed = seal_rows(raw_store, numbered(2))
    assert sorted(found(raw_store)) == sorted(unsealed)
    raw_store.remove(raw_store.leftovers(age=WEEK))
    assert raw_store._storage.names("demo") == [PATHS.metadata, PATHS.payload(sealed.payload_name)]
    assert raw_store.read(KEY, RUN).payload()
    assert found(raw_store) == []


def test_what_is_young_is_left_alone(raw_store: RawStore) -> None:
    """A write may be at work on it, and may still be sealed."""
    payload = raw_store.write(KEY, RUN, numbered(3))
    assert found(raw_store) == []
    with pytest.raises(InvalidInput, match="younger than 2 days") as error:
        list(raw_store.leftovers(age=LEAST_AGE - timedelta(seconds=1)))
    assert error.value.remedy is not None
    raw_store.seal(KEY, RUN, payload, **SEAL)


@pytest.mark.usefixtures("a_week_later")
def test_a_payload_that_an_older_seal_means_without_naming_it_stays(raw_store: RawStore) -> None:
    """R-RAW-1: metadata that names none means payload.jsonl."""
    sealed = seal_rows(raw_store, numbered(3))
    fields = msgspec.json.decode(sealed.to_json())
    del fields["payload_name"]
    named = PATHS.payload(sealed.payload_name)
    put(raw_store, "payload.jsonl", raw_store.read(KEY, RUN).payload())
    put(raw_store, "metadata.json", msgspec.json.encode(fields))
    assert found(raw_store) == [named]


@pytest.mark.usefixtures("a_week_later")
def test_what_is_not_ours_or_not_certain_stays(raw_store: RawStore) -> None:
    put(raw_store, "payload-1.jsonl")
    put(raw_store, "metadata.json", b"not a seal")
    assert found(raw_store) == []
    put(raw_store, "notes.txt")
    obstore.put(raw_store._storage._store, "demo/payload.jsonl", b"{}")
    raw_store._storage.delete([PATHS.metadata])
    assert found(raw_store) == [f"{PATHS.directory}/payload-1.jsonl"]
    assert list(raw_store.leftovers(Selection(customers="2002"), age=WEEK)) == []
