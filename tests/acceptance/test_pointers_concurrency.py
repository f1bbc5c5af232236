"""R-CON-1, R-WH-3, R-WH-5: readers in a loop while other processes judge, load, demote, roll back and cut."""

from __future__ import annotations

from multiprocessing.context import ForkServerContext

from tests.support.traffic import (
    PointerParty,
    begin,
    check_settled,
    cut_on,
    judge_rounds,
    load_on,
    read_on,
    roll_back_on,
    traffic,
)


def test_readers_among_writers(ledger_url: str, processes: ForkServerContext) -> None:
    """Never two runs of a partition, never an unfit one, never a mixed instant; and no deadlock."""
    actors = [judge_rounds, load_on, load_on, roll_back_on, read_on, read_on, cut_on]
    party = PointerParty(ledger_url)
    with party.ledger:
        begin(party)
    with traffic(processes, ledger_url, PointerParty, actors) as (_, said):
        pass
    assert said["read_on"] > 2, "the readers saw no replacement"
    assert said["roll_back_on"] > 0
    assert said["load_on"] > 1
    assert said["cut_on"] > 0
    with party.ledger:
        check_settled(party)
