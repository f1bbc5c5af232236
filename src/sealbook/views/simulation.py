"""What a simulation of the control plane found, gathered for people and programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta

from sealbook.control.forecast import Forecast, by_day
from sealbook.control.scenario import Scenario
from sealbook.model.work import Lane


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A lane: what it did, and how long ready work waited in it."""

    lane: Lane
    share: float
    requests: int
    mean_wait_seconds: float
    longest_wait_seconds: int
    done_at: datetime | None
    """When its last work was begun."""


@dataclass(frozen=True, slots=True)
class DayRow:
    """A day of the simulation: what became good in it, and what that cost, by lane."""

    day: date
    good: int
    fresh: int
    retry: int
    refresh: int
    backfill: int


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A source: the most requests in any 24 hours, and how many there may be."""

    source: str
    requests_in_24_hours: int
    requests_per_day: int | None


@dataclass(frozen=True, slots=True)
class SimulationView:
    """The outcome of a simulation, in the words of its commands."""

    started_at: datetime
    ended_at: datetime
    became_good: int
    terminal: int
    parked: int
    unfinished: int
    requests: int
    missed_due_points: int
    """Those that passed while their day still waited for the one before."""
    fresh_late_seconds: float
    lanes: tuple[LaneRow, ...]
    budgets: tuple[BudgetRow, ...]
    days: tuple[DayRow, ...]

    @classmethod
    def of(cls, scenario: Scenario, forecast: Forecast) -> SimulationView:
        """Gather what is shown."""
        shares = sum(scenario.shares.values())
        return cls(
            forecast.started_at,
            forecast.ended_at,
            forecast.good_by_day.total(),
            forecast.terminal,
            forecast.parked,
            forecast.unfinished,
            forecast.requests,
            forecast.missed_points,
            forecast.fresh_late,
            tuple(
                LaneRow(
                    lane,
                    scenario.shares[lane] / shares,
                    forecast.requests_by_day[lane].total(),
                    each.mean_wait,
                    each.longest_wait,
                    each.done_at,
                )
                for lane, each in forecast.lanes.items()
            ),
            tuple(
                BudgetRow(source, most, scenario.requests_per_day.get(source))
                for source, most in forecast.busiest_day.items()
            ),
            tuple(
                DayRow((scenario.start + timedelta(days=day)).date(), good, *requests.values())
                for day, good, requests in by_day(forecast)
            ),
        )

    def to_dict(self) -> dict[str, object]:
        """Return it as one JSON object."""
        return asdict(self)
