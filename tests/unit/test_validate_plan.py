"""What is judged by default, and what is when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import PartitionKey, RunId
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.raw.layout import METADATA, RunPaths
from sealbook.storage import Entry
from sealbook.storage.folder import Folder
from sealbook.validate.plan import ValidatePlan, plan_accepted, plan_new, plan_rejected, plan_sealed
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


def chosen(plan: ValidatePlan) -> list[tuple[PartitionKey, RunId]]:
    return [(candidate.key, candidate.run_id) for candidate in plan.candidates]


NEXT_DAY = DAY + timedelta(days=1)


def test_by_default_every_run_that_was_not_judged(raw: RawStore, ledger: Ledger) -> None:
    """R-VER-5: a rejected run, however new, passes nothing over that is older and was not judged."""
    ledger.judge([reject(key("a"), LATER_RUN), accept(key("b"), RUN, 3)])

    plan = plan_new(raw, ledger.reader, Selection())

    assert chosen(plan) == [(key("a"), RUN), (key("a"), LATEST_RUN), (key("a", NEXT_DAY), RUN)]
    assert plan.superseded == 0


def test_a_newer_run_that_was_rejected_blinds_nothing(raw: RawStore, ledger: Ledger) -> None:
    """R-VER-5: however new it was, what comes after it is judged all the same."""
    ledger.judge([reject(key("b"), LATEST_RUN)])

    assert (key("b"), RUN) in chosen(plan_new(raw, ledger.reader, Selection()))


def test_a_run_from_the_future_is_set_aside_and_said(raw: RawStore, ledger: Ledger, tmp_path: Path) -> None:
    """R-RUN-2: it is not judged, whichever way it is asked for, and keeps nothing else from being judged."""
    ahead = RunId(str(ULID.from_datetime(datetime.now(UTC) + timedelta(days=300))))
    for each in (key("a"), key("c")):
        seal(tmp_path, each, rows(2), ahead)

    plan = plan_new(raw, ledger.reader, Selection())
    assert [(each.key, each.run_id) for each in plan.gone] == [(key("a"), ahead), (key("c"), ahead)]
    assert all("is from the future" in each.reason for each in plan.gone)
    assert len(chosen(plan)) == 5

    ledger.judge([reject(key("a"), RUN), reject(key("c"), RUN)])
    plan = plan_rejected(raw, ledger.reader, Selection())
    assert chosen(plan) == [(key("a"), LATEST_RUN)]
    assert [each.key for each in plan.gone] == [key("a"), key("c")]


def test_an_authority_from_the_future_supersedes_nothing(raw: RawStore, tmp_path: Path) -> None:
    """R-RUN-2: a book may have one from before they were refused; it is not judged again either."""
    ahead = RunId(str(ULID.from_datetime(datetime.now(UTC) + timedelta(days=300))))
    seal(tmp_path, key("b"), rows(3), ahead)
    url = f"sqlite:///{tmp_path / 'book.db'}"
    with open_ledger(url, clock=lambda: datetime.now(UTC) + timedelta(days=301)) as earlier:
        earlier.judge([accept(key("b"), ahead, 3)])
    with open_ledger(url) as ledger:
        plan = plan_new(raw, ledger.reader, Selection(keys=[key("b")]))
        assert (chosen(plan), plan.superseded) == ([(key("b"), RUN)], 0)
        again = plan_accepted(raw, ledger.reader, Selection(keys=[key("b")]))
        assert (chosen(again), [each.run_id for each in again.gone]) == ([], [ahead])


def test_after_a_rollback_a_run_is_judged_again_that_can_take_authority(
    raw: RawStore, ledger: Ledger
) -> None:
    """R-STATE-9, R-VER-6: judging the run rolled back from again would change nothing, time after time."""
    ledger.judge([accept(key("a"), run, 2) for run in (RUN, LATER_RUN, LATEST_RUN)])
    ledger.rollback(key("a"), LATER_RUN, actor="ann", reason="the latest is worse")
    ledger.judge([reject(key("a"), LATER_RUN, "r")])
    assert chosen(plan_rejected(raw, ledger.reader, Selection(keys=[key("a")]))) == [(key("a"), LATER_RUN)]
    ledger.requeue([key("a")], actor="ann", reason="again")
    assert chosen(plan_new(raw, ledger.reader, Selection(keys=[key("a")]))) == [(key("a"), LATER_RUN)]


def test_what_a_newer_accepted_run_supersedes_is_passed_over_and_counted(
    raw: RawStore, ledger: Ledger
) -> None:
    """R-VER-5: it could not take authority."""
    ledger.judge([accept(key("a"), LATEST_RUN, 2), accept(key("a"), RUN, 2)])

    plan = plan_new(raw, ledger.reader, Selection())

    assert chosen(plan) == [(key("a", NEXT_DAY), RUN), (key("b"), RUN)]
    assert plan.superseded == 1  # LATER_RUN


def test_a_demoted_partition_has_nothing_superseded(raw: RawStore, ledger: Ledger) -> None:
    """R-VER-5: it is not success any more, so an older run may be its next good one."""
    ledger.judge([accept(key("a"), LATEST_RUN, 2)])
    ledger.judge([reject(key("a"), LATEST_RUN, "r")])

    plan = plan_new(raw, ledger.reader, Selection(keys=[key("a")]))

    assert chosen(plan) == [(key("a"), RUN), (key("a"), LATER_RUN)]


def test_a_requeued_partition_is_judged_again_before_it_is_fetched_again(
    raw: RawStore, ledger: Ledger
) -> None:
    """R-VER-6: its newest sealed run, as an attempt of its own, and only once."""
    ledger.judge([reject(key("b"), RUN)])
    of_b = Selection(keys=[key("b")])
    assert chosen(plan_new(raw, ledger.reader, of_b)) == []

    ledger.requeue([key("b")], actor="ann", reason="the contract was wrong")
    [again] = plan_new(raw, ledger.reader, of_b).candidates
    assert (again.key, again.run_id) == (key("b"), RUN)
    assert again.revalidation_id

    ledger.judge([reject(key("b"), RUN, again.revalidation_id)])
    assert chosen(plan_new(raw, ledger.reader, of_b)) == []


def test_rejected_partitions_can_be_judged_again_by_their_newest_run(raw: RawStore, ledger: Ledger) -> None:
    """R-VER-6: under today's contract, without fetching; accepted ones are left alone."""
    ledger.judge([reject(key("a"), RUN), reject(key("a"), LATEST_RUN), accept(key("b"), RUN, 3)])

    plan = plan_rejected(raw, ledger.reader, Selection())

    [again] = plan.candidates
    assert (again.key, again.run_id) == (key("a"), LATEST_RUN)
    assert again.revalidation_id


def test_what_was_just_sealed_is_planned_without_a_listing(raw: RawStore, ledger: Ledger) -> None:
    """By what the seals say; what the run had judged before it was stopped is left out."""
    ledger.judge([accept(key("b"), RUN, 3), accept(key("a"), RUN, 2)])
    seals = [raw.metadata(key("a"), LATER_RUN), raw.metadata(key("b"), RUN)]

    [candidate] = plan_sealed(ledger.reader, seals).candidates

    assert (candidate.key, candidate.run_id) == (key("a"), LATER_RUN)
    assert (candidate.payload_bytes, candidate.schema_version) == (len(encoded(rows(2))), "1")
    assert candidate.current_run_id == RUN
    assert plan_sealed(ledger.reader, []).candidates == ()


def test_a_named_run_is_judged_whatever_its_age_but_once(raw: RawStore, ledger: Ledger) -> None:
    ledger.judge([accept(key("a"), LATEST_RUN, 2)])
    by_name = Selection(runs=RUN)
    assert chosen(plan_new(raw, ledger.reader, by_name)) == [
        (key("a"), RUN),
        (key("a", DAY + timedelta(days=1)), RUN),
        (key("b"), RUN),
    ]

    ledger.judge([reject(key("a"), RUN)])
    assert (key("a"), RUN) not in chosen(plan_new(raw, ledger.reader, by_name))


@pytest.mark.parametrize(
    ("selection", "customers"),
    [
        (Selection(keys=(key("b"), key("b"))), ["b"]),
        (Selection(keys=(key("nobody"),)), []),
        (Selection(customers="b", source="demo"), ["b"]),
        (Selection(since=DAY + timedelta(days=1)), ["a"]),
        (Selection(until=DAY - timedelta(days=1)), []),
        (Selection(queries="other"), []),
        (Selection(keys=(key("a"),), runs=LATER_RUN), ["a"]),
    ],
)
def test_keys_and_filters_narrow_what_is_judged(
    raw: RawStore, ledger: Ledger, selection: Selection, customers: list[str]
) -> None:
    assert [place.customer_id for place, _ in chosen(plan_new(raw, ledger.reader, selection))] == customers


def test_sizes_come_from_the_listing(raw: RawStore, ledger: Ledger, tmp_path: Path) -> None:
    payload_file(tmp_path, key("b")).unlink()
    sizes = {
        candidate.key: candidate.payload_bytes
        for candidate in plan_new(raw, ledger.reader, Selection()).candidates
    }

    assert sizes[key("a")] == len(encoded(rows(2)))
    assert sizes[key("b")] == 0


def test_what_is_accepted_is_judged_again_as_an_attempt_of_its_own(raw: RawStore, ledger: Ledger) -> None:
    """R-STATE-5: each time it is asked for has its own revalidation_id."""
    ledger.judge([accept(key("a"), LATER_RUN, 2), reject(key("b"), RUN)])

    first, second = (plan_accepted(raw, ledger.reader, Selection()) for _ in range(2))

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

    plan = plan_accepted(raw, ledger.reader, selection)

    assert not plan.candidates
    assert [(each.key, each.run_id) for each in plan.gone] == [(key("a"), gone)]


def test_a_named_run_is_judged_again_only_where_it_is_current(raw: RawStore, ledger: Ledger) -> None:
    ledger.judge([accept(key("a"), LATER_RUN, 2), accept(key("b"), RUN, 3)])

    assert chosen(plan_accepted(raw, ledger.reader, Selection(runs=RUN))) == [(key("b"), RUN)]


def test_what_was_judged_is_not_looked_into(
    raw: RawStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a book of a million partitions, a look into each would be most of the work."""
    ledger.judge(
        [accept(key("a"), LATEST_RUN, 2), accept(key("b"), RUN, 3), accept(key("a", NEXT_DAY), RUN, 1)]
    )
    looked: list[str] = []
    files = Folder._files

    def look(folder: Folder, path: str) -> dict[str, Entry]:
        looked.append(path)
        return files(folder, path)

    monkeypatch.setattr(Folder, "_files", look)
    plan = plan_new(raw, ledger.reader, Selection())
    assert (chosen(plan), plan.superseded) == ([], 2)
    assert [path.rpartition("=")[2] for path in looked] == [RUN, LATER_RUN]


@given(
    present=st.sets(st.tuples(st.sampled_from("aAb0_"), st.integers(0, 3), st.integers(0, 3))),
    judged=st.sets(st.tuples(st.sampled_from("aAb0_"), st.integers(0, 3), st.integers(0, 3))),
)
def test_what_is_new_is_what_is_sealed_and_not_judged(
    present: set[tuple[str, int, int]], judged: set[tuple[str, int, int]]
) -> None:
    """R-VER-5: exactly, whatever lies between in the order of either; also what another tool sealed."""

    def run_of(each: tuple[str, int, int]) -> tuple[PartitionKey, RunId]:
        customer, day, number = each
        return key(customer, DAY + timedelta(days=day)), RunId(f"{number + 1:026d}")

    with TemporaryDirectory() as folder, open_ledger("sqlite://") as ledger:
        ledger.judge(reject(*run_of(each)) for each in sorted(judged))
        for each in present:
            directory = Path(folder) / RunPaths(*run_of(each)).directory
            directory.mkdir(parents=True)
            (directory / METADATA).touch()
        plan = plan_new(RawStore.open(folder), ledger.reader, Selection())
    assert chosen(plan) == sorted(map(run_of, present - judged))
