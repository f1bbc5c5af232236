"""R-RUN-3: when a run has ended, and how, as a table of cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.model import EventType, RunStatus
from sealbook.model.run_end import Progress, RunPartition, run_end

SEALED = (EventType.PARTITION_SEALED, None)
FAILED = (EventType.PARTITION_FAILED, None)
ACCEPTED = (EventType.PARTITION_JUDGED, "accepted")
REJECTED = (EventType.PARTITION_JUDGED, "rejected")
PUBLISHED = (EventType.PARTITION_PUBLISHED, None)
HIDDEN = (EventType.PARTITION_HIDDEN, None)
CANCELLED = (EventType.PARTITION_CANCELLED, None)
SUPERSEDED = ("superseded", None)

Events = list[tuple[str, str | None]]


def partition(events: Events) -> RunPartition:
    made = RunPartition()
    for event_type, outcome in events:
        if event_type == "superseded":
            made.supersede()
        else:
            made.take(event_type, outcome)
    return made


@pytest.mark.parametrize(
    ("events", "progress"),
    [
        ([], Progress.PLANNED),
        ([SEALED], Progress.SEALED),
        ([FAILED], Progress.FAILED),
        ([FAILED, SEALED], Progress.SEALED),  # tried again in the same run
        ([SEALED, ACCEPTED], Progress.ACCEPTED),
        ([SEALED, REJECTED], Progress.REJECTED),
        ([SEALED, REJECTED, ACCEPTED], Progress.ACCEPTED),  # judged again
        ([SEALED, ACCEPTED, REJECTED], Progress.REJECTED),
        ([SEALED, ACCEPTED, PUBLISHED], Progress.PUBLISHED),
        ([SEALED, ACCEPTED, PUBLISHED, ACCEPTED], Progress.PUBLISHED),
        ([SEALED, ACCEPTED, PUBLISHED, HIDDEN], Progress.PUBLISHED),
        ([SEALED, ACCEPTED, PUBLISHED, FAILED], Progress.PUBLISHED),  # to rebuild it failed
        ([SEALED, ACCEPTED, FAILED], Progress.FAILED),  # could not be staged
        ([SEALED, ACCEPTED, FAILED, PUBLISHED], Progress.PUBLISHED),
        ([SEALED, ACCEPTED, SUPERSEDED], Progress.SUPERSEDED),
        ([SEALED, SUPERSEDED], Progress.SEALED),  # it has yet to be judged
        ([SEALED, ACCEPTED, PUBLISHED, SUPERSEDED], Progress.PUBLISHED),
        ([CANCELLED], Progress.CANCELLED),
        ([SEALED, CANCELLED], Progress.CANCELLED),
        ([("SomethingElse", None)], Progress.PLANNED),
    ],
)
def test_how_far_a_run_is_with_a_partition(events: Events, progress: Progress) -> None:
    assert partition(events).progress is progress


@pytest.mark.parametrize(
    ("partitions", "status"),
    [
        ([], None),
        ([[]], None),
        ([[SEALED]], None),
        ([[SEALED, ACCEPTED]], None),
        ([[FAILED]], RunStatus.FAILED),
        ([[FAILED], [SEALED, REJECTED]], RunStatus.FAILED),
        ([[SEALED, ACCEPTED, PUBLISHED]], RunStatus.COMPLETED),
        ([[SEALED, ACCEPTED, PUBLISHED], [FAILED], [SEALED, REJECTED]], RunStatus.COMPLETED),
        ([[SEALED, ACCEPTED, PUBLISHED], [SEALED, ACCEPTED]], None),  # only some so far
        ([[SEALED, ACCEPTED, PUBLISHED], []], None),
        ([[SEALED, ACCEPTED, SUPERSEDED]], RunStatus.COMPLETED),
        ([[SEALED, ACCEPTED, FAILED]], RunStatus.COMPLETED),  # accepted, though it could not be staged
        ([[SEALED, ACCEPTED, REJECTED]], RunStatus.COMPLETED),  # accepted once, and demoted
        ([[CANCELLED], [CANCELLED]], RunStatus.CANCELLED),
        ([[SEALED, ACCEPTED, PUBLISHED], [CANCELLED]], RunStatus.CANCELLED),
        ([[CANCELLED], [SEALED]], None),
    ],
)
def test_how_a_run_ends(partitions: list[Events], status: RunStatus | None) -> None:
    assert run_end(map(partition, partitions)) is status


MOVES = st.sampled_from([SEALED, FAILED, ACCEPTED, REJECTED, PUBLISHED, HIDDEN, CANCELLED])


@given(st.lists(st.lists(MOVES, max_size=5), max_size=4))
def test_the_order_of_partitions_does_not_matter_and_one_that_goes_on_keeps_the_run_open(
    partitions: list[Events],
) -> None:
    made = [partition(events) for events in partitions]
    assert run_end(made) is run_end(reversed(made))
    assert (run_end(made) is None) == (not made or not all(each.progress.ended for each in made))
    assert run_end([*made, partition([SEALED])]) is None
