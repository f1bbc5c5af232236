"""R-RAW-2, R-RAW-4 in every order of events: writers take turns step by step, and die at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Semaphore, Thread

import obstore
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from sealbook.errors import AlreadySealed
from sealbook.raw import Payload, RawMetadata
from sealbook.raw.layout import RunPaths
from sealbook.raw.lines import PayloadDigest
from sealbook.raw.sealing import Sealer, read_seal
from sealbook.storage import Storage, Writer
from tests.support.s3 import EXTRACTED_AT, KEY, RUN, numbered

PATHS = RunPaths(KEY, RUN)
WRITERS = 3
MOST_STEPS = 16
"""More than a writer takes from its first to its last."""


class Killed(BaseException):
    """The writer is dead: this and whatever it tries from now on has no effect."""


class TurnByTurn(Storage):
    """A storage whose every operation waits for its turn.

    `moves` makes it replace as a folder does, where the staged file goes away; else it copies, as S3 does.
    """

    def __init__(self, store: MemoryStore, turn: Callable[[], None], *, moves: bool) -> None:
        super().__init__(store)
        self._turn = turn
        self._moves = moves

    def names(self, directory: str) -> list[str]:
        self._turn()
        return super().names(directory)

    def size(self, path: str) -> int | None:
        self._turn()
        return super().size(path)

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

    def confirm(self, intent: str, path: str, data: bytes, /) -> bool:
        self._turn()
        named = super().get(intent) if self._moves else data
        return named is not None and super().create(path, named)

    def replace(self, staged: str, path: str) -> bool:
        self._turn()
        replaced = super().replace(staged, path)
        if replaced and self._moves:
            super().delete([staged])
        return replaced

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._turn()
            super().delete([path])


class Collected:
    def __init__(self, chunks: list[bytes]) -> None:
        self.write = chunks.append


class RacingWriter:
    """One writer, which writes and seals in a thread of its own, a step at a time."""

    def __init__(self, number: int, store: MemoryStore, *, moves: bool, dies_at: int | None) -> None:
        self.number = number
        self.outcome: str | None = None
        self._storage = TurnByTurn(store, self._wait, moves=moves)
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
        payload_bytes=payload.payload_bytes,
        payload_sha256=payload.payload_sha256,
        write_id=payload.write_id,
    )


def sealed_state(store: MemoryStore) -> tuple[bytes, bytes] | None:
    """Return seal and payload as any reader would find them; they must agree."""
    storage = Storage(store)
    seal = storage.get(PATHS.metadata)
    if seal is None:
        return None
    payload = storage.get(PATHS.payload)
    assert payload is not None
    metadata, digest = RawMetadata.from_json(seal, PATHS.metadata), PayloadDigest()
    digest.update(payload)
    assert (metadata.payload_sha256, metadata.payload_bytes, metadata.record_count) == (
        digest.sha256, digest.bytes, digest.records,
    )  # fmt: skip
    return seal, payload


@settings(max_examples=500, deadline=None)
@given(
    schedule=st.lists(st.tuples(st.integers(0, WRITERS - 1), st.integers(1, MOST_STEPS)), max_size=12),
    deaths=st.dictionaries(st.integers(0, WRITERS - 1), st.integers(0, 12)),
    moves=st.booleans(),
    garbage=st.booleans(),
)
def test_a_seal_never_disagrees_with_its_payload(
    schedule: list[tuple[int, int]], deaths: dict[int, int], moves: bool, garbage: bool
) -> None:
    """R-RAW-2, R-RAW-4: at every instant, and for good once sealed; whoever comes next finishes the work."""
    store = MemoryStore()
    if garbage:
        obstore.put(store, PATHS.payload, b"what an older crash left")
    writers = [
        RacingWriter(number, store, moves=moves, dies_at=deaths.get(number)) for number in range(WRITERS)
    ]
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
    assert Storage(store).names("demo") == [PATHS.metadata, PATHS.payload]


def test_the_intent_decides_even_if_its_author_never_returns() -> None:
    """R-RAW-2: a rival that finds an intent carries that out, and not its own."""
    store = MemoryStore()
    sealer = Sealer(Storage(store))
    first = sealer.write(PATHS, numbered(1, 1))
    second = sealer.write(PATHS, numbered(2, 2))
    Storage(store).create(PATHS.intent, metadata_of(first).to_json())
    try:
        sealer.seal(PATHS, second, metadata_of(second))
    except AlreadySealed:
        pass
    else:
        raise AssertionError("the rival sealed")
    assert read_seal(Storage(store), PATHS) == metadata_of(first)
    assert sealer.seal(PATHS, first, replace(metadata_of(first), schema_version="v9")) == metadata_of(first)
