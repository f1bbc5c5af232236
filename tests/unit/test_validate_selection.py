"""What is judged by default, and what is when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import PartitionKey, RunId
from sealbook.raw import RawStore
from sealbook.validate import Plan, Selection
from sealbook.validate.plan import plan_accepted, plan_new
from tests.support.validation import (
    DAY,
    LATER_RUN,
    LATEST_RUN,
    RUN,
    accept,
    encoded,
    key,
    payload_file,
    reject,
    rows,
    seal,
)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with open_ledger("sqlite://") as opened:
        yield opened


@pytest.fixture
def raw(tmp_path: Path) -> RawStore:
    """Three runs of one partition, and one of others."""
    for run_id in (RUN, LATER_RUN, LATEST_RUN):
        seal(tmp_path, key("a"), rows(2), run_id)
    seal(tmp_path, key("b"), rows(3))
    seal(tmp_path, key("a", DAY + timedelta(days=1)), rows(1))
    return RawStore.open(tmp_path)


def chosen(plan: Plan) -> list[tuple[PartitionKey, RunId]]:
    return [(candidate.key, candidate.run_id) for candidate in plan.candidates]


def test_by_default_every_run_newer_than_the_newest_judged(raw: RawStore, ledger: Ledger) -> None:
    ledger.judge([reject(key("a"), LATER_RUN), accept(key("b"), RUN, 3)])

    assert chosen(plan_new(raw, ledger, Selection())) == [
        (key("a"), LATEST_RUN),
        (key("a", DAY + timedelta(days=1)), RUN),
    ]


def test_judging_an_old_run_again_does_not_bring_back_newer_ones(raw: RawStore, ledger: Ledger) -> None:
    ledger.judge([accept(key("a"), LATEST_RUN, 2), accept(key("a"), RUN, 2)])

    assert (key("a"), LATER_RUN) not in chosen(plan_new(raw, ledger, Selection()))


def test_a_named_run_is_judged_whatever_its_age_but_once(raw: RawStore, ledger: Ledger) -> None:
    ledger.judge([accept(key("a"), LATEST_RUN, 2)])
    by_name = Selection(run_id=RUN)
    assert chosen(plan_new(raw, ledger, by_name)) == [
        (key("a"), RUN),
        (key("a", DAY + timedelta(days=1)), RUN),
        (key("b"), RUN),
    ]

    ledger.judge([reject(key("a"), RUN)])
    assert (key("a"), RUN) not in chosen(plan_new(raw, ledger, by_name))


@pytest.mark.parametrize(
    ("selection", "customers"),
    [
        (Selection(keys=(key("b"), key("b"))), ["b"]),
        (Selection(keys=(key("nobody"),)), []),
        (Selection(customer_id="b", source="demo"), ["b"]),
        (Selection(since=DAY + timedelta(days=1)), ["a"]),
        (Selection(until=DAY - timedelta(days=1)), []),
        (Selection(query_name="other"), []),
        (Selection(keys=(key("a"),), run_id=LATER_RUN), ["a"]),
    ],
)
def test_keys_and_filters_narrow_what_is_judged(
    raw: RawStore, ledger: Ledger, selection: Selection, customers: list[str]
) -> None:
    assert [place.customer_id for place, _ in chosen(plan_new(raw, ledger, selection))] == customers


def test_sizes_come_from_the_listing(raw: RawStore, ledger: Ledger, tmp_path: Path) -> None:
    payload_file(tmp_path, key("b")).unlink()
    sizes = {
        candidate.key: candidate.payload_bytes for candidate in plan_new(raw, ledger, Selection()).candidates
    }

    assert sizes[key("a")] == len(encoded(rows(2)))
    assert sizes[key("b")] == 0


def test_what_is_accepted_is_judged_again_as_an_attempt_of_its_own(raw: RawStore, ledger: Ledger) -> None:
    """R-STATE-5: each time it is asked for has its own revalidation_id."""
    ledger.judge([accept(key("a"), LATER_RUN, 2), reject(key("b"), RUN)])

    first, second = (plan_accepted(raw, ledger, Selection()) for _ in range(2))

    assert chosen(first) == chosen(second) == [(key("a"), LATER_RUN)]
    [one], [other] = first.candidates, second.candidates
    assert one.schema_version == "1"
    assert one.revalidation_id
    assert one.revalidation_id != other.revalidation_id


@pytest.mark.parametrize("selection", [Selection(), Selection(keys=(key("a"), key("b")))])
def test_an_accepted_run_that_is_gone_is_told(raw: RawStore, ledger: Ledger, selection: Selection) -> None:
    """R-VER-4: it cannot be judged, and stays as it was."""
    gone = RunId("01JBZQ6T5N8W3Y2V7R4K9M0XCE")
    ledger.judge([accept(key("a"), gone, 2)])

    plan = plan_accepted(raw, ledger, selection)

    assert not plan.candidates
    assert [(each.key, each.run_id) for each in plan.gone] == [(key("a"), gone)]


def test_a_named_run_is_judged_again_only_where_it_is_current(raw: RawStore, ledger: Ledger) -> None:
    ledger.judge([accept(key("a"), LATER_RUN, 2), accept(key("b"), RUN, 3)])

    assert chosen(plan_accepted(raw, ledger, Selection(run_id=RUN))) == [(key("b"), RUN)]
