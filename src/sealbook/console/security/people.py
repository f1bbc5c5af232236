"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sealbook.errors import Forbidden


class Role(StrEnum):
    """What a person may do: look, or act as well."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Person:
    """Who asks; the name is the actor in the audit log."""

    name: str
    role: Role

    @property
    def may_act(self) -> bool:
        """Whether they may do more than look."""
        return self.role is Role.OPERATOR

    def check_may_act(self) -> None:
        """Refuse who may only look: Forbidden."""
        if not self.may_act:
            raise Forbidden(
                f"{self.name} may look, but not act",
                remedy="Ask for the role operator, or give the command on the command line.",
            )
