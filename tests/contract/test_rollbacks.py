"""R-STATE-9, R-WH-9: a rollback is an operator's word; it holds, consumers follow at once, and it is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select
from ulid import ULID

from sealbook.errors import IllegalMove, InvalidInput, NotFound, SealbookError
from sealbook.ledger import Ledger, open_ledger
from sealbook.ledger.states.tables import override_log
from sealbook.model import PartitionState, RunId, RunStatus, Status
from sealbook.model.partition_events import (
    PartitionHidden,
    PartitionPublished,
    PartitionRolledBack,
    read_fact,
)
from sealbook.status.verify import verify_ledger
from tests.support.ledger import KEY, OTHER, accept, reject, run_id
from tests.support.pointers import SINCE, artifact, load, seen, stage

WHO: dict[str, Any] = {"actor": "ann@example.com", "reason": "run 3 has doubled clicks"}


def facts(ledger: Ledger) -> list[Any]:
    """Return what the log says of KEY, in its order."""
    return [read_fact(event) for event in ledger.reader.partition_log.events(KEY)]


def verified(ledger: Ledger) -> None:
    """R-EVT-11: what the tables say, the log says too."""
    assert list(verify_ledger(ledger.reader)) == []


def test_rollback(ledger: Ledger) -> None:
    """R-STATE-3, R-STATE-4: authority, and what describes it, go back; no attempt is counted."""
    ledger.judge([accept(KEY, 1, records=1), accept(KEY, 2, records=2), accept(KEY, 3, records=3)])
    state = ledger.rollback(KEY, run_id(1), **WHO)
    assert state == ledger.state(KEY)
    assert (state.status, state.current_run_id, state.record_count) == (Status.SUCCESS, run_id(1), 1)
    assert (state.schema_version, state.attempt_count) == ("1", 3)
    with ledger._database.read() as connection:
        entry = connection.execute(select(override_log)).one()
    assert (entry.action, entry.keys, entry.run_id) == ("rollback", [str(KEY)], run_id(1))
    assert (entry.actor, entry.reason, entry.filter) == (WHO["actor"], WHO["reason"], None)
    told = facts(ledger)[-1]
    assert isinstance(told, PartitionRolledBack)
    assert (told.run_id, told.from_run_id, told.newest_run_id) == (run_id(1), run_id(3), run_id(3))
    verified(ledger)


def test_only_a_newer_run_takes_authority_after_a_rollback(ledger: Ledger) -> None:
    """R-STATE-9: not a late acceptance of a middle run, not a re-validation of the run rolled back from."""
    ledger.judge([accept(KEY, 1), accept(KEY, 3)])
    ledger.rollback(KEY, run_id(1), **WHO)
    for verdict in (accept(KEY, 3), accept(KEY, 2), accept(KEY, 3, again="x")):
        assert ledger.judge([verdict])[0].current_run_id == run_id(1)
    assert ledger.state(KEY).attempt_count == 4
    assert dict(ledger.reader.holds()) == {KEY: run_id(3)}
    assert ledger.judge([accept(KEY, 4)])[0].current_run_id == run_id(4)
    verified(ledger)


def test_what_is_sealed_and_not_judged_yet_is_held_too(ledger: Ledger) -> None:
    """R-STATE-9: newer than every run that the partition had, be it judged or only sealed."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    ledger.rollback(KEY, run_id(1), **WHO, sealed=[run_id(1), run_id(2), run_id(3)])
    assert ledger.judge([accept(KEY, 3)])[0].current_run_id == run_id(1)
    assert ledger.judge([accept(KEY, 4)])[0].current_run_id == run_id(4)
    verified(ledger)


def test_the_run_must_still_be_sealed(ledger: Ledger) -> None:
    """R-STATE-9: who knows raw storage says what is there; to what is not, nobody rolls back."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    before = ledger.state(KEY)
    with pytest.raises(NotFound, match=f"{KEY} run {run_id(1)} is not sealed in raw storage"):
        ledger.rollback(KEY, run_id(1), **WHO, sealed=[run_id(2)])
    assert ledger.state(KEY) == before
    assert ledger.rollback(KEY, run_id(1), **WHO, sealed=[run_id(1)]).current_run_id == run_id(1)


def test_a_mistaken_rollback_is_undone_by_another(ledger: Ledger) -> None:
    """R-STATE-9: it goes both ways."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    ledger.rollback(KEY, run_id(1), **WHO)
    assert ledger.rollback(KEY, run_id(2), **WHO).current_run_id == run_id(2)
    assert ledger.judge([accept(KEY, 1, again="x")])[0].current_run_id == run_id(2)
    assert ledger.judge([accept(KEY, 3)])[0].current_run_id == run_id(3)
    verified(ledger)


def test_a_demoted_partition_goes_back_to_its_last_good_run(ledger: Ledger) -> None:
    """R-STATE-9: from failed, where it is needed most; what was demoted does not come back by itself."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2), reject(KEY, 2, again="x")])
    state = ledger.rollback(KEY, run_id(1), **WHO)
    assert (state.status, state.current_run_id, state.error_message) == (Status.SUCCESS, run_id(1), None)
    assert ledger.judge([accept(KEY, 2, again="y")])[0].current_run_id == run_id(1)
    verified(ledger)


def test_rollback_describes_the_run_as_last_judged(ledger: Ledger) -> None:
    """R-STATE-4: a re-validation may have recounted it."""
    ledger.judge([accept(KEY, 1, records=1), accept(KEY, 2), accept(KEY, 1, again="x", records=5)])
    assert ledger.rollback(KEY, run_id(1), **WHO).record_count == 5


REFUSED: dict[str, tuple[int, type[SealbookError], str]] = {
    "to a run that was never judged": (9, NotFound, "no judged run"),
    "to a rejected run": (2, IllegalMove, "was rejected when last judged"),
    "to a run rejected by a re-validation": (1, IllegalMove, "was rejected when last judged"),
    "to a run of another schema_version": (3, IllegalMove, "same schema_version"),
    "to the current run": (5, IllegalMove, "only to another run"),
}


def test_rollbacks_that_are_refused(ledger: Ledger) -> None:
    """R-STATE-3: typed, with the key named, nothing written and nothing logged."""
    ledger.judge(
        [
            accept(KEY, 1),
            reject(KEY, 2),
            accept(KEY, 3, version="2"),
            accept(KEY, 5),
            reject(KEY, 1, again="x"),
        ]
    )
    before, log = ledger.state(KEY), facts(ledger)
    for what, (run, error, why) in REFUSED.items():
        for dry_run in (True, False):
            with pytest.raises(error, match=why) as refused:
                ledger.rollbacks.rollback(KEY, run_id(run), **WHO, dry_run=dry_run)
            assert str(KEY) in str(refused.value), what
            assert refused.value.remedy, what
    assert ledger.state(KEY) == before
    assert facts(ledger) == log


def test_what_waits_is_not_rolled_back(ledger: Ledger) -> None:
    """R-STATE-3: not what was requeued, and not a key that nobody knows."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2), reject(KEY, 2, again="x")])
    ledger.requeue([KEY], **WHO)
    with pytest.raises(IllegalMove, match="is pending"):
        ledger.rollback(KEY, run_id(1), **WHO)
    with pytest.raises(NotFound, match=str(OTHER)):
        ledger.rollback(OTHER, run_id(1), **WHO)
    assert ledger.state(OTHER) == PartitionState.pending(OTHER)


def test_consumers_get_the_chosen_run_in_the_same_transaction(ledger: Ledger) -> None:
    """R-WH-9: its artifact is still there, so the pointer moves to it; and forth again, when undone."""
    for run in (1, 2):
        ledger.judge([accept(KEY, run)])
        load(ledger)
    version = ledger.pointers.version()
    for run in (1, 2):
        done = ledger.rollbacks.rollback(KEY, run_id(run), **WHO)
        assert done.is_readable
        assert seen(ledger) == {KEY: run_id(run)} == seen(ledger, strict=True)
        published = facts(ledger)[-1]
        assert isinstance(published, PartitionPublished)
        assert (published.run_id, published.replaced_run_id) == (run_id(run), run_id(3 - run))
    assert ledger.pointers.version() == version + 2
    assert list(ledger.pointers.plan()) == []
    verified(ledger)


def test_consumers_get_nothing_until_the_chosen_run_is_staged(ledger: Ledger) -> None:
    """R-WH-9: the run rolled back from is never read again meanwhile."""
    ledger.judge([accept(KEY, 1), accept(KEY, 2)])
    load(ledger)
    assert not ledger.rollbacks.rollback(KEY, run_id(1), **WHO).is_readable
    assert seen(ledger) == {}
    hidden = facts(ledger)[-1]
    assert isinstance(hidden, PartitionHidden)
    assert hidden.run_id == run_id(2)
    universe: Any = {"source": KEY.source, "customers": [KEY.customer_id], "since": SINCE, "until": SINCE}
    [covered] = ledger.pointers.coverage(KEY.query_name, **universe)
    assert covered.kind == "hidden"
    load(ledger)
    assert seen(ledger) == {KEY: run_id(1)}
    verified(ledger)


def test_an_artifact_that_a_clean_up_takes_away_is_not_pointed_at(ledger: Ledger) -> None:
    """R-WH-9, R-WH-7: condemned is as good as gone."""
    for run in (1, 2):
        ledger.judge([accept(KEY, run)])
        load(ledger)
    assert [each.artifact for each in ledger.pointers.condemn([artifact(run=1)], timedelta(0))] == [
        artifact(run=1)
    ]
    assert not ledger.rollbacks.rollback(KEY, run_id(1), **WHO).is_readable
    assert seen(ledger) == {}
    verified(ledger)


def test_from_a_demoted_partition_consumers_get_the_good_run_at_once(ledger: Ledger) -> None:
    """R-WH-9: whether or not a loader has hidden the bad one."""
    for hides in (False, True):
        key = OTHER if hides else KEY
        for run in (1, 2):
            ledger.judge([accept(key, run)])
            load(ledger)
        ledger.judge([reject(key, 2, again="x")])
        if hides:
            ledger.pointers.hide()
        assert key not in seen(ledger)
        ledger.rollback(key, run_id(1), **WHO)
        assert seen(ledger)[key] == run_id(1)
    verified(ledger)


def test_a_loader_that_staged_the_run_rolled_back_from_publishes_nothing(ledger: Ledger) -> None:
    """R-WH-3: the swap looks at the authority again."""
    ledger.judge([accept(KEY, 1)])
    load(ledger)
    ledger.judge([accept(KEY, 2)])
    [item] = ledger.pointers.plan()
    ledger.rollback(KEY, run_id(1), **WHO)
    assert ledger.pointers.swap([stage(item)]).moved == (KEY,)
    assert seen(ledger) == {KEY: run_id(1)}


def test_a_dry_run_says_what_would_be_done_and_does_nothing(ledger: Ledger) -> None:
    ledger.judge([accept(KEY, 1, records=1), accept(KEY, 2)])
    load(ledger)
    before, log = ledger.state(KEY), facts(ledger)
    would = ledger.rollbacks.rollback(KEY, run_id(1), **WHO, dry_run=True)
    assert (would.from_run_id, would.state.current_run_id, would.is_readable) == (run_id(2), run_id(1), False)
    assert (ledger.state(KEY), facts(ledger), dict(ledger.reader.holds())) == (before, log, {})
    done = ledger.rollbacks.rollback(KEY, run_id(1), **WHO)
    assert done.state._replace(updated_at=None) == would.state._replace(updated_at=None)


def test_a_run_that_was_rolled_back_from_before_it_was_loaded_has_ended(ledger: Ledger) -> None:
    """R-RUN-3: it will not be published by itself; its run does not wait for it for ever."""
    first, second = ledger.open_run(), ledger.open_run()
    for run in (first, second):
        verdict = accept(KEY)
        object.__setattr__(verdict, "run_id", run)
        ledger.judge([verdict])
    assert ledger.runs.end_runs([second]) == {}
    ledger.rollback(KEY, first, **WHO)
    assert ledger.runs.end_runs([second]) == {second: RunStatus.COMPLETED}


def test_a_run_from_the_future_holds_nothing_and_is_no_target(ledger_url: str) -> None:
    """R-RUN-2: it gains no authority by being from the future, nor keeps it from those of the present."""
    now = datetime(2026, 2, 1, tzinfo=UTC)
    ahead = RunId(str(ULID.from_datetime(now + timedelta(days=400))))
    with open_ledger(ledger_url, clock=lambda: now) as ledger:
        ledger.judge([accept(KEY, 1), accept(KEY, 2)])
        ledger.rollback(KEY, run_id(1), **WHO, sealed=[run_id(1), run_id(2), ahead])
        assert dict(ledger.reader.holds()) == {KEY: run_id(2)}
        with pytest.raises(InvalidInput, match=f"run {ahead} is from the future"):
            ledger.rollback(KEY, ahead, **WHO, sealed=[ahead])


def test_times_never_go_back_within_a_partition(ledger_url: str) -> None:
    """R-STATE-11: whatever the clock of the machine says that writes."""
    now = datetime(2026, 2, 10, tzinfo=UTC)
    with (
        open_ledger(ledger_url, clock=lambda: now) as right,
        open_ledger(ledger_url, clock=lambda: now - timedelta(days=8)) as slow,
    ):
        right.judge([accept(KEY, 1), accept(KEY, 2)])
        slow.judge([reject(KEY, 2, again="x")])
        assert slow.state(KEY).updated_at == now
        slow.requeue([KEY], **WHO)
        slow.judge([accept(KEY, 2, again="y"), accept(OTHER, 2)])
        slow.rollback(KEY, run_id(1), **WHO)
        assert slow.state(KEY).updated_at == now
        assert {each.judged_at for each in slow.attempts(KEY)} == {now}
        verified(slow)
