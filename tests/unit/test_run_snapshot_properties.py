"""The fold over any log: pure, idempotent, and the same however the log is cut (R-EVT-7)."""

from __future__ import annotations

import copy
import re
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sealbook.model.events import RunEvent
from sealbook.model.run_fold import fold, fold_all
from sealbook.model.run_snapshot import RunSnapshot
from tests.support.event_strategies import RUN, logs, stored, unhurried


def replay(log: list[RunEvent]) -> RunSnapshot:
    return fold_all(RunSnapshot.pending(RUN), log)


def one_by_one(log: list[RunEvent]) -> RunSnapshot:
    snapshot = RunSnapshot.pending(RUN)
    for event in log:
        snapshot = fold(snapshot, event)
    return snapshot


def same(one: RunSnapshot, other: RunSnapshot) -> bool:
    """Equal as values, and in the text form too, where the order of steps shows."""
    return one == other and one.to_json() == other.to_json()


@unhurried
@given(logs())
def test_r_evt_7_one_by_one_equals_replay(log: list[RunEvent]) -> None:
    assert same(one_by_one(log), replay(log))


def test_r_evt_7_illegal_event_gives_its_step_no_place() -> None:
    log = [
        stored(1, "RunStarted"),
        stored(2, "StepCompleted", "late"),
        stored(3, "StepStarted", "early"),
        stored(4, "StepStarted", "late"),
    ]
    assert same(one_by_one(log), replay(log))
    assert list(replay(log).steps) == ["early", "late"]


@unhurried
@given(logs(), st.lists(st.integers(0, 40)), st.booleans())
def test_r_evt_7_any_split_with_a_store_between_equals_replay(
    log: list[RunEvent], cuts: list[int], through_json: bool
) -> None:
    bounds = sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})
    snapshot = RunSnapshot.pending(RUN)
    for start, end in pairwise(bounds):
        snapshot = fold_all(snapshot, log[start:end])
        if through_json:
            snapshot = RunSnapshot.from_json(snapshot.to_json())
    assert same(snapshot, replay(log))


@unhurried
@given(logs(), st.data())
def test_r_evt_7_events_delivered_again_change_nothing(log: list[RunEvent], data: st.DataObject) -> None:
    again: list[RunEvent] = []
    for number, event in enumerate(log):
        again.append(event)
        again.extend(log[back] for back in data.draw(st.lists(st.integers(0, number), max_size=3)))
    assert same(one_by_one(again), replay(log))
    assert same(replay(again), replay(log))
    assert same(fold_all(replay(log), log), replay(log))


@unhurried
@given(logs(), st.integers(0, 40), st.text(min_size=1, max_size=20).map(lambda text: "Unheard" + text))
def test_r_evt_7_unknown_types_change_the_number_only(log: list[RunEvent], position: int, name: str) -> None:
    seq = 3 * len(log) + 100
    snapshot = replay(log[:position])
    name = name.replace("|", "").replace("\0", "").encode(errors="replace").decode()
    folded = fold(snapshot, stored(seq, name, "load", 1, {"outcome": "accepted"}))
    before, after = snapshot.to_dict(), folded.to_dict()
    assert (before.pop("lastEventSeq"), after.pop("lastEventSeq")) == (snapshot.last_event_seq, seq)
    assert before == after


@unhurried
@given(logs())
def test_r_evt_7_the_fold_changes_none_of_its_arguments(log: list[RunEvent]) -> None:
    half = len(log) // 2
    snapshot = replay(log[:half])
    kept, events = copy.deepcopy(snapshot), copy.deepcopy(log)
    first = fold_all(snapshot, log[half:])
    assert same(snapshot, kept)
    assert log == events
    assert same(fold_all(snapshot, log[half:]), first)


@unhurried
@given(logs())
def test_fold_agrees_with_a_plain_reference(log: list[RunEvent]) -> None:
    snapshot = replay(log)
    reference = _Reference(log)
    assert snapshot.status == reference.run
    assert list(snapshot.inconsistent) == reference.illegal
    attempts = {
        (step_id, attempt.logical_attempt_id): (str(attempt.status), attempt.decided_by)
        for step_id, step in snapshot.steps.items()
        for attempt in step.attempts
    }
    assert attempts == reference.attempts
    counts = snapshot.counters.by_name()
    assert {name: count for name, count in counts.items() if count} == +reference.counts
    assert snapshot.last_event_seq == (log[-1].run_seq if log else 0)


class _Reference:
    """The rules once more, as plainly as can be: strings, dictionaries, one long `if`."""

    def __init__(self, log: list[RunEvent]) -> None:
        self.run = "PENDING"
        self.attempts: dict[tuple[str, str], tuple[str, str | None]] = {}
        self.counts: Counter[str] = Counter()
        self.illegal: list[str] = []
        for event in log:
            if not self._take(event):
                self.illegal.append(event.event_id)

    def _take(self, event: RunEvent) -> bool:
        kind, data = event.event_type, event.event_data
        if kind.startswith("Run"):
            return self._take_run(kind)
        if kind.startswith("Step"):
            return event.step_id is not None and self._take_step(kind, event.step_id, event)
        if kind == "PartitionJudged":
            if data.get("outcome") not in ("accepted", "rejected"):
                return False
            self.counts[f"partitions_{data['outcome']}"] += 1
        elif kind in ("PartitionSealed", "PartitionPublished"):
            verb = kind.removeprefix("Partition").lower()
            records, size = (
                data.get("recordCount", 0),
                data.get("payloadBytes" if verb == "sealed" else "bytes", 0),
            )
            if not isinstance(records, int) or not isinstance(size, int) or records < 0:
                return False
            self.counts.update({f"partitions_{verb}": 1, f"records_{verb}": records, f"bytes_{verb}": size})
        elif kind.startswith(("Partition", "Signal")):
            noun = "Partition" if kind.startswith("Partition") else "Signal"
            verb = "_".join(re.findall("[A-Z][a-z]+", kind.removeprefix(noun))).lower()
            self.counts[f"{noun.lower()}s_{verb}"] += 1
        return True

    def _take_run(self, kind: str) -> bool:
        moves = {
            "RunQueued": ("PENDING", "PENDING"),
            "RunStarted": ("PENDING", "RUNNING"),
            "RunPaused": ("RUNNING", "PAUSED"),
            "RunResumed": ("PAUSED", "RUNNING"),
            "RunCompleted": ("RUNNING", "COMPLETED"),
            "RunFailed": ("PENDING RUNNING PAUSED", "FAILED"),
            "RunCancelled": ("PENDING RUNNING PAUSED", "CANCELLED"),
        }
        sources, target = moves[kind]
        if self.run not in sources.split():
            return False
        self.run = target
        return True

    def _take_step(self, kind: str, step_id: str, event: RunEvent) -> bool:
        key = (step_id, event.logical_attempt_id or "1")
        status, outcome = self.attempts.get(key, ("PENDING", None))
        target, decided_by = status, outcome
        if kind == "StepStarted" and (status, self.run) == ("PENDING", "RUNNING"):
            target = "RUNNING"
        elif kind == "StepSkipped" and status == "PENDING" and self.run in ("RUNNING", "PAUSED"):
            target, decided_by = "SKIPPED", event.event_id
        elif kind == "StepCompleted" and status == "RUNNING" and self.run in ("RUNNING", "PAUSED"):
            target, decided_by = "SUCCESS", event.event_id
        elif kind == "StepFailed" and status == "RUNNING" and self.run in ("RUNNING", "PAUSED"):
            target, decided_by = "FAILED", event.event_id
        elif (
            kind == "StepCorrected"
            and outcome is not None
            and event.event_data.get("correctsEventId") == outcome
            and event.event_data.get("status") in ("SUCCESS", "FAILED", "SKIPPED")
        ):
            target, decided_by = str(event.event_data["status"]), event.event_id
        else:
            return False
        self.attempts[key] = (target, decided_by)
        return True
