"""The attempts of a partition, with what each judgement found (R-VER-2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sealbook.cli.table import cell, stdout_console
from sealbook.model import Attempt, Check, Outcome, Severity

_OUTCOME_STYLES = {Outcome.ACCEPTED: "bold green", Outcome.REJECTED: "bold red"}


def print_attempts(attempts: Iterable[Attempt]) -> None:
    """Print each attempt: how it ended, why, and its checks, those that found something first."""
    console = stdout_console()
    for attempt in attempts:
        heading = Text.assemble(
            f"attempt {attempt.attempt}  ",
            (attempt.outcome, _OUTCOME_STYLES[attempt.outcome]),
            f"  {cell(attempt.judged_at)} UTC",
        )
        findings = Table.grid(padding=(0, 2, 0, 0))
        findings.add_column(no_wrap=True)
        findings.add_column(overflow="fold")
        for label, style, value in _findings(attempt):
            findings.add_row(Text(label, style), cell(value))
        console.print(heading)
        console.print(Padding(findings, (0, 0, 1, 2), expand=False))


def _findings(attempt: Attempt) -> Iterator[tuple[str, str, object]]:
    """Yield a label, its style and a value for each line about an attempt."""
    facts = {
        "run": attempt.run_id,
        "schema": attempt.schema_version,
        "records": attempt.record_count,
        "validator": attempt.validator_version,
        "revalidation": attempt.revalidation_id,
        "error": attempt.error_message,
    }
    for label, value in facts.items():
        if value is not None:
            yield label, "dim", value
    for check in attempt.checks:
        if not check.passed and check.severity is Severity.ERROR:
            yield "failed", "red", finding(check)
    for check in attempt.checks:
        if not check.passed and check.severity is Severity.WARN:
            yield "warned", "yellow", finding(check)
    for check in attempt.checks:
        if check.passed and check.detail is not None and not check.violations:
            yield "remark", "yellow", f"{check.name}: {check.detail}"
    passed = [finding(check) if check.violations else check.name for check in attempt.checks if check.passed]
    if passed:
        yield "passed", "green", ", ".join(passed)


def finding(check: Check) -> str:
    """Say in one line what a check found."""
    more = ", …" if check.violations > len(check.lines) else ""
    name = "line" if check.violations == 1 else "lines"
    lines = f", in {name} {', '.join(map(str, check.lines))}{more}" if check.lines else ""
    detail = f": {check.detail}" if check.detail else ""
    return f"{check.name}{detail} ({check.violations} found{lines})"
