"""Whose partitions: several books can share one ledger, and each knows only the status of its own."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT = "default"


class Scope(NamedTuple):
    """The tenant and the workspace that a book's runs, and the status of its partitions, belong to."""

    tenant_id: str = DEFAULT
    workspace_id: str = DEFAULT

    @property
    def is_default(self) -> bool:
        """Whether it is that of a book that names none."""
        return self == DEFAULT_SCOPE


DEFAULT_SCOPE = Scope()
