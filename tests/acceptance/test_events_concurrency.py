"""R-EVT-2, R-EVT-4, R-EVT-8: many processes append at once, and followers read alongside."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.context import ForkServerContext

from sealbook.ledger import open_ledger
from sealbook.ledger.events import FeedEvent, SqlRunStore
from sealbook.model.events import RunEvent
from tests.support.ledger import PostgresqlServer

WRITERS = 16
FOLLOWERS = 3
EVENTS = 100_000
DISTINCT = 70_000  # the other 30 % say again what was, is being, or will be said by somebody
RUNS = [f"run-{number:02}" for number in range(20)]
PATIENCE = 120.0
"""Seconds without an event after which a follower gives up, for a writer must have failed."""
LAST_WORD = RunEvent.new("the end", "RunCompleted")


def numbered(number: int) -> RunEvent:
    """Return the event of a number."""
    return RunEvent.new(
        RUNS[number % len(RUNS)], "PartitionSealed", f"extract/{number}", event_data={"n": number}
    )


def shares() -> list[list[int]]:
    """Deal the numbers of the events out to the writers, duplicates among them.

    The first half of each share goes from run to run, each writer from another one: they append side by side.
    In the second half all runs are mixed: they meet.
    """
    dice = random.Random(6)
    numbers = [*range(DISTINCT), *(dice.randrange(DISTINCT) for _ in range(EVENTS - DISTINCT))]
    dice.shuffle(numbers)
    dealt = [numbers[writer::WRITERS] for writer in range(WRITERS)]
    half = EVENTS // WRITERS // 2
    return [
        sorted(share[:half], key=lambda number: (number + writer) % len(RUNS)) + share[half:]
        for writer, share in enumerate(dealt)
    ]


def write(url: str, numbers: list[int]) -> list[tuple[int, int, bool]]:
    """Append one by one and in batches of all sizes; return what the store said of each event."""
    dice = random.Random(numbers[0])
    said: list[tuple[int, int, bool]] = []
    with open_ledger(url) as ledger:
        while len(said) < len(numbers):
            batch = numbers[len(said) : len(said) + dice.choice([1, 2, 20, 100, 400])]
            results = ledger.run_store.append_events(map(numbered, batch))
            said += [(n, r.run_seq, r.persisted) for n, r in zip(batch, results, strict=True)]
    return said


def follow(url: str, *, to_the_end: bool) -> list[tuple[int, str, int | None]]:
    """Follow the feed until the last word; return the place, run and number of each event.

    A follower that takes page by page falls behind so many writers. One that always reads to the end has
    those events before it that are being committed just now.
    """
    seen: list[tuple[int, str, int | None]] = []
    with open_ledger(url) as ledger:
        feed = _to_the_end(ledger.run_store) if to_the_end else ledger.run_store.follow(patience=PATIENCE)
        for each in feed:
            if each.event.run_id == LAST_WORD.run_id:
                return seen
            seen.append((each.position, each.event.run_id, each.event.run_seq))
    raise AssertionError(f"the last word never came, after {len(seen)} events")


def _to_the_end(store: SqlRunStore) -> Iterator[FeedEvent]:
    after, found_at = 0, time.monotonic()
    while time.monotonic() < found_at + PATIENCE:
        for each in store.fetch_feed(after, EVENTS):
            yield each
            after, found_at = each.position, time.monotonic()


def test_many_writers_and_followers_at_once(
    postgresql: PostgresqlServer, processes: ForkServerContext
) -> None:
    """Numbers go up by one in each run, no key is stored twice, each caller got the stored number, and every
    follower saw every event once and in order."""
    url = postgresql.create_ledger()
    with ProcessPoolExecutor(WRITERS + FOLLOWERS, mp_context=processes) as pool:
        followers = [pool.submit(follow, url, to_the_end=number > 0) for number in range(FOLLOWERS)]
        writers: list[Future[list[tuple[int, int, bool]]]] = [
            pool.submit(write, url, share) for share in shares()
        ]
        said = [each for writer in writers for each in writer.result()]
        with open_ledger(url) as ledger:
            ledger.run_store.append_event(LAST_WORD)
        seen = [follower.result() for follower in followers]

    assert len(said) == EVENTS
    assert sum(persisted for _, _, persisted in said) == DISTINCT
    with open_ledger(url) as ledger:
        stored: dict[str, int | None] = {}
        for run_id in RUNS:
            log = ledger.run_store.fetch_events(run_id, 0, EVENTS)
            assert [event.run_seq for event in log] == list(range(1, len(log) + 1))
            stored |= {event.idempotency_key: event.run_seq for event in log}
    assert len(stored) == DISTINCT
    assert all(stored[numbered(number).idempotency_key] == run_seq for number, run_seq, _ in said)
    assert seen[0] == seen[1] == seen[2]
    assert [position for position, _, _ in seen[0]] == sorted({position for position, _, _ in seen[0]})
    for run_id in RUNS:
        numbers = [run_seq for _, run, run_seq in seen[0] if run == run_id]
        assert numbers == list(range(1, DISTINCT // len(RUNS) + 1))
