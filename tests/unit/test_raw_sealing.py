"""R-RAW-2, R-RAW-4 in every order of events: writers take turns step by step, and die at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from threading import Semaphore, Thread

import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from sealbook.errors import AlreadySealed, Permanent
from sealbook.raw import Payload, RawMetadata, sealing
from sealbook.raw.layout import RunPaths
from sealbook.raw.leftovers import LEAST_AGE
from sealbook.raw.lines import PayloadDigest
from sealbook.raw.sealing import LONGEST_WRITE, Sealer
from sealbook.storage import Storage, Writer
from tests.support.s3 import EXTRACTED_AT, KEY, RUN, numbered

PATHS = RunPaths(KEY, RUN)
WRITERS = 3
MOST_STEPS = 6
"""More than a writer takes from its first to its last."""


class Killed(BaseException):
    """The writer is dead: this and whatever it tries from now on has no effect."""


class TurnByTurn(Storage):
    """A storage whose every operation waits for its turn."""

    def __init__(self, store: MemoryStore, turn: Callable[[], None]) -> None:
        super().__init__(store)
        self._turn = turn

    def get(self, path: str) -> bytes | None:
        self._turn()
        return super().get(path)

    @contextmanager
    def stage(self, path: str) -> Iterator[Writer]:
        self._turn()
        obstore.put(self._store, path, b"torn")
        chunks: list[bytes] = []
        yield Collected(chunks)
        self._turn()
        obstore.put(self._store, path, b"".join(chunks))

    def create(self, path: str, data: bytes) -> bool:
        self._turn()
        return super().create(path, data)

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._turn()
            super().delete([path])


class Collected:
    def __init__(self, chunks: list[bytes]) -> None:
        self.write = chunks.append


class RacingWriter:
    """One writer, which writes and seals in a thread of its own, a step at a time."""

    def __init__(self, number: int, store: MemoryStore, *, dies_at: int | None) -> None:
        self.number = number
        self.outcome: str | None = None
        self._storage = TurnByTurn(store, self._wait)
        self._dies_at = dies_at
        self._steps = 0
        self._go = Semaphore(0)
        self._idle = Semaphore(0)
        self._thread = Thread(target=self._run)
        self._thread.start()
        self._until_idle()

    def step(self) -> None:
        """Let it do one thing."""
        self._go.release()
        self._until_idle()

    def _until_idle(self) -> None:
        assert self._idle.acquire(timeout=30)
        if self.outcome is not None:
            self._thread.join()

    def _wait(self) -> None:
        if self._steps != self._dies_at:
            self._idle.release()
            assert self._go.acquire(timeout=30)
            self._steps += 1
        if self._steps == self._dies_at:
            raise Killed

    def _run(self) -> None:
        try:
            self.outcome = write_and_seal(Sealer(self._storage), self.number)
        except Killed:
            self.outcome = "killed"
        except Exception as error:  # noqa: BLE001  # judged by the test, in its own thread
            self.outcome = repr(error)
        finally:
            self._idle.release()


def write_and_seal(sealer: Sealer, number: int) -> str:
    """Do what an extraction does with one partition; each writer has another number of rows."""
    try:
        payload = sealer.write(PATHS, numbered(number + 1, number))
        sealer.seal(PATHS, payload, metadata_of(payload))
    except AlreadySealed:
        return "already sealed"
    return "sealed"


def metadata_of(payload: Payload) -> RawMetadata:
    return RawMetadata(
        source=KEY.source,
        customer_id=KEY.customer_id,
        query_name=KEY.query_name,
        logical_date=KEY.logical_date,
        run_id=RUN,
        extracted_at=EXTRACTED_AT,
        schema_version="v1",
        record_count=payload.record_count,
        api_version=None,
        query_hash="0",
        payload_name=payload.name,
        payload_bytes=payload.payload_bytes,
        payload_sha256=payload.payload_sha256,
    )


def sealed_state(store: MemoryStore) -> tuple[bytes, bytes] | None:
    """Return seal and payload as any reader would find them; they must agree."""
    storage = Storage(store)
    seal = storage.get(PATHS.metadata)
    if seal is None:
        return None
    metadata, digest = RawMetadata.from_json(seal, PATHS.metadata), PayloadDigest()
    payload = storage.get(PATHS.payload(metadata.payload_name))
    assert payload is not None
    digest.update(payload)
    assert (metadata.payload_sha256, metadata.payload_bytes, metadata.record_count) == (
        digest.sha256, digest.bytes, digest.records,
    )  # fmt: skip
    return seal, payload


@settings(max_examples=500, deadline=None)
@given(
    schedule=st.lists(st.tuples(st.integers(0, WRITERS - 1), st.integers(1, MOST_STEPS)), max_size=12),
    deaths=st.dictionaries(st.integers(0, WRITERS - 1), st.integers(0, 5)),
    garbage=st.booleans(),
)
def test_a_seal_never_disagrees_with_its_payload(
    schedule: list[tuple[int, int]], deaths: dict[int, int], garbage: bool
) -> None:
    """R-RAW-2, R-RAW-4: at every instant, and for good once sealed; whoever comes next finishes the work."""
    store = MemoryStore()
    if garbage:
        obstore.put(store, PATHS.payload(), b"what an older crash left")
    writers = [RacingWriter(number, store, dies_at=deaths.get(number)) for number in range(WRITERS)]
    standing = None
    rest = [(number, MOST_STEPS) for number in range(WRITERS)]
    for number, steps in [*schedule, *rest]:
        for _ in range(steps):
            if writers[number].outcome is None:
                writers[number].step()
                found = sealed_state(store)
                assert standing is None or found == standing
                standing = found

    outcomes = [writer.outcome for writer in writers]
    assert set(outcomes) <= {"sealed", "already sealed", "killed"}
    assert outcomes.count("sealed") == 1 or (outcomes.count("sealed") == 0 and "killed" in outcomes)
    if "sealed" in outcomes:
        assert standing is not None
        assert standing[1].count(b"\n") == outcomes.index("sealed") + 1

    last = write_and_seal(Sealer(Storage(store)), number=9)
    found = sealed_state(store)
    assert found is not None
    assert standing is None or (found == standing and last == "already sealed")
    assert (found[1].count(b"\n") == 10) == (last == "sealed")
    sealed = RawMetadata.from_json(found[0], PATHS.metadata)
    left = {*Storage(store).names("demo")} - {PATHS.metadata, PATHS.payload(sealed.payload_name)}
    assert len(left) <= outcomes.count("killed") + garbage


def test_a_payload_that_a_clean_up_may_have_removed_is_not_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RAW-2: what a clean-up takes for a leftover can never be sealed any more."""
    sealer = Sealer(Storage(MemoryStore()))
    payload = sealer.write(PATHS, numbered(1))
    later = payload.begun_at + LONGEST_WRITE + timedelta(seconds=1)
    monkeypatch.setattr(sealing, "utc_now", lambda: later)
    with pytest.raises(Permanent, match="too long ago") as error:
        sealer.seal(PATHS, payload, metadata_of(payload))
    assert error.value.remedy == "Write it again."
    monkeypatch.setattr(sealing, "utc_now", lambda: later - timedelta(seconds=2))
    assert sealer.seal(PATHS, payload, metadata_of(payload)) == metadata_of(payload)
    assert timedelta(days=1) + LONGEST_WRITE <= LEAST_AGE
