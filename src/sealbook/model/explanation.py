"""Why a partition is as it is: one structure for words, JSON and a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from sealbook.model.auto_due import LearnedDue
from sealbook.model.display import Display
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.status import Availability

if TYPE_CHECKING:
    from sealbook.model.outlook import Outlook


class Reading(StrEnum):
    """What consumers get."""

    READABLE = "readable"
    NOT_READABLE = "not_readable"
    NOT_DUE = "not_due"
    NOT_EXPECTED = "not_expected"


@dataclass(frozen=True, slots=True)
class Way:
    """A command, and what it is for."""

    purpose: str
    command: str
    note: str | None = None
    """When it helps."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that failed: how often, and in which lines."""

    check: str
    detail: str | None
    violations: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """A partition further up that something comes from, and what that comes from in turn."""

    key: PartitionKey
    text: str
    causes: tuple[Cause, ...] = ()
    more: int = 0
    """How many further causes there are."""

    def to_dict(self) -> dict[str, object]:
        """Return the cause as one object, the partition by name."""
        return {
            "partition": str(self.key),
            "text": self.text,
            "causes": [each.to_dict() for each in self.causes],
            "more_causes": self.more,
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be, with what would change it."""

    kind: str
    text: str
    since: datetime | None = None
    run_id: RunId | None = None
    findings: tuple[Finding, ...] = ()
    causes: tuple[Cause, ...] = ()
    more: int = 0
    ways: tuple[Way, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the problem as one object."""
        return {
            "kind": self.kind,
            "text": self.text,
            "since": self.since,
            "run_id": self.run_id,
            "findings": [asdict(each) for each in self.findings],
            "causes": [each.to_dict() for each in self.causes],
            "more_causes": self.more,
            "ways": [asdict(each) for each in self.ways],
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """What consumers get now: of which run, and since when."""

    reading: Reading
    text: str
    run_id: RunId | None = None
    since: datetime | None = None
    schema_version: str | None = None
    record_count: int | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """What happens next, and when; nothing happens by itself where there is no time."""

    text: str
    at: datetime | None = None
    ways: tuple[Way, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """How much there is to tell: judgements, of how many runs, and how often one was published."""

    judgements: int
    runs: int
    publications: int
    ways: tuple[Way, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known of a partition, the worst first."""

    key: PartitionKey
    availability: Availability
    display: Display
    standing: Standing
    problems: tuple[Problem, ...]
    following: Following | None
    """None: what consumers get says it all."""
    history: History
    outlook: Outlook | None = None
    """What the schedule says of it; None if nothing is open."""
    day: str | None = None
    """When the day is, where its account is not simply in UTC."""
    learned: LearnedDue | None = None
    """Its due points and why they are these, where they are learned."""

    def to_dict(self) -> dict[str, object]:
        """Return one object, the fields of its key first."""
        return {
            **asdict(self.key),
            "availability": self.availability,
            "display": self.display,
            **asdict(self.standing),
            "day": self.day,
            "problems": [each.to_dict() for each in self.problems],
            "next": None if self.following is None else asdict(self.following),
            "schedule": None if self.outlook is None else self.outlook.to_dict(),
            "due_points": None if self.learned is None else self.learned.to_dict(),
            "history": asdict(self.history),
        }
