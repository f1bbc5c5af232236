"""The retry and reprocessing contract, section by section: where each statement is proved.

What pure functions decide is proved by `test_retry_contract`; what the rest of the system already proves is
named here; what is left, about the ledger, consumers and commands, is proved below. Section 10 lists what is
not asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sealbook
from sealbook.book import Book
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.states.tables import partition_state
from sealbook.ledger.work.tables import work
from sealbook.model import PartitionState, Status
from sealbook.model.retry import Stop
from sealbook.model.selection import Selection
from sealbook.model.work import Lane, WorkKind
from tests.support.ledger import run_id
from tests.support.pointers import load
from tests.support.statuses import accepted, days, key, rejected, write_status_book
from tests.support.validation import rows, seal

TESTS = Path(__file__).parents[1]
PURE, HERE = "unit/test_retry_contract.py", "contract/test_retry_reprocessing.py"
OPERATING, BACKFILLS, SCHEDULE = (
    f"acceptance/test_cli_{name}.py" for name in ("operating", "backfill", "schedule")
)
ROLES, IN_STEP = "contract/test_ledger_roles.py", "contract/test_schedule_in_step.py"
RAW = "contract/test_raw_store.py"

PROOFS: dict[str, list[tuple[str, str]]] = {
    # 1. Definition of retry
    "1 a retry operates on a logical partition": [(PURE, "test_1_a_retry_operates_on_a_logical_partition")],
    "1 each retry produces a new run and directory": [
        (PURE, "test_1_each_retry_produces_a_new_run"),
        (RAW, "test_runs_of_a_partition_do_not_touch_each_other"),
    ],
    "1 rows are never retried independently": [
        (PURE, "test_1_the_entire_partition_is_extracted_and_judged_again")
    ],
    "1 only the validator marks success or failed": [
        (PURE, "test_1_only_a_verdict_marks_success_or_failed"),
        (ROLES, "test_what_each_role_may_write_past_our_code"),
    ],
    "1 consumers never trigger retries": [
        (HERE, "test_1_the_side_of_consumers_has_no_way_to_retry"),
        ("contract/test_schedule_roles.py", "test_only_control_shares_work_out"),
    ],
    # 2. State transitions
    "2 pending to success": [(PURE, "test_2_pending_to_success_on_acceptance")],
    "2 pending to failed": [
        (PURE, "test_2_pending_to_failed_on_rejection_with_current_run_unchanged"),
        ("contract/test_ledger_verdicts.py", "test_accept_and_reject_write_the_row_of_the_contract"),
    ],
    "2 failed to pending is never automatic": [
        (PURE, "test_2_failed_to_pending_is_never_automatic"),
        (HERE, "test_2_nothing_but_an_operator_makes_a_failed_partition_pending"),
    ],
    "2 extractors, validators and consumers are forbidden to": [(ROLES, "test_what_each_role_may_call")],
    "2 failed to failed": [(PURE, "test_2_failed_to_failed_counts_attempts_and_stays_failed")],
    "2 terminal is a designation": [
        (PURE, "test_2_terminal_is_a_designation_and_no_status"),
        (OPERATING, "test_what_failed_is_given_up_and_stays_failed"),
    ],
    "2 consumers treat terminal as unavailable": [(HERE, "test_2_consumers_get_nothing_of_a_terminal_one")],
    "2 success is terminal unless reprocessed": [
        (PURE, "test_2_success_is_terminal_unless_an_operator_reprocesses"),
        (PURE, "test_2_a_reprocessing_replaces_the_run_or_leaves_the_success_intact"),
        (HERE, "test_2_a_reprocessing_that_fails_leaves_the_success_intact"),
    ],
    # 3. Attempt semantics
    "3 attempt_count goes up on every attempt of the validator": [
        (PURE, "test_3_attempt_count_goes_up_on_every_verdict_and_on_nothing_else"),
        (HERE, "test_3_no_action_of_an_operator_counts_an_attempt"),
    ],
    "3 it never resets": [(PURE, "test_3_attempt_count_never_resets_though_failures_in_a_row_do")],
    "3 prior runs are immutable": [(RAW, "test_a_sealed_run_is_not_touched_by_a_later_write")],
    # 4. Backoff semantics
    "4 timing is the control plane's, by steps with a cap and jitter": [
        (PURE, "test_4_backoff_goes_up_to_a_cap_by_the_recommended_steps"),
        (PURE, "test_4_backoff_has_jitter_by_default"),
        (IN_STEP, "test_a_failure_waits_longer_each_time_and_then_stops"),
    ],
    "4 it is tracked outside PartitionState": [
        (PURE, "test_4_the_schedule_lies_outside_the_state"),
        (HERE, "test_4_the_table_of_states_knows_nothing_of_the_schedule"),
    ],
    "4 it consults attempts, time and error": [
        (PURE, "test_4_the_decision_asks_for_attempts_their_time_and_their_error")
    ],
    # 5. Termination semantics
    "5 retries stop at success": [(PURE, "test_5_retries_stop_at_success")],
    "5 at max_attempts": [(PURE, "test_5_retries_stop_at_max_attempts")],
    "5 past max_age": [(PURE, "test_5_retries_stop_past_max_age")],
    "5 at a manual marker": [
        (PURE, "test_5_a_manual_marker_stops_retries_and_a_failure_does_not_take_it_away")
    ],
    "5 validators ignore terminality": [(PURE, "test_5_validators_ignore_terminality")],
    # 6. Backfill interaction
    "6 a backfill enqueues partitions as pending": [
        (HERE, "test_6_a_backfill_enqueues_partitions_as_pending")
    ],
    "6 each follows the same policy": [(PURE, "test_6_backfill_follows_the_same_retry_policy")],
    "6 gaps are pending or failed to consumers": [(HERE, "test_6_consumers_see_the_gaps_of_a_history")],
    "6 backfill does not starve fresh data": [
        (PURE, "test_6_backfill_never_starves_fresh_work"),
        (HERE, "test_6_fresh_work_goes_before_a_backfill_of_any_size"),
    ],
    # 7. Control plane and data plane
    "7 the control plane decides which and when": [(PURE, "test_7_the_control_plane_decides_which_and_when")],
    "7 the data plane executes": [(IN_STEP, "test_the_way_of_a_partition_under_a_claim")],
    "7 only the control plane moves failed to pending": [(ROLES, "test_what_each_role_may_call")],
    # 8. Operator interface
    "8 state inspect": [
        (
            "acceptance/test_cli_state.py",
            "test_json_has_the_fields_of_the_contract_and_the_schedule_of_what_is_open",
        )
    ],
    "8 state retry": [(OPERATING, "test_a_failed_partition_is_tried_again")],
    "8 terminal failures are listed": [
        (OPERATING, "test_what_is_parked_is_listed_and_cleared"),
        (OPERATING, "test_what_failed_is_given_up_and_stays_failed"),
    ],
    "8 history, errors, times and the next retry are visible": [
        (PURE, "test_8_the_next_retry_and_its_reason_can_be_shown"),
        (BACKFILLS, "test_its_progress_is_shown"),
    ],
    "8 large ranges need confirmation": [
        (OPERATING, "test_more_than_twenty_need_a_yes_where_nobody_can_be_asked"),
        (OPERATING, "test_at_a_terminal_the_number_is_typed"),
    ],
    "8 no retry without a raw partition": [
        (OPERATING, "test_what_cannot_be_retried_says_why_and_what_to_do")
    ],
    "8 every override is logged": [
        (HERE, "test_8_every_action_is_logged_with_who_when_why_and_what"),
        (SCHEDULE, "test_who_did_what_is_found_by_what_by_whom_and_by_partition"),
    ],
    # 9. Invariants
    "9 raw partitions are immutable": [(RAW, "test_a_sealed_run_is_not_touched_by_a_later_write")],
    "9 consumers read only success": [
        ("contract/test_pointers_published.py", "test_a_demotion_takes_effect_without_a_loader")
    ],
    "9 every attempt counts exactly once": [
        (PURE, "test_9_every_attempt_counts_exactly_once"),
        ("contract/test_ledger_verdicts.py", "test_a_verdict_delivered_again_changes_nothing"),
    ],
    "9 current_run_id names a raw partition": [
        (PURE, "test_9_current_run_is_always_one_that_was_judged_and_so_sealed")
    ],
    "9 no two retries of a partition at once": [
        ("contract/test_schedule_claims.py", "test_threads_never_claim_the_same_and_never_overspend"),
        ("unit/test_control_faults.py", "test_every_rule_holds_whatever_goes_wrong"),
    ],
    "9 validators mutate neither raw data nor attempts": [
        ("spark/test_raw_untouched.py", "test_no_stage_changes_a_byte_of_the_raw_store"),
        (ROLES, "test_what_each_role_may_write_past_our_code"),
    ],
}

DAYS = days(5)
KEYS = [key("a", day) for day in DAYS]
WHO: dict[str, Any] = {"actor": "ann", "reason": "the source was wrong"}


@pytest.mark.parametrize("statement", PROOFS)
def test_every_statement_has_a_proof(statement: str) -> None:
    for file, name in PROOFS[statement]:
        assert re.search(rf"^def {name}\(", (TESTS / file).read_text(), re.MULTILINE), f"{file} {name}"


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Iterator[Book]:
    """A book of a customer with five days: a good one, and a rejected one."""
    folder = write_status_book(tmp_path, ledger_url, customers=("a",), first_day=DAYS[0])
    for each in KEYS[:2]:
        seal(folder / "raw", each, rows(1), run_id(1))
    with sealbook.open(folder) as opened:
        opened.ledger.judge([accepted(KEYS[0]), rejected(KEYS[1])])
        load(opened.ledger)
        yield opened


def covered(book: Book) -> list[str]:
    return [each.kind for each in book.coverage("campaign_daily", since=DAYS[0], until=DAYS[-1])]


def test_1_the_side_of_consumers_has_no_way_to_retry(book: Book) -> None:
    assert not {"operator", "rollback", "run", "extract"} & set(dir(book.reader))
    assert not {"plans", "overrides", "pauses", "scheduler"} & set(dir(book.reader.ledger))


def test_2_nothing_but_an_operator_makes_a_failed_partition_pending(book: Book) -> None:
    ledger = book.ledger
    book.catch_up()
    ledger.rounds.open_due(book.expectations())
    ledger.scheduler.claim("bob", Terms(["demo"]), limit=99)
    book.operator.reprocess(Selection(keys=[KEYS[1]]), **WHO)
    assert ledger.state(KEYS[1]).status is Status.FAILED
    book.operator.carry_out(book.operator.retry(Selection(keys=[KEYS[1]]), **WHO).plan.id)
    assert ledger.state(KEYS[1]).status is Status.PENDING


def test_2_consumers_get_nothing_of_a_terminal_one(book: Book) -> None:
    book.operator.carry_out(book.operator.mark(Selection(keys=[KEYS[1]]), **WHO).plan.id)
    found = book.ledger.reader.schedule.work(KEYS[1])
    assert found is not None
    assert found.work.stop is Stop.MANUAL
    assert covered(book)[:2] == ["published", "failed"]
    assert book.table("campaign_daily", since=DAYS[1], until=DAYS[1]).num_rows == 0


def test_2_a_reprocessing_that_fails_leaves_the_success_intact(book: Book) -> None:
    book.operator.carry_out(book.operator.reprocess(Selection(keys=[KEYS[0]]), **WHO).plan.id)
    book.ledger.judge([rejected(KEYS[0], 2)])
    state = book.ledger.state(KEYS[0])
    assert (state.status, state.current_run_id, state.attempt_count) == (Status.SUCCESS, run_id(1), 2)
    assert covered(book)[0] == "published"


def test_3_no_action_of_an_operator_counts_an_attempt(book: Book) -> None:
    operator, chosen = book.operator, Selection(keys=KEYS)
    before = [book.ledger.state(each).attempt_count for each in KEYS]
    for action in (operator.retry, operator.reprocess, operator.backfill, operator.mark, operator.clear):
        operator.carry_out(action(chosen, **WHO).plan.id)
    assert [book.ledger.state(each).attempt_count for each in KEYS] == before


def test_4_the_table_of_states_knows_nothing_of_the_schedule(book: Book) -> None:
    assert {column.name for column in partition_state.c} == {
        *("source", "customer_id", "query_name", "logical_date"),
        *(name for name in PartitionState._fields if name != "key"),
    }
    assert {"ready_at", "kind", "lane", "stop"} <= {column.name for column in work.c}
    before = book.ledger.state(KEYS[1])
    book.operator.carry_out(book.operator.mark(Selection(keys=[KEYS[1]]), **WHO).plan.id)
    assert book.ledger.state(KEYS[1]) == before


def test_6_a_backfill_enqueues_partitions_as_pending(book: Book) -> None:
    book.operator.carry_out(book.operator.backfill(Selection(keys=KEYS[2:]), **WHO).plan.id)
    for each in KEYS[2:]:
        found = book.ledger.reader.schedule.work(each)
        assert book.ledger.state(each).status is Status.PENDING
        assert found is not None
        assert (found.work.lane, found.work.kind) == (Lane.BACKFILL, WorkKind.FETCH)


def test_6_consumers_see_the_gaps_of_a_history(book: Book) -> None:
    book.operator.carry_out(book.operator.backfill(Selection(keys=KEYS), **WHO).plan.id)
    book.ledger.judge([accepted(KEYS[3], 2)])
    load(book.ledger)
    assert covered(book) == ["published", "failed", "missing", "published", "missing"]


def test_6_fresh_work_goes_before_a_backfill_of_any_size(book: Book) -> None:
    """Three fresh days are among the first five that are claimed, by the shares of the two lanes."""
    ledger, operator = book.ledger, book.operator
    history = Selection(queries=["ad_group_daily", "device_daily"], since=DAYS[0], until=DAYS[3])
    operator.carry_out(operator.backfill(history, **WHO).plan.id)
    book.catch_up()
    ledger.rounds.open_due(book.expectations(), Selection(since=DAYS[-1]))
    lanes = [claim.lane for claim in ledger.scheduler.claim("bob", Terms(["demo"]), limit=5)]
    assert (lanes.count(Lane.FRESH), lanes.count(Lane.BACKFILL)) == (3, 2)


def test_8_every_action_is_logged_with_who_when_why_and_what(book: Book) -> None:
    operator, chosen = book.operator, Selection(keys=KEYS)
    before = book.ledger.reader.now()
    done = []
    for action in (operator.retry, operator.reprocess, operator.backfill, operator.mark, operator.clear):
        preview = action(chosen, **WHO)
        operator.carry_out(preview.plan.id)
        done.append((preview.plan.id, tuple(item.key for item in preview.items)))
    entries = list(reversed(list(book.ledger.reader.override_log.entries())))
    assert [each.action for each in entries] == ["requeue", "reprocess", "backfill", "mark", "clear"]
    assert [((each.filter or {})["plan"], each.keys) for each in entries] == done
    for each in entries:
        assert (each.actor, each.reason, each.at >= before) == (*WHO.values(), True)
        assert (each.filter or {})["keys"] == [str(key) for key in KEYS]
