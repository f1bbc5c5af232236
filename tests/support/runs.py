"""Runs that no ledger has opened."""

from __future__ import annotations

from ulid import ULID

from sealbook.model import RunId


def new_run_id() -> RunId:
    """Return the id of a run that began now."""
    return RunId(str(ULID()))
