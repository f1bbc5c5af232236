"""Raw runs for the validator: good ones by the hundred, and bad ones with known faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealbook.ledger import Ledger
from sealbook.model import Check, PartitionKey, RunId, Severity, Verdict
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query, RowCount, Rule
from sealbook.model.selection import Selection
from sealbook.raw import RawReader, RawStore
from sealbook.raw.layout import RunPaths
from sealbook.validate.plan import ValidatePlan, Which
from sealbook.validate.results import Judged, NotJudged
from sealbook.validate.validator import Validator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.validate.bins import Binning

ALL = Selection()

RUN = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")
LATER_RUN = RunId("01J9ZQ6T5N8W3Y2V7R4K9M0XCE")
LATEST_RUN = RunId("01JAZQ6T5N8W3Y2V7R4K9M0XCE")
DAY = date(2026, 1, 1)

COLUMNS = (
    Column("campaign_id", ColumnType.BIGINT, required=True),
    Column("campaign_name", ColumnType.STRING),
    Column("segments_date", ColumnType.DATE, required=True),
    Column("segments_device", ColumnType.STRING, required=True),
    Column("metrics_impressions", ColumnType.BIGINT, required=True),
    Column("metrics_clicks", ColumnType.BIGINT, required=True),
    Column("metrics_conversions", ColumnType.DOUBLE),
    Column("metrics_cost_micros", ColumnType.BIGINT, required=True),
)
RULES = (
    Rule("cost_not_negative", "metrics_cost_micros >= 0"),
    Rule("clicks_within_impressions", "metrics_clicks <= metrics_impressions", max_share=Decimal("0.1")),
    Rule("few_conversions", "metrics_conversions <= 5", severity=Severity.WARN),
)
CONTRACT = Contract(
    "campaign_daily",
    "1",
    COLUMNS,
    primary_key=("campaign_id", "segments_device"),
    date_column="segments_date",
    rules=RULES,
)


def query(*contracts: Contract, source: str = "demo") -> Query:
    """Return a query whose present version is the first contract's."""
    [name] = {contract.query_name for contract in contracts}
    by_version = {contract.schema_version: contract for contract in contracts}
    return Query(source, name, "SELECT", contracts[0].schema_version, by_version)


QUERY = query(CONTRACT)


def key(customer: object = "c0", day: date = DAY, query_name: str = "campaign_daily") -> PartitionKey:
    """Return a key of the demo source."""
    return PartitionKey("demo", str(customer), query_name, day)


def row(number: int = 1, day: date = DAY, **changes: object) -> dict[str, object]:
    """Return a row that keeps the contract, with some columns changed."""
    return {
        "campaign_id": number,
        "campaign_name": f"Campaign {number}",
        "segments_date": day.isoformat(),
        "segments_device": "MOBILE",
        "metrics_impressions": 100,
        "metrics_clicks": 10,
        "metrics_conversions": 0.5,
        "metrics_cost_micros": 1000,
        **changes,
    }


def rows(count: int, day: date = DAY) -> list[dict[str, object]]:
    """Return rows that keep the contract."""
    return [row(number, day) for number in range(1, count + 1)]


def without(record: Mapping[str, object], name: str) -> dict[str, object]:
    """Return a row without a column."""
    return {each: value for each, value in record.items() if each != name}


def encoded(lines: Iterable[object]) -> bytes:
    """Return a payload of objects, and of bytes that are lines as they are."""
    return b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )


def seal(
    root: Path,
    partition: PartitionKey,
    payload: bytes | Sequence[object],
    run_id: str = RUN,
    says: Mapping[str, object] = {},
) -> PartitionKey:
    """Put a sealed run there, the quick way; `says` makes the seal say something else."""
    data = payload if isinstance(payload, bytes) else encoded(payload)
    paths = RunPaths(partition, RunId(run_id))
    (root / paths.directory).mkdir(parents=True)
    (root / paths.payload()).write_bytes(data)
    said: dict[str, Any] = {
        "source": partition.source,
        "customer_id": partition.customer_id,
        "query_name": partition.query_name,
        "logical_date": partition.logical_date.isoformat(),
        "run_id": run_id,
        "extracted_at": "2026-01-02T00:00:00Z",
        "schema_version": "1",
        "record_count": data.count(b"\n") + (not data.endswith(b"\n") and data != b""),
        "api_version": None,
        "query_hash": "0" * 64,
        "payload_bytes": len(data),
        "payload_sha256": sha256(data).hexdigest(),
        **says,
    }
    (root / paths.metadata).write_text(json.dumps(said))
    return partition


def accept(partition: PartitionKey, run_id: str, count: int, revalidation_id: str | None = None) -> Verdict:
    """Return an acceptance."""
    return Verdict.accept(
        partition,
        run_id,
        schema_version="1",
        record_count=count,
        validator_version="v",
        revalidation_id=revalidation_id,
    )


def reject(partition: PartitionKey, run_id: str, revalidation_id: str | None = None) -> Verdict:
    """Return a rejection."""
    return Verdict.reject(
        partition, run_id, error_message="bad", validator_version="v", revalidation_id=revalidation_id
    )


def payload_file(root: Path, partition: PartitionKey, run_id: str = RUN) -> Path:
    """Return where the payload of a run lies."""
    return root / RunPaths(partition, RunId(run_id)).payload()


@dataclass
class Outcome:
    """All that a validation said, by partition and run."""

    verdicts: dict[tuple[PartitionKey, RunId], Verdict] = field(default_factory=dict)
    not_judged: dict[tuple[PartitionKey, RunId], NotJudged] = field(default_factory=dict)

    def verdict(self, partition: PartitionKey, run_id: str = RUN) -> Verdict:
        """Return the verdict on a run."""
        return self.verdicts[partition, RunId(run_id)]

    def check(self, partition: PartitionKey, name: str, run_id: str = RUN) -> Check:
        """Return one check of the verdict on a run."""
        [check] = [check for check in self.verdict(partition, run_id).checks if check.name == name]
        return check

    def failed(self, partition: PartitionKey, run_id: str = RUN) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Return the checks that failed, with how many lines offend and which."""
        return {
            check.name: (check.violations, check.lines)
            for check in self.verdict(partition, run_id).checks
            if not check.passed
        }


def new_validator(
    ledger: Ledger,
    raw: RawReader,
    queries: Iterable[Query],
    spark: Callable[[], SparkSession],
    binning: Binning | None = None,
) -> Validator:
    """Return a validator that is handed the parts of a ledger that it needs."""
    return Validator(ledger.reader, ledger.verdicts, ledger.contracts, lambda: raw, queries, spark, binning)


@dataclass
class Bench:
    """A raw folder, a ledger and a validator for tests."""

    root: Path
    ledger: Ledger
    spark: SparkSession
    queries: tuple[Query, ...] = (QUERY,)
    binning: Binning | None = None

    @property
    def validator(self) -> Validator:
        """A validator of what is there now."""
        return new_validator(
            self.ledger, RawStore.open(self.root), self.queries, lambda: self.spark, self.binning
        )

    def seal(
        self,
        partition: PartitionKey,
        payload: bytes | Sequence[object],
        run_id: str = RUN,
        says: Mapping[str, object] = {},
    ) -> PartitionKey:
        """Put a sealed run there."""
        return seal(self.root, partition, payload, run_id, says)

    def validate(self, selection: Selection = ALL) -> Outcome:
        """Judge what is new."""
        return self.judge(self.validator.plan(selection))

    def validate_again(self, selection: Selection = ALL, *, dry_run: bool = False) -> Outcome:
        """Judge what is accepted."""
        return self.judge(self.validator.plan(selection, Which.ACCEPTED, dry_run=dry_run))

    def judge(self, plan: ValidatePlan) -> Outcome:
        """Judge what is planned, and see that each run is told of once."""
        outcome = Outcome()
        for result in chain.from_iterable(self.validator.run(plan)):
            if isinstance(result, Judged):
                name = (result.verdict.key, result.verdict.run_id)
                assert name not in outcome.verdicts
                outcome.verdicts[name] = result.verdict
            else:
                assert (result.key, result.run_id) not in outcome.not_judged
                outcome.not_judged[result.key, result.run_id] = result
        return outcome


def ledger_content(ledger: Ledger) -> list[object]:
    """Return everything that validators have written, but for when."""
    content: list[object] = []
    for state in ledger.states():
        content.append(
            (state.key, state.status, state.current_run_id, state.record_count, state.error_message)
        )
        content.extend(
            (attempt.attempt, attempt.run_id, attempt.outcome, attempt.error_message, attempt.checks)
            for attempt in ledger.attempts(state.key)
        )
    return content


def days(count: int) -> list[date]:
    """Return days in a row."""
    return [DAY + timedelta(days=number) for number in range(count)]


BOUNDED = RowCount(min=2, max=8, min_ratio=Decimal("0.5"), max_ratio=Decimal("2.0"), last=2)
