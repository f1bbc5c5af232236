"""Due points that are learned: the ages at which days of a query were still restated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from sealbook.errors import InvalidInput
from sealbook.model.drift import AGES, DriftSum, age_text

FIRST_DUE = timedelta(hours=6)
"""Every day is due once: at this age."""

USUAL_DUE = (FIRST_DUE, timedelta(days=3), timedelta(days=7), timedelta(days=30))
"""The due points where too little is known."""

LEAST_COMPARED = 20
"""With fewer replacements at an age, it is not known how much days of that age change."""


@dataclass(frozen=True, slots=True)
class AutoDue:
    """How due points are learned: up to which age, how many at most, and how much change is left alone."""

    within: timedelta = timedelta(days=90)
    at_most: int = 6
    tolerance: float = 0.001

    def __post_init__(self) -> None:
        if self.within < FIRST_DUE:
            raise InvalidInput.of("within", self.within, f"at least {age_text(FIRST_DUE)}")
        if self.at_most < 1:
            raise InvalidInput.of("at_most", self.at_most, "at least 1")
        if not 0 <= self.tolerance < 1:
            raise InvalidInput.of("tolerance", self.tolerance, "from 0% to less than 100%")


@dataclass(frozen=True, slots=True)
class AgeDrift:
    """How much days of an age changed when they were replaced, in the mean of so many that were compared."""

    compared: int
    change: float


@dataclass(frozen=True, slots=True)
class LearnedDue:
    """Due points, earliest first, and of each age that was looked at, why it is one or not."""

    due: tuple[timedelta, ...]
    reasons: tuple[str, ...]

    @property
    def text(self) -> str:
        """The points as people say them: `6h, 3d, 7d`."""
        return ", ".join(map(age_text, self.due))

    def to_dict(self) -> dict[str, object]:
        """Return it as one object."""
        return {"due": [age_text(each) for each in self.due], "reasons": list(self.reasons)}


def learn_due(auto: AutoDue, observed: Mapping[timedelta, AgeDrift]) -> LearnedDue:
    """Return the due points that follow from what was observed, by age.

    A point is an age at which days had changed by more than the tolerance since the point before it: changes
    below add up. Of an age of which too little is known, the usual points hold. Where there are more points
    than may be, those with the least change go.
    """
    weights: dict[timedelta, float] = {}
    reasons: dict[timedelta, str] = {}
    since = 0.0
    for age in AGES:
        if not FIRST_DUE < age <= auto.within:
            continue
        seen = observed.get(age)
        if seen is None or seen.compared < LEAST_COMPARED:
            if age in USUAL_DUE:
                weights[age] = since = 0.0
                reasons[age] = "a usual point, as too little is known"
            continue
        since += seen.change
        said = f"changed by {since:.2%} since the point before, {seen.compared:,} compared"
        if since > auto.tolerance:
            weights[age], since = since, 0.0
            reasons[age] = said
        else:
            reasons[age] = f"no point: {said}"
    kept = sorted(sorted(weights, key=lambda age: (-weights[age], age))[: auto.at_most - 1])
    for age in weights.keys() - set(kept):
        reasons[age] = f"no point, as {auto.at_most} are the most: {reasons[age]}"
    return LearnedDue(
        (FIRST_DUE, *kept), tuple(f"{age_text(age)}: {reasons[age]}" for age in sorted(reasons))
    )


def by_age(sums: Iterable[DriftSum]) -> dict[timedelta, AgeDrift]:
    """Add up sums of several customers, by age."""
    found: dict[timedelta, AgeDrift] = {}
    for each in sums:
        before = found.get(each.age, AgeDrift(0, 0.0))
        compared = before.compared + each.compared
        change = before.compared * before.change + each.compared * each.change
        found[each.age] = AgeDrift(compared, change / compared if compared else 0.0)
    return found
