"""What open pages hear: which partitions changed, from where they left off, at the cost of one reader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing

import pytest

from sealbook.console.answers import Answer, Answers
from sealbook.console.live import Live
from sealbook.console.positions import Positions
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.position import Position
from tests.support.ledger import KEY, OTHER, accept, reject

QUICK = 0.01


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with open_ledger(ledger_url, migrate=True) as ledger:
        yield ledger


class Counted:
    """Reads positions, and counts how often."""

    def __init__(self, read: Callable[[], Position]) -> None:
        self._read = read
        self.times = 0

    def __call__(self) -> Position:
        self.times += 1
        return self._read()


def live_on(ledger: Ledger, read: Callable[[], Position] | None = None) -> Live:
    return Live(Positions(read or ledger.reader.position, QUICK), ledger.reader.run_store, QUICK)


async def moves(stream: AsyncIterator[bytes], number: int) -> list[dict[str, object]]:
    """Return the next so many events that something has moved."""
    found = []
    async for each in stream:
        lines = dict(line.split(": ", 1) for line in each.decode().strip().splitlines() if ": " in line)
        if lines.get("event") == "moved":
            found.append({"id": lines["id"], **json.loads(lines["data"])})
        if len(found) == number:
            break
    return found


async def first(stream: AsyncIterator[bytes]) -> None:
    """Wait until a stream has begun: it says where it is."""
    async for each in stream:
        if b"event: here" in each:
            return


def test_a_page_hears_which_partitions_have_changed(ledger: Ledger) -> None:
    async def listening() -> list[dict[str, object]]:
        live = live_on(ledger)
        async with aclosing(live.stream(None)) as stream:
            await first(stream)
            await asyncio.to_thread(ledger.judge, [accept(KEY), reject(OTHER)])
            return await moves(stream, 1)

    [heard] = asyncio.run(listening())
    assert heard["partitions"] == [str(KEY), str(OTHER)]
    assert heard["position"] == heard["id"] == str(ledger.reader.position())


def test_what_is_projected_later_is_said_of_the_same_partitions(ledger: Ledger) -> None:
    async def listening() -> list[dict[str, object]]:
        async with aclosing(live_on(ledger).stream(None)) as stream:
            await first(stream)
            await asyncio.to_thread(ledger.judge, [accept(KEY)])
            [heard] = await moves(stream, 1)
            await asyncio.to_thread(ledger.projector().catch_up)
            return [heard, *await moves(stream, 1)]

    appended, projected = asyncio.run(listening())
    assert projected["partitions"] == appended["partitions"] == [str(KEY)]
    assert not projected["all"]
    assert projected["position"] != appended["position"]


def test_a_page_resumes_from_the_position_that_it_heard_last(ledger: Ledger) -> None:
    ledger.judge([accept(KEY)])
    before = str(ledger.reader.position())
    ledger.judge([reject(OTHER)])

    async def resumed() -> list[dict[str, object]]:
        async with aclosing(live_on(ledger).stream(before)) as stream:
            return await moves(stream, 1)

    [heard] = asyncio.run(resumed())
    assert heard["partitions"] == [str(OTHER)]


@pytest.mark.parametrize("nonsense", ["", "x", "1.2", "-1.0.0.0.0", "9" * 400, "1.1.1.1.٣"])
def test_who_resumes_from_nonsense_begins_anew(ledger: Ledger, nonsense: str) -> None:
    async def begun() -> None:
        async with aclosing(live_on(ledger).stream(nonsense)) as stream:
            await first(stream)

    asyncio.run(begun())


def test_what_was_done_by_hand_may_concern_all(ledger: Ledger) -> None:
    async def listening() -> list[dict[str, object]]:
        async with aclosing(live_on(ledger).stream(None)) as stream:
            await first(stream)
            await asyncio.to_thread(ledger.pointers.create_cut, "month_end")
            return await moves(stream, 1)

    [heard] = asyncio.run(listening())
    assert (heard["all"], heard["partitions"]) == (True, [])


def test_fifty_pages_look_at_the_ledger_as_often_as_one(ledger: Ledger) -> None:
    async def listening(pages: int) -> tuple[int, int]:
        counted = Counted(ledger.reader.position)
        live = Live(Positions(counted, fresh_seconds=3_600), ledger.reader.run_store, QUICK)
        streams = [live.stream(None) for _ in range(pages)]
        await asyncio.gather(*map(first, streams))
        pollers = sum("_poll" in str(task.get_coro()) for task in asyncio.all_tasks())
        for stream in streams:
            await stream.aclose()
        return counted.times, pollers

    assert asyncio.run(listening(1)) == asyncio.run(listening(50)) == (1, 1)


def test_nobody_looks_when_nobody_listens(ledger: Ledger) -> None:
    async def left() -> set[str]:
        async with aclosing(live_on(ledger).stream(None)) as stream:
            await first(stream)
        await asyncio.sleep(0)
        return {str(task.get_coro()) for task in asyncio.all_tasks() if "_poll" in str(task.get_coro())}

    assert asyncio.run(left()) == set()


def test_the_end_of_the_console_ends_every_stream(ledger: Ledger) -> None:
    async def ended() -> list[bytes]:
        live = live_on(ledger)
        async with aclosing(live.stream(None)) as stream:
            await first(stream)
            live.end()
            return [each async for each in stream]

    assert asyncio.run(ended()) == []


def test_an_answer_is_gathered_once_for_a_position_however_many_ask() -> None:
    gathered: list[str] = []
    answers = Answers()

    def gather() -> Answer:
        gathered.append("once")
        return Answer([], "")

    async def asking() -> None:
        await asyncio.gather(*(asyncio.to_thread(answers.get, "/runs", "1", gather) for _ in range(50)))

    asyncio.run(asking())
    answers.get("/runs", "2", gather)
    assert len(gathered) == 2
