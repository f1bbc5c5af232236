"""All about one partition: why it is as it is, what was found in which lines, what happened, what to do.

One structure for the terminal, JSON and the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sealbook.errors import NotFound
from sealbook.model import Attempt, PartitionKey, RunId
from sealbook.model.explanation import Explanation, Problem
from sealbook.views.evidence import ShownVerdict, failed_names
from sealbook.views.offers import Offer, offers_of
from sealbook.views.row_content import RowRules, hides_values, without_values
from sealbook.views.timeline import Timeline, timeline_of

if TYPE_CHECKING:
    from sealbook.book import BookReader


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition in full."""

    explanation: Explanation
    verdict: ShownVerdict | None
    """The judgement that is looked at: the last one, unless another is asked for."""
    attempts: tuple[int, ...]
    """The numbers of all judgements."""
    timeline: Timeline
    runs: tuple[RunId, ...]
    """The runs that are sealed, the newest first: any two can be compared."""
    offers: tuple[Offer, ...]

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.explanation.key

    def to_dict(self) -> dict[str, object]:
        """Return what `explain` returns, and the rest."""
        return {
            **self.explanation.to_dict(),
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "attempts": list(self.attempts),
            "timeline": self.timeline.to_dict(),
            "runs": list(self.runs),
            "actions": [each.to_dict() for each in self.offers],
        }


def view_partition(
    book: BookReader, key: PartitionKey, *, attempt: int | None = None, rules: RowRules | None = None
) -> PartitionView:
    """Gather all about a partition, also about one that nobody ever touched; rows as `rules` allow."""
    explanation = book.explain(key)
    attempts = book.ledger.attempts(key)
    judged = _asked(key, attempts, attempt)
    timeline = timeline_of(book.ledger, key)
    verdict = None if judged is None else ShownVerdict.of(book.raw, key, judged, rules)
    if hides_values(rules):
        explanation = _discreet(explanation, attempts)
        timeline = timeline.discreet(attempts)
        verdict = None if verdict is None else verdict.discreet()
    return PartitionView(
        explanation,
        verdict,
        tuple(each.attempt for each in attempts),
        timeline,
        tuple(reversed(book.raw.runs(key))),
        offers_of(explanation, book.ledger.state(key), attempts),
    )


def _asked(key: PartitionKey, attempts: list[Attempt], number: int | None) -> Attempt | None:
    if number is None:
        return attempts[-1] if attempts else None
    for each in attempts:
        if each.attempt == number:
            return each
    raise NotFound(
        f"{key} has no judgement {number}", remedy=f"`sealbook state history {key}` lists those there are."
    )


def _discreet(found: Explanation, attempts: Iterable[Attempt]) -> Explanation:
    """Return an explanation without the values that judgements quote."""
    errors = {each.error_message: failed_names(each.checks) for each in attempts if each.error_message}

    def plain(text: str) -> str:
        for error, names in errors.items():
            text = text.replace(error, names)
        return text

    def plain_problem(problem: Problem) -> Problem:
        findings = tuple(
            replace(each, detail=None if each.detail is None else without_values(each.detail))
            for each in problem.findings
        )
        return replace(problem, text=plain(problem.text), findings=findings)

    following, outlook = found.following, found.outlook
    if following is not None:
        following = replace(following, text=plain(following.text))
    if outlook is not None:
        error = None if outlook.error is None else plain(outlook.error)
        outlook = replace(outlook, why=plain(outlook.why), error=error)
    problems = tuple(map(plain_problem, found.problems))
    return replace(found, problems=problems, following=following, outlook=outlook)
