"""What a failure asks for: another try, a pause, or a person (R-CTL-7)."""

from __future__ import annotations

from enum import StrEnum

from sealbook.errors import QuotaExceeded, Transient


class ErrorClass(StrEnum):
    """A failure by what must happen before another try makes sense."""

    TRANSIENT = "transient"
    QUOTA = "quota"
    PERMANENT = "permanent"

    @classmethod
    def of(cls, error: Exception) -> ErrorClass:
        """Class an error by its type, never by its text."""
        if isinstance(error, QuotaExceeded):
            return cls.QUOTA
        return cls.TRANSIENT if isinstance(error, Transient) else cls.PERMANENT
