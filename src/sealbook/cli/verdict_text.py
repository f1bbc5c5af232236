"""What came of a validation: for programs one object a run, for people counts and the first rejections."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from sealbook.cli.evidence import finding
from sealbook.cli.output import message
from sealbook.cli.table import Column, print_table, stdout_console
from sealbook.model import Severity, Verdict
from sealbook.validate import Judged

if TYPE_CHECKING:
    from sealbook.validate import Result, Tally

_NOT_JUDGED_SHOWN = 5


def as_object(result: Result) -> dict[str, object]:
    """Return one object with the same fields for every result."""
    if isinstance(result, Judged):
        fields = asdict(result.verdict)
        status = None if result.state is None else result.state.status
        return {**fields.pop("key"), **fields, "status": status}
    return {
        **asdict(result.key),
        "run_id": result.run_id,
        "outcome": "not_judged",
        "schema_version": None,
        "record_count": None,
        "error_message": result.reason,
        "validator_version": None,
        "checks": [],
        "revalidation_id": None,
        "status": None,
    }


def print_tally(tally: Tally, *, is_rehearsal: bool) -> None:
    """Print how often each check failed, and the first rejections in full."""
    failed = sorted(tally.failed_checks.items(), key=lambda item: (-item[1], item[0]))
    columns: list[Column[tuple[tuple[str, Severity], int]]] = [
        Column("check", lambda item: item[0][0]),
        Column("severity", lambda item: item[0][1], style=lambda item: _STYLES[item[0][1]]),
        Column("would fail in" if is_rehearsal else "failed in", lambda item: item[1], number=True),
    ]
    if failed:
        print_table(failed, columns)
    console = stdout_console()
    for verdict in tally.first_rejected:
        console.print()
        console.print(_heading(verdict, is_rehearsal=is_rehearsal))
        for check in verdict.checks:
            if not check.passed:
                console.print(Text(f"  {finding(check)}", _STYLES[check.severity]))


def say_tally(tally: Tally, *, is_again: bool, is_rehearsal: bool) -> None:
    """Say how many there were of each kind, and what could not be judged.

    `is_again` is whether what is accepted was to be judged again; a rehearsal is a case of that.
    """
    for result in tally.not_judged[:_NOT_JUDGED_SHOWN]:
        message(Text(f"Not judged: {result.key} run {result.run_id}: {result.reason}", "yellow"))
    if len(tally.not_judged) > _NOT_JUDGED_SHOWN:
        message(f"… and {len(tally.not_judged) - _NOT_JUDGED_SHOWN:,} more")
    total = tally.accepted + tally.rejected
    if not total and not tally.not_judged:
        message(f"There is nothing {'accepted to judge again' if is_again else 'new to judge'}")
        return
    line = Text(f"{total:,} run{'' if total == 1 else 's'} with {tally.rows:,} rows: ")
    line.append(f"{tally.accepted:,} accepted", "green" if tally.accepted else "dim")
    line.append(", ")
    line.append(
        f"{tally.rejected:,} {'would be demoted' if is_rehearsal else 'rejected'}",
        "red" if tally.rejected else "dim",
    )
    if tally.not_judged:
        line.append(f"; {len(tally.not_judged):,} not judged", "yellow")
    message(line)
    if is_rehearsal:
        message("This was a rehearsal: nothing was written.")


_STYLES = {Severity.ERROR: "red", Severity.WARN: "yellow"}


def _heading(verdict: Verdict, *, is_rehearsal: bool) -> Text:
    outcome = "would be demoted" if is_rehearsal else "rejected"
    return Text.assemble((str(verdict.key), "bold"), f" run {verdict.run_id} ", (outcome, "bold red"))
