"""A mirror that runs while a load publishes and verdicts demote: each commit is one instant of the book."""

from __future__ import annotations

from contextlib import closing
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Semaphore
from pathlib import Path

import pytest

from tests.support.mirror_histories import ChangingBook, History
from tests.support.mirrors import KINDS, Lake
from tests.support.published import key
from tests.support.steps import Steps

ROUNDS = 8


def change_again_and_again(kind: str, url: str, root: Path, go: Semaphore, told: Pipe) -> None:
    """Change the book once for each run of the mirror that begins, and tell what it had."""
    with closing(Lake.open(kind, url, root)) as lake:
        changing = ChangingBook(lake)
        for _ in range(ROUNDS):
            go.acquire()
            changing.change()
        told.send(changing.history)


@pytest.mark.parametrize("kind", KINDS)
def test_each_commit_is_one_instant_while_the_book_changes(
    ledger_url: str, tmp_path: Path, processes: ForkServerContext, kind: str
) -> None:
    here, there = processes.Pipe()
    go = processes.Semaphore(0)
    writer = processes.Process(target=change_again_and_again, args=(kind, ledger_url, tmp_path, go, there))
    writer.start()
    there.close()
    with closing(Lake.open(kind, ledger_url, tmp_path)) as lake:
        done = []
        for _ in range(ROUNDS):
            go.release()
            done.append(lake.run())
        history: History = here.recv()
        writer.join()
        here.close()
        done.append(lake.run())
        assert lake.is_equal()
        assert history.check(lake) == [each.commit for each in done if each.commit is not None]
        assert [each.rebuilt for each in done[1:]] == [None] * ROUNDS
        assert lake.commits()[-1][1] == history.order[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_each_commit_is_one_instant_whenever_the_book_changes(
    ledger_url: str, tmp_path: Path, kind: str
) -> None:
    """Before and after all that a run asks of what is published; a change is of what the run is about."""
    with (
        closing(Lake.open(kind, ledger_url, tmp_path)) as lake,
        closing(Lake.open(kind, ledger_url, tmp_path)) as other,
    ):
        changing = ChangingBook(other, [key(0, day) for day in range(3)])
        changing.change()
        lake.run()
        step, reached = 0, True
        while reached:
            step += 1
            changing.change()
            with Steps(("sealbook.ledger.pointers.published",), step, changing.change) as steps:
                lake.run()
            reached = steps.taken >= step
        lake.run()
        assert lake.is_equal()
        assert len(changing.history.check(lake)) > step > 4
        assert lake.commits()[-1][1] == changing.history.order[-1]
