"""From what tasks found to checks and a verdict (R-VER-2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.model import Check, Severity
from sealbook.model.contract import Contract, RowCount, Rule
from sealbook.model.sealed_day import SealedDay
from sealbook.model.universe import Account
from sealbook.rows.offending import OffendingLines
from sealbook.rows.problems import CorruptMetadata, CorruptPayload, OtherVersion, Unreadable
from sealbook.validate import names
from sealbook.validate.evidence import content_checks
from sealbook.validate.findings import (
    Content,
    Evidence,
    Finding,
    Report,
    encode_finding,
    line_code,
    repeated_place,
)
from sealbook.validate.plan import Candidate
from sealbook.validate.verdicts import ContractJudge, reject_corrupt_metadata
from tests.support.validation import CONTRACT, RUN, key

CANDIDATE = Candidate(key(), RUN, 100)
BERLIN = Account("a", ZoneInfo("Europe/Berlin"))
OVER = SealedDay.of(BERLIN, date(2026, 1, 1), datetime(2026, 1, 1, 23, tzinfo=UTC))


def content(lines: int = 10, **offending: OffendingLines) -> Content:
    bad = sum(offending[name].count for name in ("json", "types") if name in offending)
    return Content(lines, lines - bad, offending, record_count=lines, day=OVER)


def evidence(*findings: Finding, violations: dict[int, OffendingLines] | None = None) -> Evidence:
    found = Evidence()
    encoded = [encode_finding((piece, finding)) for piece, finding in enumerate(findings)]
    found.add(Report(0, encoded, violations or {}))
    return found


def checks(found: Content, history: tuple[int, ...] = (), **changes: object) -> dict[str, Check]:
    contract = replace(CONTRACT, **changes)  # type: ignore[arg-type]
    return {check.name: check for check in content_checks(contract, found, evidence(found), history)}


def rule_check(rule: Rule, violations: int, rows: int = 100) -> Check:
    found = content(rows)
    violating = {0: OffendingLines(violations, [1])} if violations else {}
    *_, check = content_checks(
        replace(CONTRACT, rules=(rule,)), found, evidence(found, violations=violating), ()
    )
    return check


def test_a_run_that_was_fetched_before_the_end_of_its_day_is_accepted_and_remarked() -> None:
    found = checks(content())[names.DAY_OVER]
    assert found.detail == "2025-12-31 23:00 … 2026-01-01 23:00 UTC, a day of Europe/Berlin"
    early = SealedDay.of(BERLIN, date(2026, 1, 1), datetime(2026, 1, 1, 22, 59, tzinfo=UTC))
    provisional = msgspec.structs.replace(content(), day=early)
    check = checks(provisional)[names.DAY_OVER]
    assert (check.passed, check.violations, check.severity) == (False, 1, Severity.WARN)
    assert check.detail == f"{found.detail}; it was fetched before that was over: it is provisional"
    verdict = ContractJudge(CONTRACT).judge(CANDIDATE, evidence(provisional), provisional, ())
    assert verdict.accepted
    unknown = msgspec.structs.replace(content(), day=None)
    assert names.DAY_OVER not in checks(unknown), "a seal that does not say is not remarked"


def test_the_day_is_told_by_whichever_piece_read_the_seal() -> None:
    pieces = [msgspec.structs.replace(content(), day=None, record_count=None), content()]
    joined = evidence(*pieces).finding()
    assert isinstance(joined, Content)
    assert joined.day == OVER


def test_a_clean_run_passes_every_check_in_order() -> None:
    found = checks(content())

    assert list(found) == [
        *(name for name in names.CHECKS if name != names.ROW_COUNT),
        *(rule.name for rule in CONTRACT.rules),
    ]
    assert all(check.passed and not check.violations for check in found.values())


@pytest.mark.parametrize(("lines", "remarked"), [(0, False), (9_999, False), (10_000, True), (30_000, True)])
def test_whole_pages_of_rows_are_remarked_and_pass(lines: int, remarked: bool) -> None:
    """A fetch that stopped after a page of 10,000 looks like any other: the evidence says so."""
    check = checks(content(lines), allow_empty=True)[names.RECORD_COUNT]
    assert check.passed
    assert not check.violations
    assert (check.detail is not None) is remarked
    if remarked:
        assert f"{lines:,} rows are whole pages of 10,000" in str(check.detail)


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (Rule("r", "a"), 0),
        (Rule("r", "a", max_count=3), 3),
        (Rule("r", "a", max_share=Decimal("0.05")), 5),
        (Rule("r", "a", max_share=Decimal("0.05"), max_count=3), 5),
        (Rule("r", "a", max_share=Decimal("0.02"), max_count=3), 3),
        (Rule("r", "a", max_share=Decimal("1.0")), 100),
        (Rule("r", "a", max_share=Decimal("0.29")), 29),
        (Rule("r", "a", max_share=Decimal("0.57")), 57),
        (Rule("r", "a", max_share=Decimal("0.289999999999999999")), 28),
    ],
)
def test_a_rule_fails_beyond_both_its_tolerances(rule: Rule, most: int) -> None:
    assert rule_check(rule, most).passed
    if most < 100:
        check = rule_check(rule, most + 1)
        assert not check.passed
        assert (check.violations, check.lines) == (most + 1, (1,))


def test_what_is_tolerated_is_told_all_the_same() -> None:
    check = rule_check(Rule("r", "a > 0", max_share=Decimal("0.05")), 5)

    assert check.detail == "5 of 100 rows violate 'a > 0', 5% may"


@pytest.mark.parametrize(
    ("bounds", "history", "rows", "passes"),
    [
        (RowCount(min=10), (), 10, True),
        (RowCount(min=10), (), 9, False),
        (RowCount(max=10), (), 10, True),
        (RowCount(max=10), (), 11, False),
        (RowCount(min_ratio=Decimal("0.5")), (), 0, True),
        (RowCount(min_ratio=Decimal("0.5")), (20,), 10, True),
        (RowCount(min_ratio=Decimal("0.5")), (20,), 9, False),
        (RowCount(max_ratio=Decimal(2)), (20,), 40, True),
        (RowCount(max_ratio=Decimal(2)), (20,), 41, False),
        (RowCount(min_ratio=Decimal("0.55")), (100,), 55, True),
        (RowCount(min_ratio=Decimal("0.55")), (100,), 54, False),
        (RowCount(max_ratio=Decimal("1.15")), (100,), 115, True),
        (RowCount(max_ratio=Decimal("1.15")), (100,), 116, False),
        (RowCount(max_ratio=Decimal("0.3")), (3, 3, 4), 1, True),
        (RowCount(min_ratio=Decimal(1), last=2), (10, 20, 1_000), 15, True),
        (RowCount(min_ratio=Decimal(1), last=2), (10, 20, 0), 14, False),
    ],
)
def test_row_counts_are_held_against_bounds_and_the_last_accepted(
    bounds: RowCount, history: tuple[int, ...], rows: int, passes: bool
) -> None:
    found = checks(content(rows), history, row_count=bounds, allow_empty=True)

    assert found[names.ROW_COUNT].passed is passes


@pytest.mark.parametrize("allowed", [True, False])
def test_an_empty_run_passes_only_where_the_contract_says_so(allowed: bool) -> None:
    assert checks(content(0), allow_empty=allowed)[names.NOT_EMPTY].passed is allowed


def test_extra_columns_fail_a_strict_contract_only() -> None:
    found = content(extra_columns=OffendingLines(1, [1], ["more"]))

    assert checks(found)[names.EXTRA_COLUMNS].severity is Severity.WARN
    assert checks(found, strict=True)[names.EXTRA_COLUMNS].severity is Severity.ERROR
    verdict = ContractJudge(CONTRACT).judge(CANDIDATE, evidence(found), found, ())
    assert verdict.accepted


def test_a_rejection_says_what_is_wrong_and_where() -> None:
    found = content(
        json=OffendingLines(7, [1, 2, 3, 4, 5], ["a blank line", "not JSON"]),
        primary_key=OffendingLines(1, [9]),
    )
    verdict = ContractJudge(CONTRACT).judge(CANDIDATE, evidence(found), found, ())

    assert verdict.error_message == (
        "json: 7 lines are no JSON objects: a blank line, not JSON (lines 1, 2, 3, 4, 5, …);"
        " primary_key: 1 line has the campaign_id, segments_device of an earlier line (line 9)"
    )


@pytest.mark.parametrize(
    ("finding", "failed"),
    [
        (CorruptPayload(10, "ab", None, None), [names.PAYLOAD_BYTES, names.PAYLOAD_SHA256]),
        (CorruptPayload(10, "ab", 9, "cd"), [names.PAYLOAD_BYTES, names.PAYLOAD_SHA256]),
        (CorruptPayload(10, "ab", 9, "ab"), [names.PAYLOAD_BYTES]),
        (CorruptPayload(10, "ab", 10, "cd"), [names.PAYLOAD_SHA256]),
    ],
)
def test_nothing_is_said_of_the_content_of_a_corrupt_payload(
    finding: CorruptPayload, failed: list[str]
) -> None:
    """Size and digest are both told, whichever is wrong (R-VER-2)."""
    verdict = ContractJudge(CONTRACT).judge(CANDIDATE, evidence(finding), finding, ())

    assert [check.name for check in verdict.checks if not check.passed] == failed
    assert [check.name for check in verdict.checks] == list(names.CHECKS[:3])


def test_what_a_seal_says_can_always_be_recorded() -> None:
    """A verdict is stored as text: a seal could hold any character."""
    verdict = reject_corrupt_metadata(CANDIDATE, CorruptMetadata("says \0 and \ud800"))

    assert verdict.error_message == "metadata: 'says \\x00 and \\ud800'"


def _piece(lines: int) -> st.SearchStrategy[tuple[int, set[int], set[int]]]:
    some = st.sets(st.integers(1, lines), max_size=8) if lines else st.just(set[int]())
    return st.tuples(st.just(lines), some, some)


SLICED = st.lists(st.integers(0, 20).flatmap(_piece), min_size=1, max_size=5)


@given(SLICED, st.randoms())
def test_pieces_add_up_in_whatever_order_they_are_told(
    sliced: list[tuple[int, set[int], set[int]]], random: Random
) -> None:
    """Lines are numbered through the whole payload, and the first five are the first five."""
    reports, everywhere, violating, before = [], [], [], 0
    for piece, (lines, bad, violated) in enumerate(sliced):
        offending = {names.TYPES: OffendingLines(len(bad), sorted(bad)[:5])} if bad else {}
        reports.append(Report(0, [encode_finding((piece, Content(lines, lines, offending)))]))
        reports += [Report(0, (), {0: OffendingLines(1, [line_code(piece, line)])}) for line in violated]
        everywhere += [before + line for line in bad]
        violating += [before + line for line in violated]
        before += lines
    reports.append(Report(0, [encode_finding((len(sliced), Content(0, 0, {}, record_count=before)))]))
    random.shuffle(reports)
    found = Evidence()
    for report in reports:
        found.add(report)

    whole = found.finding()
    assert isinstance(whole, Content)
    assert (whole.lines, whole.record_count) == (before, before)
    told = whole.offending.get(names.TYPES, OffendingLines())
    assert (told.count, told.lines) == (len(everywhere), sorted(everywhere)[:5])
    rule = found.violating(0)
    assert (rule.count, rule.lines) == (len(violating), sorted(violating)[:5])


@pytest.mark.parametrize(
    ("findings", "kind"),
    [
        ((content(), Unreadable("away")), Unreadable),
        ((content(), CorruptPayload(1, "a", 2, None)), CorruptPayload),
        ((Unreadable("away"), CorruptPayload(1, "a", None, None)), CorruptPayload),
        ((content(), OtherVersion("2")), OtherVersion),
        ((CorruptPayload(1, "a", 2, None), CorruptMetadata("bad")), CorruptMetadata),
    ],
)
def test_one_piece_can_decide_for_the_run(findings: tuple[Finding, ...], kind: type[Finding]) -> None:
    """R-VER-4: no verdict from half a file."""
    assert isinstance(evidence(*findings).finding(), kind)


def test_repeated_keys_that_spark_found_count_as_if_a_task_had() -> None:
    found = content()
    violations = {repeated_place(CONTRACT): OffendingLines(2, [4, 9])}
    by_name = {
        check.name: check
        for check in content_checks(CONTRACT, found, evidence(found, violations=violations), ())
    }

    assert (by_name[names.PRIMARY_KEY].passed, by_name[names.PRIMARY_KEY].lines) == (False, (4, 9))


BOUNDED = replace(CONTRACT, row_count=RowCount(min=2, max=50, min_ratio=Decimal("0.5")), allow_empty=True)
FOUND = st.builds(
    Content,
    lines=st.integers(0, 4).map(lambda lines: lines * 20),
    rows=st.just(20),
    offending=st.sampled_from([{}, {}, {"json": OffendingLines(1, [2])}]),
    record_count=st.sampled_from([0, 20, 40]),
)
JUDGED = st.tuples(
    st.one_of(FOUND, st.sampled_from([content(20), content(40)])),
    st.sampled_from([{}, {}, {1: OffendingLines(1, [3])}, {2: OffendingLines(1, [3])}]),
    st.sampled_from([(), (20,), (100,)]),
)


@given(st.sampled_from([CONTRACT, BOUNDED]), JUDGED)
def test_a_run_is_accepted_unless_a_check_has_failed_that_is_no_mere_warning(
    contract: Contract, run: tuple[Content, dict[int, OffendingLines], tuple[int, ...]]
) -> None:
    found, violations, history = run
    seen = evidence(found, violations=violations)
    verdict = ContractJudge(contract).judge(CANDIDATE, seen, found, history)

    assert verdict.checks == tuple(content_checks(contract, found, seen, history))
    failed = [check for check in verdict.checks if not check.passed and check.severity is Severity.ERROR]
    assert verdict.accepted == (failed == [])
    assert verdict.record_count == (found.lines if verdict.accepted else None)
