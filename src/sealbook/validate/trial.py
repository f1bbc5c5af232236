"""A contract put to the test: faults are seeded into copies of an accepted run, and judged."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sealbook.errors import InvalidInput, NotFound, Transient
from sealbook.model import Check, PartitionKey, PartitionState, RunId, Severity, Status, Verdict
from sealbook.model.contract import Contract, Query
from sealbook.raw import RawReader, RawStore
from sealbook.raw.layout import RunPaths
from sealbook.rows.problems import CorruptMetadata, CorruptPayload
from sealbook.validate import names
from sealbook.validate.bins import Binning
from sealbook.validate.contracts import rule_columns
from sealbook.validate.faults import Fault, seeded_faults
from sealbook.validate.findings import Content, Evidence
from sealbook.validate.job import Job, run_job
from sealbook.validate.plan import Candidate
from sealbook.validate.verdicts import ContractJudge, reject_corrupt_metadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_ROWS = 1_000
"""Of the run that faults are seeded into."""


@dataclass(frozen=True, slots=True)
class Bite:
    """What a check makes of a fault: it bites if it fails. The fault of a rule is the first that it finds."""

    source: str
    query_name: str
    schema_version: str
    check: str
    fault: str
    bites: bool
    severity: Severity
    detail: str | None


def accepted_samples(states: Iterable[PartitionState]) -> list[PartitionState]:
    """Choose of accepted partitions with rows the newest of each query and schema_version.

    NotFound if there is none.
    """
    newest: dict[tuple[str, str, str | None], PartitionState] = {}
    for state in states:
        if state.status is Status.SUCCESS and state.record_count:
            name = (state.key.source, state.key.query_name, state.schema_version)
            if name not in newest or newest[name].key.logical_date <= state.key.logical_date:
                newest[name] = state
    if not newest:
        raise NotFound(
            "no partition that is chosen is accepted and has rows",
            remedy="`sealbook state inspect --status success` shows those that are.",
        )
    return list(newest.values())


def try_contract(
    spark: SparkSession, raw: RawReader, query: Query, key: PartitionKey, run_id: RunId
) -> Iterator[Bite]:
    """Seed faults into copies of the first rows of an accepted run, and say of each check whether it bites.

    InvalidInput if the run has no rows, or no contract.
    """
    sealed = raw.read(key, run_id)
    contract = query.contracts.get(sealed.metadata.schema_version)
    if contract is None:
        raise InvalidInput.of(
            f"schema_version of {key}", sealed.metadata.schema_version, f"one of {', '.join(query.contracts)}"
        )
    rows = [line.strip() for line in islice(sealed.lines(), MOST_ROWS)]
    if not rows:
        raise InvalidInput.of("partition", str(key), "one that has rows")
    read = _columns_of_rules(spark, query, contract)
    untouched = Fault("", "no fault", rows)
    faults = [untouched, *seeded_faults(contract, rows, key.logical_date, read)]
    with TemporaryDirectory(prefix="sealbook-trial-") as folder:
        candidates = list(_sealed_copies(Path(folder), contract, key, run_id, faults))
        verdicts = dict(_judged(spark, RawStore.open(folder), query, contract, candidates, len(rows)))
    # A sample may be too short for the bounds of its partition: they are tried by counts of their own.
    lame = {check.name for check in verdicts[0].checks if not check.passed} - {names.ROW_COUNT}
    tried = [(fault, _check(verdicts[place], fault.check)) for place, fault in enumerate(faults)][1:]
    for (name, _), several in groupby(tried, key=lambda each: _group(each[0])):
        found = list(several)
        fault, check = next((each for each in found if each[1] is not None and not each[1].passed), found[0])
        bites = check is not None and not check.passed and name not in lame
        yield Bite(
            query.source,
            query.name,
            contract.schema_version,
            name,
            "it fails without any fault" if name in lame else fault.what,
            bites,
            Severity.ERROR if check is None else check.severity,
            None if check is None else check.detail,
        )


def _group(fault: Fault) -> tuple[str, str | None]:
    """Return what is told together: all faults of a rule, of which one is enough; else each by itself."""
    return fault.check, fault.what if fault.check in names.CHECKS else None


def _columns_of_rules(spark: SparkSession, query: Query, contract: Contract) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for rule in contract.rules:
        alone = replace(contract, rules=(rule,))
        of_version = replace(query, contracts={**query.contracts, contract.schema_version: alone})
        found[rule.name] = rule_columns(spark, of_version)[contract.schema_version]
    return found


def _sealed_copies(
    folder: Path, contract: Contract, key: PartitionKey, run_id: RunId, faults: Iterable[Fault]
) -> Iterator[Candidate]:
    """Seal a copy for each fault, as a partition of a customer of its own."""
    store = RawStore.open(folder)
    for place, fault in enumerate(faults):
        copy = PartitionKey(key.source, f"{place:010}", key.query_name, key.logical_date)
        payload = store.write(copy, run_id, fault.lines)
        seal = store.seal(
            copy,
            run_id,
            payload,
            schema_version=contract.schema_version,
            query_hash="0" * 64,
            extracted_at=datetime.now(UTC),
            api_version=None,
        )
        if fault.tampered is not None:
            _tamper(folder / RunPaths(copy, run_id).directory, fault.tampered)
        yield Candidate(copy, run_id, seal.payload_bytes, contract.schema_version)


def _tamper(directory: Path, how: str) -> None:
    metadata = directory / "metadata.json"
    [payload] = directory.glob("payload*.jsonl")
    match how:
        case names.METADATA:
            said = json.loads(metadata.read_text())
            metadata.write_text(json.dumps({**said, "run_id": "0" * 26}))
        case names.RECORD_COUNT:
            said = json.loads(metadata.read_text())
            metadata.write_text(json.dumps({**said, "record_count": said["record_count"] + 1}))
        case names.PAYLOAD_BYTES:
            payload.write_bytes(payload.read_bytes()[:-1])
        case names.PAYLOAD_SHA256:
            data = payload.read_bytes()
            payload.write_bytes(bytes([data[0] ^ 1]) + data[1:])


def _judged(
    spark: SparkSession,
    raw: RawReader,
    query: Query,
    contract: Contract,
    candidates: Sequence[Candidate],
    usual: int,
) -> Iterator[tuple[int, Verdict]]:
    """Judge copies as the validator does, with the rows of the run as what is usual."""
    bins = Binning(spark.sparkContext.defaultParallelism).bins(list(enumerate(candidates)))
    job = Job(contract, rule_columns(spark, query)[contract.schema_version], bins)
    evidence: dict[int, Evidence] = defaultdict(Evidence)
    for reports in run_job(spark, raw, job):
        for report in reports:
            evidence[report.ordinal].add(report)
    judge = ContractJudge(contract)
    for place, candidate in enumerate(candidates):
        match evidence[place].finding():
            case Content() | CorruptPayload() as finding:
                yield place, judge.judge(candidate, evidence[place], finding, (usual,))
            case CorruptMetadata() as finding:
                yield place, reject_corrupt_metadata(candidate, finding)
            case problem:
                raise Transient(
                    f"the copies in {raw.url} cannot be judged: {problem}",
                    remedy="Workers must see that folder: try contracts with `spark.master: local[*]`.",
                )


def _check(verdict: Verdict, name: str) -> Check | None:
    """Return a check of a verdict; None if it was not come to."""
    return next((check for check in verdict.checks if check.name == name), None)
