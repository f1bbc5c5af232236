"""When a partition that failed is tried again, and when no more: history, policy and time decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from sealbook.errors import InvalidInput
from sealbook.model.failures import ErrorClass
from sealbook.model.freshness import day_end
from sealbook.model.keys import PartitionKey
from sealbook.model.words import counted

_DRAWS = 2**64


class Cause(StrEnum):
    """Why an attempt failed, by what has to change before another makes sense (R-CTL-7)."""

    TRANSIENT = "transient"
    """Time."""
    REJECTED = "rejected"
    """The source's rows, or the contract: the run is judged again as soon as another is in force."""
    PERMANENT = "permanent"
    """What an operator or the configuration says: a disabled account, a bad query."""
    QUOTA = "quota"
    """Nothing about the partition: its account or source has to wait, and no attempt is counted."""
    PAST_HORIZON = "past_horizon"
    """Nothing can: the source does not give its day any more."""

    @classmethod
    def of(cls, error_class: ErrorClass) -> Cause:
        """Return the cause of a failure that is no verdict."""
        return cls(error_class.value)


class Stop(StrEnum):
    """Why nothing more is tried by itself."""

    MAX_ATTEMPTS = "max_attempts"
    MAX_AGE = "max_age"
    MANUAL = "manual"
    PERMANENT = "permanent"
    PAST_HORIZON = "past_horizon"

    @property
    def terminal(self) -> bool:
        """Whether it is given up (R-CTL-5); otherwise it is parked until somebody changes something."""
        return self is not Stop.PERMANENT


class Jitter(StrEnum):
    """Which part of a backoff step is drawn: all of it, its second half, or none."""

    FULL = "full"
    EQUAL = "equal"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Retries:
    """A policy: the waits after failures in a row, the last of which repeats; and when to give up (R-CTL-2).

    `max_attempts` bounds the failures since the last success or operator's action; `max_age` the age of a
    day, from its end in UTC, at which it is still tried again. None is no bound.
    """

    backoff: tuple[timedelta, ...] = (timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2))
    jitter: Jitter = Jitter.EQUAL
    max_attempts: int | None = 30
    max_age: timedelta | None = None

    def __post_init__(self) -> None:
        if not self.backoff or min(self.backoff) <= timedelta():
            raise InvalidInput.of("backoff", self.backoff, "at least one span, and each above zero")
        if self.max_attempts is not None and self.max_attempts < 1:
            raise InvalidInput.of("max_attempts", self.max_attempts, "a whole number from 1")
        if self.max_age is not None and self.max_age <= timedelta():
            raise InvalidInput.of("max_age", self.max_age, "a span above zero")

    def step(self, tries: int) -> timedelta:
        """Return the longest wait after so many failures in a row."""
        return self.backoff[min(tries, len(self.backoff)) - 1]

    def wait(self, tries: int, draw: float) -> timedelta:
        """Return the wait after so many failures in a row; `draw` is from 0 to 1."""
        step = self.step(tries)
        match self.jitter:
            case Jitter.FULL:
                return step * draw
            case Jitter.EQUAL:
                return step * (1 + draw) / 2
        return step


DEFAULT_RETRIES = Retries()


@dataclass(frozen=True, slots=True)
class RetryPolicies:
    """Which policy holds for a partition: that of its query, else of its source, else the default."""

    default: Retries = DEFAULT_RETRIES
    by_source: Mapping[str, Retries] = field(default_factory=dict)
    by_query: Mapping[tuple[str, str], Retries] = field(default_factory=dict)
    """By source and query."""

    def of(self, source: str, query_name: str) -> Retries:
        """Return the policy of a query's partitions."""
        by_source = self.by_source.get(source, self.default)
        return self.by_query.get((source, query_name), by_source)


@dataclass(frozen=True, slots=True)
class Failing:
    """How a partition has failed since its last success, or since an operator last acted on it.

    `tries` are its failures in a row; those by quota do not count. `seed` tells this failure's draw from that
    of others: the run that failed. `ages` says whether its age may end it: not that of a run to be loaded.
    """

    key: PartitionKey
    tries: int
    cause: Cause
    at: datetime
    """When it failed last."""
    seed: str
    retry_after: float | None = None
    """The wait in seconds that the source asked for, if it did."""
    ages: bool = True
    days: int = 1
    """How many days were asked for together, and failed together."""


@dataclass(frozen=True, slots=True)
class RunNow:
    """It can be worked on."""

    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """It is worked on from a moment on."""

    until: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """It is not worked on any more by itself."""

    stop: Stop
    why: str


Decision = RunNow | Wait | Stopped


def decide(failing: Failing | None, retries: Retries, now: datetime) -> Decision:
    """Decide what becomes of a partition, given how it has failed: run now, wait until a time, or stop."""
    if failing is None:
        return RunNow("it has not failed since it was good, or since an operator acted on it")
    # Of several days that failed together nobody knows which is to blame: each is tried in smaller company.
    if failing.cause is Cause.PERMANENT and failing.days == 1:
        return Stopped(Stop.PERMANENT, "it fails until an operator or the configuration changes something")
    if failing.cause is Cause.PAST_HORIZON:
        return Stopped(Stop.PAST_HORIZON, "its source does not give its day any more")
    until = _ready_at(failing, retries)
    if failing.cause is Cause.QUOTA:
        return _from(until, now, "its quota is used up, which counts as no attempt")
    tries = f"{counted(failing.tries, 'failure')} in a row"
    if retries.max_attempts is not None and failing.tries >= retries.max_attempts:
        return Stopped(Stop.MAX_ATTEMPTS, f"{tries}; max_attempts is {retries.max_attempts}")
    if failing.ages and retries.max_age is not None and until > latest_try(failing.key, retries.max_age):
        return Stopped(Stop.MAX_AGE, f"its day would be older than max_age, {retries.max_age}")
    return _from(until, now, f"{tries}, the last {failing.cause}")


def latest_try(key: PartitionKey, max_age: timedelta) -> datetime:
    """Return the last moment at which a day is tried again by itself."""
    return day_end(key.logical_date, UTC) + max_age


def draw(whose: object, tries: int, seed: str) -> float:
    """Return a number from 0 up to 1 that looks drawn, and is the same whoever asks."""
    digest = sha256(f"{whose}|{tries}|{seed}".encode()).digest()
    return int.from_bytes(digest[:8]) / _DRAWS


def _from(until: datetime, now: datetime, why: str) -> RunNow | Wait:
    return RunNow(why) if until <= now else Wait(until, why)


def _ready_at(failing: Failing, retries: Retries) -> datetime:
    asked = timedelta(seconds=failing.retry_after or 0)
    if failing.cause is Cause.QUOTA:
        return failing.at + (asked or retries.backoff[0])
    key = failing.key
    # Days that failed together are ready together, to be asked for in few requests again.
    whose = key if failing.days == 1 else f"{key.source}/{key.customer_id}/{key.query_name}"
    drawn = draw(whose, failing.tries, failing.seed)
    return failing.at + max(asked, retries.wait(failing.tries, drawn))
