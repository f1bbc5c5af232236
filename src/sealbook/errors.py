"""Every error that Sealbook raises on purpose: one root, and classes by what the caller should do next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum


class SealbookError(Exception):
    """The root. Says what happened; `remedy` says the way out."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


class InvalidInput(SealbookError, ValueError):
    """A value that no correct caller would pass. Nothing was changed."""

    def __init__(
        self, message: str, *, field: str | None = None, value: object = None, remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.field = field
        self.value = value

    @classmethod
    def of(cls, field: str, value: object, expected: str) -> InvalidInput:
        """Name the field, its value and what would have been right."""
        return cls(f"{field} {value!r} is not valid: expected {expected}", field=field, value=value)


class ConfigError(SealbookError):
    """A configuration file, a URL or an option is wrong. Nothing was started."""


class Transient(SealbookError):
    """It failed this time; the same call may succeed later.

    `retry_after` is the wait in seconds that the server asked for, if it did.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after = retry_after


class QuotaScope(StrEnum):
    """Whose quota it is that is used up, and so what has to wait (R-CTL-7)."""

    ACCOUNT = "account"
    SOURCE = "source"


class QuotaExceeded(Transient):
    """A quota is used up: that of the account that was asked for, or one that the whole source shares."""

    def __init__(
        self,
        message: str,
        *,
        scope: QuotaScope = QuotaScope.ACCOUNT,
        retry_after: float | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, retry_after=retry_after, remedy=remedy)
        self.scope = scope


class Permanent(SealbookError):
    """It will fail again until somebody changes something."""


class PastHorizon(Permanent):
    """The source does not give so old a day any more: whatever is sealed of it is the only copy."""


class BadQuery(Permanent):
    """The source refuses a query's text. `excerpt` shows the line of it that is wrong, if that is known."""

    def __init__(self, message: str, *, excerpt: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.excerpt = excerpt


class Unwritable(Permanent):
    """A place or database that takes nothing: it is full, or read-only. So would every other write fail."""


class IllegalMove(Permanent):
    """The table of state moves has no such move. Nothing was written."""


class Conflict(Permanent):
    """What is stored contradicts what was asked. The stored fact stands; nothing of the call was written."""


class Irreconcilable(Permanent):
    """Columns of several schema_versions that no one type can hold. The message names them."""


class Drifted(Conflict):
    """What was previewed is another by now. `differences` says of each partition what was, and what is."""

    def __init__(self, message: str, differences: Sequence[str], *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.differences = differences


class Irreplaceable(Conflict):
    """It would take the only copy of a day from consumers, and was not confirmed. Nothing was changed."""


class AlreadySealed(Conflict):
    """The raw partition is sealed, by this run or a racing writer, and is immutable."""


class NotFound(Permanent):
    """The thing named does not exist."""


class Forbidden(Permanent):
    """Who asks may not do this. Nothing was changed."""


class Corrupt(Permanent):
    """Stored data does not say what its seal, digest or format promises."""


class NotMigrated(ConfigError):
    """The ledger's tables are not of the version that this Sealbook needs."""


class MissingExtra(ConfigError):
    """An optional dependency is not installed."""


class UnknownOutcome(SealbookError):
    """The connection was lost during commit: the write may or may not have happened."""


def first_line(error: BaseException) -> str:
    """Return the first line that an error says, for people; the name of its class if it says nothing."""
    return next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)


_USER = re.compile(r"[^/\s]*@")


def shown_url(url: str) -> str:
    """Return a URL, or what was meant as one, for a message: without user, password and query."""
    return _USER.sub("…@", url.partition("?")[0])
