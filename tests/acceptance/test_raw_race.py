"""R-RAW-2, R-RAW-4: processes race to seal the same partitions under the same run, on a folder and on S3."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing.synchronize import Barrier

from sealbook.errors import AlreadySealed
from sealbook.model import PartitionKey
from sealbook.raw import RawStore
from sealbook.raw.layout import METADATA
from tests.support.s3 import KEY, RUN, SEAL, numbered

PROCESSES = 6
ROUNDS = 30

_barrier: Barrier


def contested(round_number: int) -> PartitionKey:
    return PartitionKey(
        KEY.source, KEY.customer_id, KEY.query_name, KEY.logical_date + timedelta(days=round_number)
    )


def enter(barrier: Barrier) -> None:
    """Let a process of the pool know where the others wait."""
    global _barrier
    _barrier = barrier


def race(url: str, writer: int) -> list[int]:
    """Write and seal every partition at the same time as the others; return the rounds that were won."""
    store = RawStore.open(url)
    chance = random.Random(writer)
    won = []
    for number in range(ROUNDS):
        key = contested(number)
        _barrier.wait(timeout=60)
        # Every third round the writers drift apart, so that some begin when others seal.
        pause = chance.random() * 0.02 if number % 3 else 0.0
        try:
            time.sleep(pause)
            payload = store.write(key, RUN, numbered(writer + 1, writer))
            time.sleep(pause)
            store.seal(key, RUN, payload, **SEAL)
        except AlreadySealed:
            continue
        won.append(number)
    return won


def test_of_many_processes_one_seals_and_its_bytes_stay(raw_url: str) -> None:
    """R-RAW-2: exactly one wins, the others are told; R-RAW-4: the winner's bytes are what is read."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    with ProcessPoolExecutor(PROCESSES, context, enter, (barrier,)) as pool:
        wins = list(pool.map(race, [raw_url] * PROCESSES, range(PROCESSES)))

    assert Counter(number for won in wins for number in won) == dict.fromkeys(range(ROUNDS), 1)
    store = RawStore.open(raw_url)
    for writer, won in enumerate(wins):
        for number in won:
            partition = store.read(contested(number), RUN)
            assert list(partition.lines()) == [
                b'{"writer":%d,"row":%d}' % (writer, row) for row in range(writer + 1)
            ]
    # Whoever lost has taken its own payload away again.
    names = [path.rpartition("/")[2] for path in store._storage.names("demo")]
    assert names.count(METADATA) == ROUNDS
    assert len(names) == 2 * ROUNDS
