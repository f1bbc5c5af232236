"""What came of a validation, for people: counts and the first rejections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from sealbook.cli.evidence import finding
from sealbook.cli.output import message
from sealbook.cli.reasons import few, say_reasons
from sealbook.cli.table import Column, print_table, stdout_console
from sealbook.model import Severity
from sealbook.model.words import counted
from sealbook.validate.plan import Which
from sealbook.views.reasons import Cause, group_reasons

if TYPE_CHECKING:
    from sealbook.validate.results import NotJudged, ValidateOutcome

_SHOWN = 5
_STYLES = {Severity.ERROR: "red", Severity.WARN: "yellow"}
AGAIN = "If the contract was wrong, correct it, and judge again: sealbook validate --rejected"
_NOTHING = {
    Which.NEW: "There is nothing new to judge",
    Which.ACCEPTED: "There is nothing accepted to judge again",
    Which.REJECTED: "There is nothing rejected to judge again",
}


@dataclass(frozen=True, slots=True)
class Telling:
    """Tells of a validation by what was to be judged, and whether anything was written."""

    which: Which
    is_dry_run: bool

    def print_outcome(self, outcome: ValidateOutcome) -> None:
        """Print how often each check failed, and the first rejections in full."""
        failed = sorted(outcome.failed_checks.items(), key=lambda item: (-item[1], item[0]))
        columns: list[Column[tuple[tuple[str, Severity], int]]] = [
            Column("check", lambda item: item[0][0]),
            Column("severity", lambda item: item[0][1], style=lambda item: _STYLES[item[0][1]]),
            Column("would fail in" if self.is_dry_run else "failed in", lambda item: item[1], number=True),
        ]
        if failed:
            print_table(failed, columns)
        console = stdout_console()
        most_first = sorted(outcome.rejections.values(), key=lambda those: -len(those.keys))
        for those in most_first[:_SHOWN]:
            verdict = those.first
            console.print()
            console.print(
                Text.assemble(
                    (str(verdict.key), "bold"), f" run {verdict.run_id} ", (self._rejected, "bold red")
                )
            )
            for check in verdict.checks:
                if not check.passed:
                    console.print(Text(f"  {finding(check)}", _STYLES[check.severity]))
            if others := those.keys[1:]:
                console.print(f"  the same checks failed in {len(others):,} more: {few(others)}")
        if left := most_first[_SHOWN:]:
            more = sum(len(those.keys) for those in left)
            console.print(f"\n… and {more:,} more, by other checks; --format json lists all.")

    def say_outcome(self, outcome: ValidateOutcome, *, failed: int) -> None:
        """Say how many there were of each kind; `failed` partitions are there to be judged again."""
        _say_not_judged(outcome.not_judged)
        if outcome.accepted or outcome.rejected or outcome.not_judged:
            message(self._counts(outcome))
            if outcome.rejected and not self.is_dry_run:
                message(AGAIN)
            if outcome.accepted and not self.is_dry_run:
                message("next: sealbook load")
        else:
            message(_NOTHING[self.which])
            if self.which is Which.NEW and failed:
                message(f"{counted(failed, 'partition', 'is', 'are')} failed. {AGAIN}")
        if outcome.superseded:
            message(f"Passed over as superseded: {counted(outcome.superseded, 'run')}")
        if self.is_dry_run:
            message("This was a dry run: nothing was written.")

    @property
    def _rejected(self) -> str:
        if not self.is_dry_run:
            return "rejected"
        return "would be demoted" if self.which is Which.ACCEPTED else "would be rejected"

    def _counts(self, outcome: ValidateOutcome) -> Text:
        total = outcome.accepted + outcome.rejected
        line = Text(f"{counted(total, 'run')} with {counted(outcome.rows, 'row')}: ")
        line.append(f"{outcome.accepted:,} accepted", "green" if outcome.accepted else "dim")
        line.append(", ")
        line.append(f"{outcome.rejected:,} {self._rejected}", "red" if outcome.rejected else "dim")
        if outcome.not_judged:
            line.append(f"; {len(outcome.not_judged):,} not judged", "yellow")
        return line


def _say_not_judged(results: Iterable[NotJudged]) -> None:
    say_reasons(
        group_reasons(Cause(each.key, f"run {each.run_id} not judged", each.reason) for each in results)
    )
