"""From what the tasks found of a run to its checks (R-VER-2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache

from sealbook.model import Check, Severity
from sealbook.model.contract import Contract, RowCount, Rule
from sealbook.model.sealed_day import SealedDay
from sealbook.model.words import counted
from sealbook.rows.offending import OffendingLines
from sealbook.rows.problems import CorruptMetadata, CorruptPayload
from sealbook.validate import names
from sealbook.validate.findings import Content, Evidence, repeated_place

Describe = Callable[[OffendingLines], str]

_PAGE = 10_000
"""How many rows a page of Google Ads has, and of many another API."""


def metadata_checks(corrupt: CorruptMetadata) -> Iterator[Check]:
    """Yield the one check that can be made of a run whose seal cannot be believed."""
    detail = corrupt.reason if corrupt.reason.isprintable() else ascii(corrupt.reason)
    yield Check(names.METADATA, passed=False, violations=1, detail=detail)


def payload_checks(corrupt: CorruptPayload) -> Iterator[Check]:
    """Yield the checks of a payload that is not what was sealed; nothing in it is looked at."""
    yield _passed(names.METADATA)
    if corrupt.size == corrupt.sealed_size:
        yield _passed(names.PAYLOAD_BYTES)
    else:
        found = "is missing" if corrupt.size is None else f"has {corrupt.size} bytes"
        detail = f"the payload {found}, and {corrupt.sealed_size} bytes were sealed"
        yield Check(names.PAYLOAD_BYTES, passed=False, violations=1, detail=detail)
    if corrupt.sha256 == corrupt.sealed_sha256:
        yield _passed(names.PAYLOAD_SHA256)
    else:
        found = "is missing" if corrupt.sha256 is None else f"has the digest {corrupt.sha256}"
        detail = f"the payload {found}, and {corrupt.sealed_sha256} was sealed"
        yield Check(names.PAYLOAD_SHA256, passed=False, violations=1, detail=detail)


def content_checks(
    contract: Contract, content: Content, evidence: Evidence, history: Sequence[int]
) -> Iterator[Check]:
    """Yield every check of a payload that is what was sealed.

    `history` are the record counts of the accepted runs before this one, the newest first.
    """

    def lines(check: str, describe: Describe, severity: Severity = Severity.ERROR) -> Check:
        offending = content.offending.get(check)
        return _passed(check) if offending is None else _failed(check, offending, describe, severity)

    yield from map(_passed, (names.METADATA, names.PAYLOAD_BYTES, names.PAYLOAD_SHA256))
    yield lines(names.JSON, lambda bad: f"{_are(bad, 'no JSON object', 'no JSON objects')}{_reasons(bad)}")
    yield _record_count(content)
    yield lines(names.TYPES, lambda bad: f"{_have(bad)} a value of the wrong type{_reasons(bad)}")
    yield lines(names.REQUIRED, lambda bad: f"{_have(bad)} no value in a required column{_reasons(bad)}")
    yield lines(
        names.EXTRA_COLUMNS,
        lambda bad: f"{_have(bad)} columns that the contract does not have{_reasons(bad)}",
        Severity.ERROR if contract.strict else Severity.WARN,
    )
    if contract.primary_key:
        yield _primary_key(contract, content, evidence.violating(repeated_place(contract)))
    if contract.date_column is not None:
        column = contract.date_column
        yield lines(names.DATE_COLUMN, lambda bad: f"{_have(bad)} another {column} than the logical date")
    yield _not_empty(contract, content)
    if _is_bounded(contract.row_count):
        yield _row_count(contract.row_count, content.lines, history)
    if content.day is not None:
        yield _day_over(content.day)
    for place, rule in enumerate(contract.rules):
        yield _rule(rule, evidence.violating(place), content.rows)


def failures(checks: Sequence[Check]) -> str:
    """Say in one line what the failed checks found, and where."""
    return "; ".join(
        f"{check.name}: {check.detail}{_where(check)}"
        for check in checks
        if not check.passed and check.severity is Severity.ERROR
    )


def _record_count(content: Content) -> Check:
    if content.lines == content.record_count:
        if content.lines % _PAGE or not content.lines:
            return _passed(names.RECORD_COUNT)
        detail = f"{content.lines:,} rows are whole pages of {_PAGE:,}: was the fetch cut off after one?"
        return Check(names.RECORD_COUNT, passed=True, detail=detail)
    sealed = counted(content.record_count or 0, "record", "was", "were")
    detail = f"the payload has {counted(content.lines, 'line')}, and {sealed} sealed"
    return Check(names.RECORD_COUNT, passed=False, violations=1, detail=detail)


def _primary_key(contract: Contract, content: Content, across_tasks: OffendingLines) -> Check:
    repeated = content.offending.get(names.PRIMARY_KEY, across_tasks)
    if not repeated.count:
        return _passed(names.PRIMARY_KEY)
    columns = ", ".join(contract.primary_key)
    return _failed(
        names.PRIMARY_KEY,
        repeated,
        lambda bad: f"{_have(bad)} the {columns} of an earlier line{_reasons(bad)}",
    )


def _not_empty(contract: Contract, content: Content) -> Check:
    if content.lines or contract.allow_empty:
        return _passed(names.NOT_EMPTY)
    return Check(names.NOT_EMPTY, passed=False, violations=1, detail="the partition is empty")


def _is_bounded(bounds: RowCount) -> bool:
    return bounds != RowCount(last=bounds.last)


def _row_count(bounds: RowCount, rows: int, history: Sequence[int]) -> Check:
    history = history[: bounds.last]
    broken = []
    if bounds.min is not None and rows < bounds.min:
        broken.append(f"at least {bounds.min}")
    if bounds.max is not None and rows > bounds.max:
        broken.append(f"at most {bounds.max}")
    if history:
        usual = Fraction(sum(history), len(history))
        compared = f"the mean of the last {len(history)} accepted, which is {float(usual):g}"
        if bounds.min_ratio is not None and rows < Fraction(bounds.min_ratio) * usual:
            broken.append(f"at least {bounds.min_ratio:f} of {compared}")
        if bounds.max_ratio is not None and rows > Fraction(bounds.max_ratio) * usual:
            broken.append(f"at most {bounds.max_ratio:f} times {compared}")
    if not broken:
        return _passed(names.ROW_COUNT)
    detail = f"the partition has {counted(rows, 'row')}, and must have {', and '.join(broken)}"
    return Check(names.ROW_COUNT, passed=False, violations=1, detail=detail)


def _day_over(day: SealedDay) -> Check:
    """Say when the day was; a run that was fetched before its end is provisional, and no worse for that."""
    late = "; it was fetched before that was over: it is provisional" if day.provisional else ""
    return Check(
        names.DAY_OVER,
        passed=not day.provisional,
        violations=int(day.provisional),
        detail=f"{day}{late}",
        severity=Severity.WARN,
    )


def _rule(rule: Rule, violating: OffendingLines, rows: int) -> Check:
    if not violating.count:
        return _passed(rule.name, rule.severity)
    # In fractions: as floats, 29 of 100 are more than 0.29 of them.
    tolerated = violating.count <= rule.max_count or violating.count <= Fraction(rule.max_share) * rows
    return Check(
        rule.name,
        passed=tolerated,
        violations=violating.count,
        lines=tuple(violating.lines),
        detail=f"{violating.count} of {rows} rows violate {rule.expression!r}{_tolerance(rule)}",
        severity=rule.severity,
    )


def _tolerance(rule: Rule) -> str:
    tolerated = [f"{rule.max_count}"] if rule.max_count else []
    tolerated += [f"{rule.max_share.scaleb(2):f}%"] if rule.max_share else []
    return f", {' or '.join(tolerated)} may" if tolerated else ""


@cache
def _passed(name: str, severity: Severity = Severity.ERROR) -> Check:
    return Check(name, passed=True, severity=severity)


def _failed(
    name: str, offending: OffendingLines, describe: Describe, severity: Severity = Severity.ERROR
) -> Check:
    return Check(name, False, offending.count, tuple(offending.lines), describe(offending), severity)


def _are(offending: OffendingLines, one: str, many: str) -> str:
    return counted(offending.count, "line", f"is {one}", f"are {many}")


def _have(offending: OffendingLines) -> str:
    return counted(offending.count, "line", "has", "have")


def _reasons(offending: OffendingLines) -> str:
    return f": {', '.join(offending.reasons)}" if offending.reasons else ""


def _where(check: Check) -> str:
    if not check.lines:
        return ""
    more = ", …" if check.violations > len(check.lines) else ""
    return f" (line{'s' if check.violations > 1 else ''} {', '.join(map(str, check.lines))}{more})"
