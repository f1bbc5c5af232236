"""RunSnapshot as a value: its stored form and its hash."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from sealbook.errors import InvalidInput
from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold_all
from sealbook.model.run_snapshot import RunSnapshot, RunStatus
from sealbook.model.wire import dump_json
from tests.support.event_strategies import RUN, START, logs, stored, unhurried

LOG = [
    stored(1, "RunStarted"),
    stored(2, "StepStarted", "load"),
    stored(3, "PartitionSealed", "extract/x", None, {"recordCount": 2, "payloadBytes": 30}),
    stored(4, "StepFailed", "load", None, {"error": "disc full"}),
    stored(6, "StepCompleted", "load"),
    stored(7, "RunCompleted", None, None, {"artifacts": [{"uri": "s3://report"}]}),
]


def example() -> RunSnapshot:
    return fold_all(RunSnapshot.pending(RUN), LOG)


def test_stored_form() -> None:
    assert example().to_dict() == {
        "runId": RUN,
        "status": "COMPLETED",
        "lastEventSeq": 7,
        "steps": [
            {
                "stepId": "load",
                "attempts": [
                    {
                        "logicalAttemptId": "1",
                        "status": "FAILED",
                        "startedAt": "2026-01-01T06:00:02Z",
                        "completedAt": "2026-01-01T06:00:04Z",
                        "error": "disc full",
                        "artifacts": [],
                        "decidedBy": LOG[3].event_id,
                        "overruled": [],
                    }
                ],
            }
        ],
        "runArtifacts": [{"uri": "s3://report"}],
        "counters": {
            "partitionsSealed": 1,
            "partitionsFailed": 0,
            "partitionsAccepted": 0,
            "partitionsRejected": 0,
            "partitionsPublished": 0,
            "partitionsHidden": 0,
            "partitionsRequeued": 0,
            "partitionsRolledBack": 0,
            "partitionsCancelled": 0,
            "recordsSealed": 2,
            "bytesSealed": 30,
            "recordsPublished": 0,
            "bytesPublished": 0,
            "signalsAccepted": 0,
            "signalsRejected": 0,
        },
        "startedAt": "2026-01-01T06:00:01Z",
        "completedAt": "2026-01-01T06:00:07Z",
        "inconsistent": [LOG[4].event_id],
    }


@unhurried
@given(logs())
def test_round_trip(log: list[RunEvent]) -> None:
    snapshot = fold_all(RunSnapshot.pending(RUN), log)
    assert snapshot.to_json() == dump_json(snapshot.to_dict())
    for read in (
        RunSnapshot.from_dict(snapshot.to_dict()),
        RunSnapshot.from_json(snapshot.to_json()),
        RunSnapshot.from_json(snapshot.to_json().encode()),
        pickle.loads(pickle.dumps(snapshot)),
    ):
        assert read == snapshot
        assert read.hash == snapshot.hash


def test_hash_is_stable() -> None:
    """The same log gives the same hash in any process, whatever the order of JSON members."""
    members = dict(reversed(example().to_dict().items()))
    assert RunSnapshot.from_dict(members).hash == example().hash
    pending = RunSnapshot.pending("r1").hash
    assert pending == "213885e81d69096a1dc036f7185fa14198f73986d95e4e6e419df45d640d2223"


def test_each_event_changes_the_hash() -> None:
    hashes = {fold_all(RunSnapshot.pending(RUN), LOG[:length]).hash for length in range(len(LOG) + 1)}
    assert len(hashes) == len(LOG) + 1


def test_run_without_events_is_pending() -> None:
    snapshot = RunSnapshot.pending(RUN)
    assert (snapshot.status, snapshot.last_event_seq, snapshot.duration) == (RunStatus.PENDING, 0, None)
    assert (snapshot.artifacts, snapshot.inconsistent) == ((), ())


def test_duration_is_never_negative() -> None:
    """Start and end may come from machines whose clocks disagree."""
    log = [LOG[0], RunEvent.new(RUN, "RunFailed", emitted_at=START - timedelta(hours=1)).stored(2, START)]
    assert fold_all(RunSnapshot.pending(RUN), log).duration == timedelta(0)


def test_final_statuses() -> None:
    assert [status for status in RunStatus if status.final] == ["COMPLETED", "FAILED", "CANCELLED"]


def test_next_attempt_counts_what_was_tried() -> None:
    assert example().next_attempt("load") == 2
    assert example().next_attempt("extract") == 1


@pytest.mark.parametrize(
    ("path", "bad", "field"),
    [
        (["runId"], None, "snapshot.runId"),
        (["status"], "DONE", "snapshot.status"),
        (["status"], 3, "snapshot.status"),
        (["lastEventSeq"], -1, "snapshot.lastEventSeq"),
        (["lastEventSeq"], True, "snapshot.lastEventSeq"),
        (["lastEventSeq"], "7", "snapshot.lastEventSeq"),
        (["steps"], {}, "snapshot.steps"),
        (["steps", 0], "load", "snapshot.steps[0]"),
        (["steps", 0, "stepId"], None, "snapshot.steps[0].stepId"),
        (["steps", 0, "attempts"], [], "attempts of step load"),
        (["steps", 0, "attempts", 0, "status"], "DONE", "snapshot.steps[0].attempts[0].status"),
        (["steps", 0, "attempts", 0, "startedAt"], "now", "snapshot.steps[0].attempts[0].startedAt"),
        (["steps", 0, "attempts", 0, "overruled"], [1], "snapshot.steps[0].attempts[0].overruled"),
        (["steps", 0, "attempts", 0, "artifacts"], None, "snapshot.steps[0].attempts[0].artifacts"),
        (["runArtifacts"], "x", "snapshot.runArtifacts"),
        (["counters"], None, "snapshot.counters"),
        (["counters", "bytesSealed"], None, "snapshot.counters.bytesSealed"),
        (["counters", "bytesSealed"], 1.5, "snapshot.counters.bytesSealed"),
        (["completedAt"], "2026-01-01T00:00:00", "snapshot.completedAt"),
        (["error"], {"code": 1}, "snapshot.error"),
        (["inconsistent"], None, "snapshot.inconsistent"),
    ],
)
def test_other_shapes_are_refused_by_place(path: list[str | int], bad: object, field: str) -> None:
    members = copy.deepcopy(example().to_dict())
    inner: Any = members
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = bad
    with pytest.raises(InvalidInput) as refused:
        RunSnapshot.from_json(json.dumps(members))
    assert refused.value.field == field


@pytest.mark.parametrize("text", ["", "[]", "null", '"x"', "{"])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        RunSnapshot.from_json(text)
    assert refused.value.field == "snapshot"
