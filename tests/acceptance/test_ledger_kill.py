"""R-STATE-6: a process killed in the middle of a bulk judge leaves all of a call or none of it."""

from __future__ import annotations

import random
import time
from datetime import date
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerContext
from typing import Any

from sqlalchemy import event, func, select

from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.states.tables import attempt
from sealbook.model import PartitionKey, Status, Verdict
from tests.support.killing import started, wait_for_the_server
from tests.support.ledger import accept, reject, run_id

KEYS = [PartitionKey("demo", f"c{number}", "clicks", date(2026, 1, 1)) for number in range(150)]
CALLS = 24  # each judges one run of every key


def call(number: int) -> list[Verdict]:
    """Return the verdicts of a call; some runs are bad for some keys."""
    return [
        reject(key, number) if (index + number) % 5 == 0 else accept(key, number)
        for index, key in enumerate(KEYS)
    ]


def content(ledger: Ledger) -> list[tuple[Any, ...]]:
    """Return all that does not depend on the clock, and check that states and attempts agree."""
    states = list(ledger.states())
    for state in states[:: len(KEYS) // 10]:
        assert len(ledger.attempts(state.key)) == state.attempt_count
    return [
        (state.key, state.status, state.current_run_id, state.error_message, state.attempt_count)
        for state in states
    ]


def attempts_of_calls(ledger: Ledger) -> dict[str, int]:
    """Return how many attempts are recorded of each run."""
    query = select(attempt.c.run_id, func.count()).group_by(attempt.c.run_id)
    with ledger._database.read() as connection:
        return {run: number for run, number in connection.execute(query)}  # noqa: C416 - of rows, a dict of pairs


def stop_after(statement: int | None, url: str, pipe: Pipe) -> None:
    """Judge, and stop for ever after a statement; without one, when all is done but the commit."""
    with open_ledger(url) as ledger:
        executed: list[str] = []

        def stop(*_: object) -> None:
            pipe.send("inside")
            time.sleep(600)

        def after(_connection: object, _cursor: object, text: str, *_rest: object) -> None:
            executed.append(text)
            if len(executed) == statement:
                stop()

        event.listen(ledger._database.engine, "after_cursor_execute", after)
        if statement is None:
            event.listen(ledger._database.engine, "commit", stop)
        ledger.judge(call(2))


def judge_for_ever(url: str, pipe: Pipe) -> None:
    """Deliver the calls one after the other, again and again."""
    with open_ledger(url) as ledger:
        pipe.send("begun")
        while True:
            for number in range(1, CALLS + 1):
                ledger.judge(call(number))


def test_killed_at_each_point_of_a_call(ledger_url: str, processes: ForkServerContext) -> None:
    """Nothing of the call is there, whatever it had done already; delivering it again does it all."""
    executed: list[str] = []
    with open_ledger(ledger_url) as ledger:
        ledger.judge(call(1))
        event.listen(
            ledger._database.engine,
            "after_cursor_execute",
            lambda _connection, _cursor, statement, *_: executed.append(statement),
        )
        ledger.judge(call(3)[:1])
        statements = len(executed)
        before = content(ledger)
    for point in (*range(1, statements + 1), None):
        with started(processes, stop_after, point, ledger_url):
            pass
        wait_for_the_server(ledger_url)
        with open_ledger(ledger_url) as ledger:
            assert content(ledger) == before, point
            assert run_id(2) not in attempts_of_calls(ledger), point
    with open_ledger(ledger_url) as ledger:
        again = ledger.judge(call(2))
        assert [state.attempt_count for state in again] == [3] + [2] * (len(KEYS) - 1)
        assert ledger.judge(call(2)) == again


def test_killed_at_random(ledger_url: str, processes: ForkServerContext) -> None:
    """Each call is there wholly or not at all, and in the end all is as if nobody had been killed."""
    chance = random.Random(7)
    seen: list[int] = []
    for _ in range(6):
        with started(processes, judge_for_ever, ledger_url):
            time.sleep(chance.uniform(0.0, 0.25))
        wait_for_the_server(ledger_url)
        with open_ledger(ledger_url) as ledger:
            found = attempts_of_calls(ledger)
            assert set(found.values()) <= {len(KEYS)}
            assert sorted(found) == [run_id(number) for number in range(1, len(found) + 1)]
            assert {state.attempt_count for state in ledger.states()} <= {len(found)}
        seen.append(len(found))
    assert seen == sorted(seen), "what was committed is never lost"
    with open_ledger(ledger_url) as ledger:
        for number in range(1, CALLS + 1):
            ledger.judge(call(number))
        final = content(ledger)
    with open_ledger("sqlite://") as undisturbed:
        for number in range(1, CALLS + 1):
            undisturbed.judge(call(number))
        assert final == content(undisturbed)
    assert {row[1] for row in final} == {Status.SUCCESS}
    assert {row[4] for row in final} == {CALLS}
