"""R-CTL-4: the stages work under claims, of all three kinds, and leave alone what is another's by then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

import sealbook
from sealbook.book import Book
from sealbook.extract.allowance import Allowance
from sealbook.extract.sources.demo import demo_configuration
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.model import PartitionKey, RunId, RunStatus, Status
from sealbook.model.claims import LOST, Claims
from sealbook.model.partition_events import Stage
from sealbook.model.selection import Selection
from sealbook.model.work import WorkKind
from sealbook.validate.results import NotJudged
from tests.support.schedule import open_work, work_in, work_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

TERMS = Terms(["demo"])


def key_of(customer: str, day: int = 1) -> PartitionKey:
    return PartitionKey("demo", customer, "campaign_daily", date(2026, 1, day))


@pytest.fixture
def book(tmp_path: Path, spark: SparkSession) -> Iterator[Book]:
    """A demo book of four customers; the rows of c3 are bad, and c4 cannot be fetched for a while."""
    del spark
    faults = [
        {"kind": "malformed", "customers": ["c3"]},
        {"kind": "transient", "customers": ["c4"]},
    ]
    source = {
        "queries": "demo.yaml",
        "customers": ["c1", "c2", "c3", "c4"],
        "options": {"rows": 5, "faults": faults},
    }
    settings = {"ledger": "sqlite:///book.db", "sources": {"demo": source}, "spark": {"master": "local[2]"}}
    (tmp_path / "demo.yaml").write_text(demo_configuration())
    (tmp_path / "sealbook.yaml").write_text(yaml.safe_dump(settings))
    with sealbook.open(tmp_path) as opened:
        yield opened


@dataclass(frozen=True)
class Done:
    """How many results each stage had, by how they ended, and why there was no verdict."""

    endings: Counter[tuple[Stage, str]]
    not_judged: list[str]
    requests: int


def claim(book: Book, holder: str = "ann", **lease: timedelta) -> Claims:
    return book.ledger.scheduler.claim(holder, TERMS, limit=99, **lease)


def work(book: Book, claims: Claims, run_id: RunId | None, allowance: Allowance | None = None) -> Done:
    endings: Counter[tuple[Stage, str]] = Counter()
    not_judged: list[str] = []
    requests = 0
    allowances = {} if allowance is None else {"demo": allowance}
    for stage, results in book.pipeline.work(claims, run_id, claims.fences, allowances):
        for result in results:
            if isinstance(result, NotJudged):
                not_judged.append(result.reason)
            else:
                ending = result.verdict.outcome if stage is Stage.VALIDATE else result.ending  # type: ignore[union-attr]
                endings[stage, ending.value] += 1
                requests += getattr(result, "requests", 0)
    return Done(endings, not_judged, requests)


def test_what_is_fetched_goes_all_the_way_as_one_run(book: Book) -> None:
    """What fails waits in the schedule, and nothing else is left to do; the run has ended."""
    now = book.ledger.reader.now()
    open_work(book.ledger, [work_of(key_of(each), ready_at=now) for each in ("c1", "c2", "c3", "c4")])
    run_id = book.ledger.open_run()
    done = work(book, claim(book), run_id, Allowance(once=True))
    assert done.endings == {
        (Stage.EXTRACT, "sealed"): 3,
        (Stage.EXTRACT, "failed"): 1,
        (Stage.VALIDATE, "accepted"): 2,
        (Stage.VALIDATE, "rejected"): 1,
        (Stage.LOAD, "loaded"): 2,
    }
    assert done.requests == 4, "each was asked for once, though one fails for a while"
    left = work_in(book.ledger)
    assert {key.customer_id: (row.work.tries, row.holder) for key, row in left.items()} == {
        "c3": (1, None),
        "c4": (1, None),
    }
    snapshot = book.ledger.run_store.project_snapshot(run_id)
    assert (snapshot.status, snapshot.inconsistent) == (RunStatus.COMPLETED, ())
    assert book.table("campaign_daily").num_rows == 10


def test_a_sealed_run_is_judged_and_an_accepted_one_is_loaded(book: Book) -> None:
    """Nothing is fetched for that; to judge a run again is another attempt, and one that is gone says so."""
    sealed = book.extract(Selection(keys=[key_of("c1"), key_of("c3")])).run_id
    accepted = book.extract(Selection(keys=[key_of("c2")])).run_id
    book.validate()
    now = book.ledger.reader.now()
    judge = {"kind": WorkKind.JUDGE, "ready_at": now}
    open_work(
        book.ledger,
        [
            work_of(key_of("c3"), run_id=sealed, **judge),  # type: ignore[arg-type]
            work_of(key_of("c4"), run_id=accepted, **judge),  # type: ignore[arg-type]
            work_of(key_of("c2"), kind=WorkKind.LOAD, run_id=accepted, ready_at=now),
        ],
    )
    done = work(book, claim(book), None)
    assert done.endings == {(Stage.VALIDATE, "rejected"): 1, (Stage.LOAD, "loaded"): 1}
    assert done.not_judged == ["it is not sealed any more"]
    assert book.ledger.state(key_of("c3")).attempt_count == 2
    assert [each.key for each in book.ledger.pointers.open_pointers()] == [key_of("c2")]


def test_what_was_taken_over_is_left_alone(book: Book) -> None:
    """Its seal is told by nobody, its verdict is not given, and what is published is that of the other."""
    now = book.ledger.reader.now()
    open_work(book.ledger, [work_of(key_of(each), ready_at=now) for each in ("c1", "c2")])
    old = claim(book, lease=timedelta(microseconds=1))
    new = claim(book, "bob")
    assert {*new.fences} == {*old.fences}
    kept = Claims("ann", new.expires_at, tuple(each for each in new if each.key == key_of("c2")))
    lost = Claims("ann", old.expires_at, tuple(each for each in old if each.key == key_of("c1")))
    both = Claims("ann", new.expires_at, (*kept, *lost))
    done = work(book, both, book.ledger.open_run())
    assert done.endings == {
        (Stage.EXTRACT, "sealed"): 1,
        (Stage.EXTRACT, "lost"): 1,
        (Stage.VALIDATE, "accepted"): 1,
        (Stage.LOAD, "loaded"): 1,
    }
    assert book.ledger.state(key_of("c1")).status is Status.PENDING
    row = work_in(book.ledger)[key_of("c1")]
    assert (row.holder, row.fence) == ("bob", new.fences[key_of("c1")])


def test_what_is_lost_before_its_verdict_is_not_judged(book: Book) -> None:
    sealed = book.extract(Selection(keys=[key_of("c1")])).run_id
    now = book.ledger.reader.now()
    open_work(book.ledger, [work_of(key_of("c1"), kind=WorkKind.JUDGE, run_id=sealed, ready_at=now)])
    old = claim(book, lease=timedelta(microseconds=1))
    claim(book, "bob")
    assert work(book, old, None).not_judged == [LOST]
    assert book.ledger.state(key_of("c1")).attempt_count == 0


def test_nobody_is_asked_once_the_lease_has_run_out(book: Book) -> None:
    open_work(book.ledger, [work_of(key_of("c1"), ready_at=book.ledger.reader.now())])
    done = work(book, claim(book), book.ledger.open_run(), Allowance(until=0.0))
    assert (done.endings, done.requests) == ({(Stage.EXTRACT, "left"): 1}, 0)
    assert work_in(book.ledger)[key_of("c1")].work.tries == 0
