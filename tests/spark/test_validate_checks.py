"""Every check bites where it should, and nowhere else, on real Spark (R-VER-1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

import pytest

from sealbook.ledger import open_ledger
from sealbook.model import PartitionKey, Severity
from sealbook.model.contract import Contract, RowCount, Rule
from sealbook.model.sealed_day import SealedDay
from sealbook.model.universe import Account
from sealbook.validate import names
from tests.support.validation import (
    CONTRACT,
    DAY,
    LATER_RUN,
    Bench,
    Outcome,
    encoded,
    key,
    payload_file,
    query,
    row,
    rows,
    without,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

Lines = Sequence[object]

BASE = replace(CONTRACT, rules=())
STRICT = replace(BASE, query_name="strict", strict=True)
EMPTY = replace(BASE, query_name="empty", allow_empty=True)
BOUNDED = replace(BASE, query_name="bounded", row_count=RowCount(min=2, max=4))
RELATIVE = replace(
    BASE,
    query_name="relative",
    row_count=RowCount(min_ratio=Decimal("0.5"), max_ratio=Decimal("2.0"), last=2),
    allow_empty=True,
)
RULED = replace(
    BASE,
    query_name="ruled",
    rules=(
        Rule("exact", "metrics_cost_micros >= 0"),
        Rule("by_share", "metrics_clicks <= metrics_impressions", max_share=Decimal("0.2")),
        Rule("by_count", "campaign_name like 'Campaign%'", max_count=2),
        Rule("by_either", "metrics_impressions < 1000", max_share=Decimal("0.1"), max_count=3),
        Rule("warning", "metrics_conversions <= 5", severity=Severity.WARN),
        Rule("dividing", "10 / (metrics_clicks - 5) > 0"),
    ),
)
CONTRACTS = (BASE, STRICT, EMPTY, BOUNDED, RELATIVE, RULED)


@dataclass(frozen=True)
class Case:
    """Two payloads: one in which a check finds something, in these lines, and one in which it must not."""

    check: str
    bad: Lines | bytes
    lines: tuple[int, ...] = ()
    violations: int = 1
    good: Lines | bytes = field(default_factory=lambda: rows(3))
    contract: Contract = BASE
    good_contract: Contract | None = None
    """That of the good one, if it is another."""
    severity: Severity = Severity.ERROR
    bad_seal: Mapping[str, object] = field(default_factory=dict)
    good_seal: Mapping[str, object] = field(default_factory=dict)
    besides: tuple[str, ...] = ()
    """Checks that cannot but fail with it."""
    tampered: bytes | None = None
    """What the payload of the bad run is changed to after its seal."""
    earlier: Sequence[int] = ()
    """Rows of earlier runs of both partitions; those out of bounds are rejected, and do not count."""


def changed(count: int, lines: Sequence[int], **changes: object) -> list[dict[str, object]]:
    """Return rows of which some are changed."""
    return [row(line) | (changes if line in lines else {}) for line in range(1, count + 1)]


PAYLOAD = encoded(rows(3))

DAY_THEN = SealedDay.of(Account("a"), DAY, datetime(2026, 1, 2, tzinfo=UTC))

CASES = {
    "seal before the end of the day": Case(
        names.DAY_OVER,
        rows(3),
        bad_seal=replace(DAY_THEN, provisional=True).to_fields(),
        good_seal=DAY_THEN.to_fields(),
        severity=Severity.WARN,
    ),
    "seal of another customer": Case(names.METADATA, rows(3), bad_seal={"customer_id": "other"}),
    "seal of another day": Case(names.METADATA, rows(3), bad_seal={"logical_date": "2026-01-02"}),
    "seal of another run": Case(names.METADATA, rows(3), bad_seal={"run_id": LATER_RUN}),
    "seal without a digest": Case(names.METADATA, rows(3), bad_seal={"payload_sha256": None}),
    "shorter payload": Case(
        names.PAYLOAD_BYTES, PAYLOAD, tampered=PAYLOAD[:-1], besides=(names.PAYLOAD_SHA256,)
    ),
    "longer payload": Case(
        names.PAYLOAD_BYTES, PAYLOAD, tampered=PAYLOAD + b"\n", besides=(names.PAYLOAD_SHA256,)
    ),
    "changed payload": Case(names.PAYLOAD_SHA256, PAYLOAD, tampered=PAYLOAD.replace(b"1000", b"1001", 1)),
    "no JSON": Case(names.JSON, [row(1), b"{oops", row(3)], lines=(2,)),
    "no object": Case(names.JSON, [row(1), b'"text"', b"[]"], lines=(2, 3), violations=2),
    "fewer records": Case(names.RECORD_COUNT, rows(3), bad_seal={"record_count": 4}),
    "text for a number": Case(names.TYPES, changed(3, [3], metrics_clicks="10"), lines=(3,)),
    "beyond range": Case(
        names.TYPES,
        changed(3, [1], metrics_clicks=2**63),
        lines=(1,),
        good=changed(3, [1], metrics_impressions=2**63 - 1),
    ),
    "null where required": Case(
        names.REQUIRED,
        changed(3, [2], segments_device=None),
        lines=(2,),
        good=changed(3, [2], campaign_name=None),
    ),
    "absent where required": Case(
        names.REQUIRED,
        [without(row(1), "metrics_clicks"), row(2)],
        lines=(1,),
        good=[without(row(1), "campaign_name"), row(2)],
    ),
    "extra columns, reported": Case(
        names.EXTRA_COLUMNS, changed(3, [2], more=1), lines=(2,), severity=Severity.WARN
    ),
    "extra columns, strict": Case(names.EXTRA_COLUMNS, changed(3, [2], more=1), lines=(2,), contract=STRICT),
    "repeated key": Case(
        names.PRIMARY_KEY,
        [row(1), row(2), row(1), row(1)],
        lines=(3, 4),
        violations=2,
        good=[row(1), row(1, segments_device="DESKTOP")],
    ),
    "other day": Case(names.DATE_COLUMN, changed(3, [1], segments_date="2026-01-02"), lines=(1,)),
    "empty": Case(names.NOT_EMPTY, b"", good=rows(1)),
    "empty, where it is allowed": Case(names.NOT_EMPTY, b"", good=b"", good_contract=EMPTY),
    "too few rows": Case(names.ROW_COUNT, rows(1), good=rows(2), contract=BOUNDED),
    "too many rows": Case(names.ROW_COUNT, rows(5), good=rows(4), contract=BOUNDED),
    "fewer rows than usual": Case(
        names.ROW_COUNT, rows(17), good=rows(18), contract=RELATIVE, earlier=(50, 40, 10, 30)
    ),
    "more rows than usual": Case(
        names.ROW_COUNT, rows(17), good=rows(16), contract=RELATIVE, earlier=(10, 30, 6)
    ),
    "rule": Case("exact", changed(3, [2], metrics_cost_micros=-1), lines=(2,), contract=RULED),
    "rule that is null": Case(
        "warning",
        changed(3, [2], metrics_conversions=None),
        lines=(2,),
        contract=RULED,
        severity=Severity.WARN,
    ),
    "rule that cannot be computed": Case(
        "dividing", changed(3, [3], metrics_clicks=5), lines=(3,), contract=RULED
    ),
    "rule, share exceeded": Case(
        "by_share",
        changed(10, [2, 5, 9], metrics_clicks=101),
        lines=(2, 5, 9),
        violations=3,
        good=changed(10, [2, 5], metrics_clicks=101),
        contract=RULED,
    ),
    "rule, count exceeded": Case(
        "by_count",
        changed(30, [7, 8, 30], campaign_name="Other"),
        lines=(7, 8, 30),
        violations=3,
        good=changed(30, [7, 30], campaign_name="Other"),
        contract=RULED,
    ),
    "rule, both exceeded": Case(
        "by_either",
        changed(20, range(4, 14), metrics_impressions=1000),
        lines=(4, 5, 6, 7, 8),
        violations=10,
        good=changed(20, [4, 5, 6], metrics_impressions=1000),
        contract=RULED,
    ),
    "rule that warns": Case(
        "warning",
        changed(3, [1], metrics_conversions=6),
        lines=(1,),
        contract=RULED,
        severity=Severity.WARN,
    ),
}


@pytest.fixture(scope="module")
def outcome(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """What is found in all cases, in one go: a job for each contract."""
    root = tmp_path_factory.mktemp("checks") / "raw"
    with open_ledger("sqlite://") as ledger:
        bench = Bench(root, ledger, spark, tuple(map(query, CONTRACTS)))
        for number, case in enumerate(CASES.values()):
            bad, good = places(case, number)
            for place, (earlier, count) in product((bad, good), enumerate(case.earlier)):
                bench.seal(place, rows(count), f"01H{earlier:023}")
            bench.seal(bad, case.bad, says=case.bad_seal)
            bench.seal(good, case.good, says=case.good_seal)
            if case.tampered is not None:
                payload_file(root, bad).write_bytes(case.tampered)
        outcome = bench.validate()
        assert not outcome.not_judged
        yield outcome


def places(case: Case, number: int) -> tuple[PartitionKey, PartitionKey]:
    """Return where the bad and the good partition of a case are."""
    good_contract = case.good_contract or case.contract
    return key(f"bad{number}", DAY, case.contract.query_name), key(
        f"good{number}", DAY, good_contract.query_name
    )


@pytest.mark.parametrize("name", CASES)
def test_a_check_bites(outcome: Outcome, name: str) -> None:
    case = CASES[name]
    bad, _ = places(case, list(CASES).index(name))

    found = (case.violations, case.lines)
    assert outcome.failed(bad) == dict.fromkeys((case.check, *case.besides), found)
    assert outcome.check(bad, case.check).severity is case.severity
    verdict = outcome.verdict(bad)
    assert verdict.accepted is (case.severity is Severity.WARN)
    assert verdict.accepted or f"{case.check}: " in str(verdict.error_message)


@pytest.mark.parametrize("name", CASES)
def test_a_check_does_not_bite(outcome: Outcome, name: str) -> None:
    case = CASES[name]
    _, good = places(case, list(CASES).index(name))

    assert outcome.failed(good) == {}
    assert outcome.check(good, case.check).passed
    assert outcome.verdict(good).accepted


def test_every_check_has_a_case() -> None:
    assert {case.check for case in CASES.values()} == {*names.CHECKS, *(rule.name for rule in RULED.rules)}
