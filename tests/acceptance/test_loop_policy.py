"""What a loop does by policy: R-CTL-3, R-CTL-4, R-CTL-7, R-CTL-10, on each database, without Spark."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import select

from sealbook.book import Book
from sealbook.control.round import ACTOR, DUE_AGAIN, OTHER_CONTRACT, OTHER_SETUP
from sealbook.extract.allowance import Allowance
from sealbook.ledger import Ledger
from sealbook.ledger.schedule.tables import reservation
from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionKey, RunId, RunStatus, Status
from sealbook.model.claims import Claim, Fences
from sealbook.model.retry import Stop
from sealbook.model.work import Lane, Work, WorkKind
from sealbook.pipeline import StageBatch
from sealbook.stopping import Stopped
from tests.support.loops import light_loop, light_stages, open_light, write_loop_book
from tests.support.schedule import open_work, work_in, work_of

LEASE = timedelta(seconds=60)


def change(file: Path, path: str, value: Any) -> None:
    """Change a field of a file of a book."""
    document = yaml.safe_load(file.read_text())
    place = document
    *steps, last = path.split(".")
    for step in steps:
        place = place[step]
    place[last] = value
    file.write_text(yaml.safe_dump(document))


def overrides(ledger: Ledger) -> list[tuple[str, str, str, int]]:
    with ledger._database.read() as connection:
        rows = connection.execute(select(override_log).order_by(override_log.c.id)).all()
    return [(row.action, row.actor, row.reason, len(row.keys)) for row in rows]


def rows_of(book: Book, customer: str) -> list[Work]:
    return [row.work for row in work_in(book.ledger).values() if row.key.customer_id == customer]


def test_another_contract_has_what_was_rejected_judged_again(ledger_url: str, tmp_path: Path) -> None:
    """R-CTL-3: from failed to pending as an override; the sealed run is judged, and nothing is fetched."""
    file = write_loop_book(tmp_path, ledger_url, customers=1, days=3)
    with open_light(file, LEASE) as book:
        light_loop(book).tick(partitions=3)
        assert {work.cause for work in rows_of(book, "c0")} == {"rejected"}
        assert light_loop(book).open_round().reopened == 0, "the contract is as it was"
        attempts = {key: book.ledger.state(key).attempt_count for key in work_in(book.ledger)}
    contract = "queries.campaign_daily.contracts.1.allow_empty"
    change(tmp_path / "demo.yaml", contract, True)
    with open_light(file, LEASE) as book:
        assert light_loop(book).open_round().reopened == 3
        assert overrides(book.ledger) == [("requeue", ACTOR, OTHER_CONTRACT, 3)]
        assert {state.status for state in map(book.ledger.state, attempts)} == {Status.PENDING}
        assert {work.kind for work in rows_of(book, "c0")} == {WorkKind.JUDGE}
        ticked = light_loop(book).tick(partitions=3)
        assert (ticked.tally.count("rejected"), ticked.tally.requests.total()) == (3, 0)
        assert light_loop(book).open_round().reopened == 0, "and not again by the same contract"
        assert all(book.ledger.state(key).attempt_count == count + 1 for key, count in attempts.items())


def test_what_is_parked_waits_for_other_settings(ledger_url: str, tmp_path: Path) -> None:
    """A disabled account is left alone, round after round, until what is configured for it is another."""
    file = write_loop_book(tmp_path, ledger_url, customers=2, days=2)
    with open_light(file, LEASE) as book:
        light_loop(book).tick(partitions=4)
        assert {work.stop for work in rows_of(book, "c1")} == {Stop.PERMANENT}
        assert [light_loop(book).open_round().reopened for _ in range(3)] == [0, 0, 0]
    change(file, "sources.demo.options", {"rows": 2})
    with open_light(file, LEASE) as book:
        assert light_loop(book).open_round().reopened == 2
        assert overrides(book.ledger) == [("clear", ACTOR, OTHER_SETUP, 2)]
        light_loop(book).tick()
        assert rows_of(book, "c1") == []


def test_what_is_parked_waits_for_another_text_of_its_version(ledger_url: str, tmp_path: Path) -> None:
    """A bad query may be the text of a version alone, which holds for its days (R-VER-7)."""
    file = write_loop_book(tmp_path, ledger_url, customers=2, days=2)
    with open_light(file, LEASE) as book:
        light_loop(book).tick(partitions=4)
        assert [light_loop(book).open_round().reopened for _ in range(2)] == [0, 0]
    change(tmp_path / "demo.yaml", "queries.campaign_daily.contracts.1.text", "SELECT 1")
    with open_light(file, LEASE) as book:
        assert light_loop(book).open_round().reopened == 2


def test_the_run_of_a_lost_worker_is_told_before_another_run_takes_its_place(
    ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes over may be lost in turn: nobody would know of the first run any more."""
    file = write_loop_book(tmp_path, ledger_url, customers=1, days=1)
    with open_light(file, LEASE) as book:
        lost, next_one = light_loop(book), light_loop(book)
        lost.open_round()
        run_id = book.ledger.runs.open_run_under(lost.claim().fences)
        open_work(book.ledger, [row.lapsed() for row in work_in(book.ledger).values()])
        monkeypatch.setattr(book.ledger.runs, "open_run_under", raise_stopped)
        with pytest.raises(Stopped):
            next_one.work(next_one.claim())
        assert book.ledger.run_store.project_snapshot(run_id).status is RunStatus.FAILED


def raise_stopped(_: Fences) -> RunId:
    raise Stopped


def test_a_refresh_that_was_given_up_is_tried_again_at_the_next_due_point(
    ledger_url: str, tmp_path: Path
) -> None:
    file = write_loop_book(tmp_path, ledger_url, customers=3, days=1)
    change(file, "sources.demo.freshness", {"due": ["0h", "1d"]})
    with open_light(file, LEASE) as book:
        key = PartitionKey("demo", "c2", "campaign_daily", date(2026, 1, 1))
        given_up = replace(
            work_of(key, Lane.REFRESH, ready_at=book.ledger.reader.now()),
            stopped_at=book.ledger.reader.now().replace(year=2026, month=1, day=2, hour=12),
        )
        stopped = replace(given_up.work, stop=Stop.MAX_ATTEMPTS, tries=8)
        open_work(book.ledger, [replace(given_up, work=stopped)])
        assert light_loop(book).open_round().reopened == 1, "its day was due again at the end of 2 January"
        assert overrides(book.ledger) == [("clear", ACTOR, DUE_AGAIN, 1)]
        assert (rows_of(book, "c2")[0].stop, rows_of(book, "c2")[0].tries) == (None, 0)


def test_a_budget_is_never_overspent(ledger_url: str, tmp_path: Path) -> None:
    """R-CTL-10: each is asked for once, though some fail at first; then what is ready waits, and says so."""
    sources = {"demo": {"requests_per_day": 7}}
    file = write_loop_book(tmp_path, ledger_url, customers=6, days=5, sources=sources)
    change(file, "sources.demo.options.faults", [{"kind": "transient"}])
    with open_light(file, LEASE) as book:
        ticked = light_loop(book, 4).tick()
        assert (ticked.ended, ticked.tally.requests.total()) == ("gated", 7)
        assert sum(book.ledger.reader.schedule.spent().values()) == 7
        assert ticked.tally.count("failed") == 7
        assert light_loop(book).tick().tally.requests.total() == 0


def test_loops_share_the_limits_of_a_source(ledger_url: str, tmp_path: Path) -> None:
    """R-CTL-10: who comes second gets nothing until the first has come down, and half from then on."""
    file = write_loop_book(tmp_path, ledger_url, customers=3, days=5)
    change(file, "sources.demo.limits", {"requests_per_second": 1000})
    with open_light(file, LEASE) as book:
        first, second = light_loop(book, 2), light_loop(book, 2)
        first.holder, second.holder = "first", "second"
        first.open_round()
        claims = first.claim()
        assert len(claims) == 2
        assert len(second.claim()) == 0, "the first sends as much as may be sent"
        first.work(claims)
        assert len(first.claim()) == 2
        assert first._parts == {"demo": 0.5}
        assert len(second.claim()) == 2
        assert second._parts == {"demo": 0.5}


def test_what_is_not_configured_any_more_is_parked(ledger_url: str, tmp_path: Path) -> None:
    """It says why, and the rest of its batch goes on."""
    file = write_loop_book(tmp_path, ledger_url, customers=3, days=1)
    with open_light(file, LEASE) as book:
        now = book.ledger.reader.now()
        gone = [
            PartitionKey("demo", "c9", "campaign_daily", date(2026, 1, 1)),
            PartitionKey("demo", "c2", "no_such", date(2026, 1, 1)),
            PartitionKey("demo", "c2", "campaign_daily", date(2020, 1, 1)),
        ]
        open_work(book.ledger, [work_of(key, ready_at=now) for key in gone])
        ticked = light_loop(book).tick(partitions=6)
        assert ticked.tally.count("published") == 1
        rows = work_in(book.ledger)
        assert {(rows[key].work.stop, rows[key].work.error) for key in gone} == {
            (Stop.PERMANENT, "no customer c9 is configured"),
            (Stop.PERMANENT, "no query no_such is configured"),
            (Stop.PERMANENT, "the account has no such day"),
        }


def test_a_run_that_is_not_sealed_any_more_is_fetched_anew(ledger_url: str, tmp_path: Path) -> None:
    file = write_loop_book(tmp_path, ledger_url, customers=3, days=1)
    with open_light(file, LEASE) as book:
        key = PartitionKey("demo", "c2", "campaign_daily", date(2026, 1, 1))
        row = work_of(
            key, kind=WorkKind.JUDGE, run_id=book.ledger.open_run(), ready_at=book.ledger.reader.now()
        )
        open_work(book.ledger, [row])
        light_loop(book).tick(partitions=1)
        found = work_in(book.ledger)[key].work
        assert (found.kind, found.tries, found.error) == (WorkKind.FETCH, 1, "it is not sealed any more")


class BreaksOff:
    """Stages that are stopped in the middle of the first fetches."""

    def __init__(self, book: Book, error: BaseException) -> None:
        self._stages = light_stages(book)
        self._error = error

    def work(
        self,
        claims: Iterable[Claim],
        run_id: RunId | None,
        under: Fences,
        allowances: Mapping[str, Allowance],
    ) -> Generator[StageBatch, None, None]:
        yield next(self._stages.work(claims, run_id, under, allowances))
        raise self._error


@pytest.mark.parametrize("error", [Stopped(), RuntimeError("no memory")])
def test_a_stop_lets_go_of_everything(ledger_url: str, tmp_path: Path, error: BaseException) -> None:
    """What was claimed can be claimed at once, what was reserved is settled, and the run has ended."""
    sources = {"demo": {"requests_per_day": 100}}
    file = write_loop_book(tmp_path, ledger_url, customers=5, days=6, sources=sources)
    with open_light(file, LEASE) as book:
        loop = book.loop(stages=BreaksOff(book, error))
        with pytest.raises(type(error)):
            loop.tick()
        rows = work_in(book.ledger).values()
        assert {(row.holder, row.claim_run_id) for row in rows} == {(None, None)}
        spent = sum(book.ledger.reader.schedule.spent().values())
        assert spent == 30, "what nobody knows of counts as spent"
        with book.ledger._database.read() as connection:
            assert connection.execute(select(reservation)).all() == []
        book.catch_up()
        [run] = book.ledger.run_store.list_runs()
        assert run.snapshot.status in (RunStatus.RUNNING, RunStatus.FAILED)
        light_loop(book).tick()
        book.ledger.runs.end_unended()
        book.catch_up()
        assert all(run.snapshot.status.final for run in book.ledger.run_store.list_runs())
