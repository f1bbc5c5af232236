"""Verdicts and reads held against an independent reference, over contracts and payloads of all kinds.

Hypothesis draws them; all are judged in one go, since a Spark job for each would take all day.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from sealbook.book import Book
from sealbook.config import Settings, SourceSettings, SparkSettings
from sealbook.ledger import open_ledger
from sealbook.load.loader import Loader
from sealbook.model import PartitionKey, Verdict
from sealbook.model.column_types import ColumnType
from sealbook.model.contract import Column, Contract, Query, RowCount, Rule
from sealbook.model.selection import Selection
from sealbook.validate.bins import Binning
from sealbook.validate.plan import Which
from tests.support.reference import PASSED, ContractModel, Found, Row, exact, judge
from tests.support.reference_strategies import Payload, contracts, payloads
from tests.support.validation import LATER_RUN, RUN, Bench, payload_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

T = TypeVar("T")

QUERIES = 10
PAYLOADS = 20
DAY = date(2026, 1, 1)
FAILED: Found = (False, 1, ())
WIDER = {frozenset({"int", "bigint"}): "bigint"} | {
    frozenset(several): "double"
    for several in ({"int", "double"}, {"float", "double"}, {"int", "float"}, {"int", "float", "double"})
}
WIDER |= {
    frozenset({"json", "string"}): "string",
    frozenset({"int", "decimal(5,2)"}): "decimal(12,2)",
    frozenset({"bigint", "decimal(5,2)"}): "decimal(21,2)",
}


def drawn(strategy: st.SearchStrategy[T], count: int, number: int) -> list[T]:
    """Draw examples, always the same for a number."""
    found: list[T] = []

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found


@dataclass(frozen=True)
class Run:
    """A sealed run."""

    key: PartitionKey
    run_id: str
    payload: Payload


@dataclass(frozen=True)
class Drawn:
    """A query with one or two versions, and its runs in the order of keys."""

    versions: dict[str, ContractModel]
    runs: Sequence[Run]


def drawn_queries() -> dict[str, Drawn]:
    """Draw queries and what is sealed of them: two runs of each partition."""
    queries = {}
    for number in range(QUERIES):
        several = drawn(
            contracts(), 2 + number % 2 * 2, number
        )  # the first that is drawn is always the least
        name, versions = f"q{number}", dict(zip("12", several[1 + number % 2 :], strict=False))
        runs = [
            Run(
                PartitionKey("demo", f"c{place // 4}", name, DAY + timedelta(days=place // 2 % 2)),
                (RUN, LATER_RUN)[place % 2],
                payload,
            )
            for place, payload in enumerate(drawn(payloads(versions), PAYLOADS, number))
        ]
        queries[name] = Drawn(versions, runs)
    return queries


def contract_of(name: str, version: str, model: ContractModel) -> Contract:
    """Write a contract as Sealbook has it."""
    return Contract(
        name,
        version,
        tuple(Column(each, ColumnType(kind), each in model.required) for each, kind in model.types.items()),
        model.key,
        model.date_column,
        tuple(
            Rule(
                f"rule{place}",
                rule.sql,
                max_share=Decimal(rule.share.numerator) / rule.share.denominator,
                max_count=rule.count,
            )
            for place, rule in enumerate(model.rules)
        ),
        model.allow_empty,
        model.strict,
        RowCount(
            min=model.least,
            min_ratio=None
            if model.least_ratio is None
            else Decimal(model.least_ratio.numerator) / model.least_ratio.denominator,
        ),
    )


@dataclass(frozen=True)
class Expected:
    """What the reference says of a run."""

    accepted: bool
    found: dict[str, Found]
    rows: list[Row]


def expected_of(query: Drawn) -> Iterator[tuple[Run, Expected]]:
    """Ask the reference about each run, oldest first."""
    accepted: dict[PartitionKey, list[int]] = defaultdict(list)
    for run in query.runs:
        payload = run.payload
        lines = payload.data.count(b"\n") + (payload.data != b"" and not payload.data.endswith(b"\n"))
        if payload.tampered is not None and payload.data:
            size = FAILED if payload.tampered == "cut" else PASSED
            found = {"metadata": PASSED, "payload_bytes": size, "payload_sha256": FAILED}
            yield run, Expected(False, found, [])
            continue
        checks = judge(
            query.versions[payload.version],
            payload.data,
            run.key.logical_date,
            lines + payload.miscounted,
            accepted[run.key],
        )
        if checks.accepted:
            accepted[run.key].append(lines)
        yield run, Expected(checks.accepted, checks.found, checks.rows)


def seal(bench: Bench, run: Run) -> None:
    """Put a run there, and do to it what was drawn."""
    data = run.payload.data
    lines = data.count(b"\n") + (data != b"" and not data.endswith(b"\n"))
    says = {"schema_version": run.payload.version, "record_count": lines + run.payload.miscounted}
    bench.seal(run.key, data, run.run_id, says)
    if run.payload.tampered is not None and data:
        changed = data[:-1] if run.payload.tampered == "cut" else bytes([data[0] ^ 1]) + data[1:]
        payload_file(bench.root, run.key, run.run_id).write_bytes(changed)


def told_of(verdict: Verdict) -> tuple[bool, list[tuple[str, Found]]]:
    """Return what a verdict says, in the reference's words."""
    return verdict.accepted, [
        (check.name, (check.passed, check.violations, check.lines)) for check in verdict.checks
    ]


def common_type(kinds: set[str]) -> str | None:
    """Return the type that holds all of these; None if there is none."""
    return next(iter(kinds)) if len(kinds) == 1 else WIDER.get(frozenset(kinds))


def expected_rows(
    query: Drawn, expected: dict[tuple[PartitionKey, str], Expected], columns: dict[str, str]
) -> list[tuple[object, ...]]:
    """Return what a read must give: of each partition the newest accepted run, in the order of keys."""
    rows = []
    for key in sorted({run.key for run in query.runs}):
        accepted = [run for run in query.runs if run.key == key and expected[key, run.run_id].accepted]
        if accepted:
            newest = max(accepted, key=lambda run: run.run_id)
            for row in expected[key, newest.run_id].rows:
                values = (_widened(row.get(name), kind) for name, kind in columns.items())
                rows.append((key.customer_id, key.logical_date, newest.run_id, *values))
    return rows


def _widened(value: Any, kind: str) -> object:
    if kind.startswith("decimal") and value is not None:
        return Decimal(value).quantize(Decimal("0.01"))
    return float(value) if kind == "double" and value is not None else value


def shown(rows: Sequence[dict[str, object]], columns: Sequence[str]) -> list[tuple[object, ...]]:
    """Return rows as tuples that tell 0.0 from -0.0, and 1 from 1.0."""
    return [exact(row[name] for name in columns) for row in rows]


def told(rows: Iterable[Iterable[object]]) -> list[str]:
    """Return rows of Spark or of Arrow as the same texts: times in UTC, maps as pairs, in text order."""
    return sorted(str(exact(map(_told, row))) for row in rows)


def _told(value: object) -> object:
    match value:
        case datetime():
            return value.replace(tzinfo=UTC)
        case dict() if "x" not in value:  # a map; structs have an x
            return sorted(value.items(), key=str)
        case [tuple(), *_]:
            return sorted(value, key=str)
    return value


def test_verdicts_and_reads_are_those_of_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    """R-VER-1 to 3, R-CON-1, R-CON-6: every check of every run, sliced or whole; every row of every read."""
    drawn_by_name = drawn_queries()
    queries = {
        name: Query(
            "demo",
            name,
            "select",
            "1",
            {version: contract_of(name, version, model) for version, model in each.versions.items()},
        )
        for name, each in drawn_by_name.items()
    }
    expected: dict[tuple[PartitionKey, str], Expected] = {}
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        bench = Bench(tmp_path / "raw", ledger, spark, tuple(queries.values()))
        for each in drawn_by_name.values():
            for run, reference in expected_of(each):
                seal(bench, run)
                expected[run.key, run.run_id] = reference

        bench.binning = Binning(2, sliced_above=400, slice_bytes=300)
        sliced = bench.judge(bench.validator.plan(Selection(), Which.NEW, dry_run=True))
        bench.binning = None
        whole = bench.validate()

        for outcome in (sliced, whole):
            assert not outcome.not_judged
            assert len(outcome.verdicts) == len(expected)
            for run in chain.from_iterable(each.runs for each in drawn_by_name.values()):
                reference = expected[run.key, run.run_id]
                verdict = outcome.verdict(run.key, run.run_id)
                model = drawn_by_name[run.key.query_name].versions[run.payload.version]
                assert told_of(verdict) == (reference.accepted, list(reference.found.items())), (model, run)
        assert 30 < sum(each.accepted for each in expected.values()) < len(expected) - 50

        loader = Loader(
            ledger.pointers,
            queries.values(),
            lambda: spark,
            raw_url=str(tmp_path / "raw"),
            warehouse_url=str(tmp_path / "warehouse"),
        )
        list(loader.run(loader.plan(Selection())))

    book = Book(
        Settings(
            root=tmp_path,
            ledger=f"sqlite:///{tmp_path}/book.db",
            raw=str(tmp_path / "raw"),
            warehouse=str(tmp_path / "warehouse"),
            sources={"demo": SourceSettings("demo", ("c0",), queries, {})},
            spark=SparkSettings(),
        )
    )
    with book:
        for number, (name, each) in enumerate(drawn_by_name.items()):
            kinds: dict[str, set[str]] = defaultdict(set)
            for model in each.versions.values():
                for column, kind in model.types.items():
                    kinds[column].add(kind)
            columns = {column: common for column in kinds if (common := common_type(kinds[column]))}
            names = ["customer_id", "logical_date", "run_id", *columns]
            rows = [exact(row) for row in expected_rows(each, expected, columns)]

            table = book.table(name, columns=names)
            asked = book.sql(f"select {', '.join(names)} from {name}")

            assert shown(table.to_pylist(), names) == rows
            assert shown(asked.to_pylist(), names) == rows
            assert asked.schema == table.schema
            frame = book.read(name, spark=spark, columns=names, scan=("source", "parquet")[number % 2])
            assert frame.count() == len(rows)
            kept = {column: "string" if kind == "json" else kind for column, kind in columns.items()}
            assert {field.name: field.dataType.simpleString() for field in frame.schema.fields[3:]} == kept
            collected = [row.asDict(recursive=True).values() for row in frame.collect()]
            assert told(collected) == told(expected_rows(each, expected, columns))
