"""R-CON-1 to R-CON-3, R-WH-5: what readers see of published partitions, and hear of the others."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from sealbook.errors import InvalidInput
from sealbook.ledger import Ledger
from sealbook.model import PartitionKey
from sealbook.model.artifacts import FORMAT
from sealbook.model.publication import Coverage, Published
from sealbook.model.selection import Selection
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import SINCE, UNTIL, load, seen, staged

WHO: Any = {"actor": "ann", "reason": "to try it"}
THIRD = PartitionKey("google_ads", "9999999999", "campaign_daily", date(2026, 1, 2))


def behind(ledger: Ledger) -> dict[PartitionKey, bool]:
    """Return whether each readable partition is behind: as a bool on every database, though 1 == True."""
    found = {each.key: each.behind for each in ledger.pointers.published(Selection(queries=KEY.query_name))}
    assert {type(each) for each in found.values()} == {bool}
    return found


def test_a_read_gives_all_that_a_reader_needs(ledger: Ledger) -> None:
    """R-CON-1: one run of each partition, and where its rows lie."""
    ledger.judge([accept(KEY, 1)])
    assert seen(ledger) == {}
    load(ledger)
    record = staged(KEY, 1)
    [loaded] = ledger.pointers.load_records()
    assert list(ledger.pointers.published(Selection(queries=KEY.query_name))) == [
        Published(
            *(KEY.source, KEY.customer_id, KEY.query_name, KEY.logical_date, run_id(1), "1"),
            record_count=10,
            bytes=record.bytes,
            digest=record.digest,
            location=record.location,
            parts=1,
            format=FORMAT,
            copy=0,
            part_digests=None,
            files_run_id=None,
            loaded_at=loaded.loaded_at,
            behind=False,
        )
    ]


def test_the_published_run_stays_readable_until_the_next_is_loaded(ledger: Ledger) -> None:
    """R-CON-2: it is behind meanwhile, and strict leaves it out."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    ledger.judge([accept(KEY, 2)])
    assert seen(ledger) == {KEY: run_id(1), OTHER: run_id(1)}
    assert behind(ledger) == {KEY: True, OTHER: False}
    assert seen(ledger, strict=True) == {OTHER: run_id(1)}
    load(ledger)
    assert behind(ledger) == {KEY: False, OTHER: False}
    assert seen(ledger, strict=True) == {KEY: run_id(2), OTHER: run_id(1)}


def test_behind_a_run_of_another_schema_version(ledger: Ledger) -> None:
    """R-CON-2: whatever the authority is now, the published run stays until it is loaded."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    ledger.judge([accept(OTHER, 2, version="2")])
    assert seen(ledger) == {KEY: run_id(1), OTHER: run_id(1)}
    assert [(key, each) for key, each in behind(ledger).items()] == [(KEY, False), (OTHER, True)]
    assert all(isinstance(each, bool) for each in behind(ledger).values())  # on SQLite too


def test_a_demotion_takes_effect_without_a_loader(ledger: Ledger) -> None:
    """R-WH-5: with the verdict the partition is out of sight; another loader's hide only marks it."""
    ledger.judge([accept(KEY, 1), accept(OTHER, 1)])
    load(ledger)
    ledger.judge([reject(KEY, 1, again="r")])
    assert seen(ledger) == {OTHER: run_id(1)}
    ledger.pointers.hide()
    assert seen(ledger) == {OTHER: run_id(1)}


@pytest.mark.parametrize("requeued", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_demoted_run_never_comes_back_behind_another(ledger: Ledger, requeued: bool, hidden: bool) -> None:
    """R-WH-5: accepted or not, loader or not, rows of a rejected run stay out of sight."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([reject(KEY, 1, again="r")])
    if requeued:
        ledger.requeue([KEY], **WHO)
    if hidden:
        ledger.pointers.hide()
    ledger.judge([accept(KEY, 2)])
    assert seen(ledger) == {}
    load(ledger)
    assert seen(ledger) == {KEY: run_id(2)}


def test_a_run_that_is_behind_and_then_rejected_is_not_readable(ledger: Ledger) -> None:
    """No rows of a run that was last judged unfit, though the partition is a success by another."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([accept(KEY, 2)])
    ledger.judge([reject(KEY, 1, again="r1")])
    assert seen(ledger) == {}
    ledger.judge([accept(KEY, 1, again="r2")])
    assert seen(ledger) == {KEY: run_id(1)}


def test_filters_and_order(ledger: Ledger) -> None:
    """R-CON-1: a read names a query, and may name customers, days, source and runs; key order."""
    other_query = PartitionKey("google_ads", "1234567890", "ad_daily", date(2026, 1, 1))
    other_source = PartitionKey("demo", "1234567890", "campaign_daily", date(2026, 1, 1))
    ledger.judge([accept(key, 1) for key in (THIRD, OTHER, KEY, other_query, other_source)])
    ledger.judge([accept(THIRD, 2)])
    load(ledger)
    assert list(seen(ledger)) == [other_source, KEY, OTHER, THIRD]
    assert list(seen(ledger, "ad_daily")) == [other_query]
    assert list(seen(ledger, source="google_ads")) == [KEY, OTHER, THIRD]
    assert list(seen(ledger, source="google_ads", customers={"1234567890"})) == [KEY, OTHER]
    assert list(seen(ledger, customers=["9999999999", "0000000000"])) == [THIRD]
    assert list(seen(ledger, since=date(2026, 1, 2))) == [OTHER, THIRD]
    assert list(seen(ledger, until=date(2026, 1, 1))) == [other_source, KEY]
    assert list(seen(ledger, runs=[run_id(2)])) == [THIRD]
    assert list(seen(ledger, runs=[run_id(1), run_id(2)], since=date(2026, 1, 2))) == [OTHER, THIRD]
    assert list(seen(ledger, customers=[f"{number:010d}" for number in range(40_000)])) == []


def covered(ledger: Ledger, **asked: Any) -> dict[PartitionKey, tuple[str, str | None, str | None]]:
    """Return kind, run and reason of the partitions of two customers on two days."""
    customers = ["9999999999", "1234567890"]
    found: list[Coverage] = list(
        ledger.pointers.coverage(
            KEY.query_name, source=KEY.source, customers=customers, since=SINCE, until=UNTIL, **asked
        )
    )
    keys = [
        PartitionKey(KEY.source, customer, KEY.query_name, day)
        for customer in sorted(customers)
        for day in (SINCE, UNTIL)
    ]
    assert [each.key for each in found] == keys
    return {each.key: (each.kind, each.run_id, each.why) for each in found}


def test_coverage_says_of_every_partition_what_a_read_gets(ledger: Ledger) -> None:
    """R-CON-3: published, behind, failed, missing, each with its reason."""
    fourth = PartitionKey("google_ads", "9999999999", "campaign_daily", date(2026, 1, 1))
    ledger.judge([accept(KEY, 1), accept(OTHER, 1), reject(THIRD, 1, error="3 lines are no JSON")])
    load(ledger)
    ledger.judge([accept(OTHER, 2)])
    assert covered(ledger) == {
        KEY: ("published", run_id(1), None),
        OTHER: ("behind", run_id(1), f"run {run_id(2)} is accepted, and not loaded yet"),
        THIRD: ("failed", None, "3 lines are no JSON"),
        fourth: ("missing", None, "nobody has attempted it"),
    }


def test_coverage_says_why_a_partition_contributes_nothing(ledger: Ledger) -> None:
    """R-CON-3: pending, hidden and failed, and which comes after which."""

    def of_key() -> tuple[str, str | None, str | None]:
        return covered(ledger)[KEY]

    ledger.judge([accept(KEY, 1)])
    assert of_key() == ("pending", None, f"run {run_id(1)} is accepted, and not loaded yet")
    load(ledger)
    ledger.judge([reject(KEY, 1, again="r", error="spend is negative")])
    assert of_key() == ("failed", None, "spend is negative")
    ledger.pointers.hide()
    assert of_key() == ("failed", None, "spend is negative")
    ledger.requeue([KEY], **WHO)
    withdrawn = "what was published is withdrawn; "
    assert of_key() == ("hidden", None, f"{withdrawn}no run is accepted; the next attempt is awaited")
    ledger.judge([accept(KEY, 2)])
    assert of_key() == ("hidden", None, f"{withdrawn}run {run_id(2)} is accepted, and not loaded yet")
    load(ledger)
    assert of_key() == ("published", run_id(2), None)
    ledger.judge([reject(OTHER, 1)])
    ledger.requeue([OTHER], **WHO)
    assert covered(ledger)[OTHER] == ("pending", None, "no run is accepted; the next attempt is awaited")


def test_coverage_agrees_with_the_read(ledger: Ledger) -> None:
    """R-CON-3: a withdrawn run is hidden also before a loader has been by."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([reject(KEY, 1, again="r")])
    ledger.judge([accept(KEY, 2)])
    assert seen(ledger) == {}
    assert covered(ledger)[KEY][0] == "hidden"


def test_coverage_of_nothing_and_of_a_wrong_day(ledger: Ledger) -> None:
    """No customers is nothing; a span that ends before it begins is refused."""
    asked: Any = {"query_name": "clicks", "source": "demo"}
    assert list(ledger.pointers.coverage(**asked, customers=[], since=SINCE, until=UNTIL)) == []
    with pytest.raises(InvalidInput, match="ends before it begins"):
        ledger.pointers.coverage(**asked, customers=["a"], since=UNTIL, until=SINCE)
