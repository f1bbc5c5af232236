"""Migrations are added, never edited: a ledger that one has changed already would not see the edit."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from sealbook.ledger.db import schema

LANDED = Path(__file__).parents[1] / "data" / "landed_migrations.txt"
"""As `sha256sum` writes it: a line for each migration that landed, to which a new one's is appended."""


def test_landed_migrations_are_as_they_landed() -> None:
    """Each is listed with its digest; what is not as listed says what to do about it."""
    lines = (line.split() for line in LANDED.read_text().splitlines())
    landed = {name: digest for digest, name in lines}
    folder = schema._MIGRATIONS / "versions"
    found = {file.name: sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("[0-9]*.py"))}
    edited = [name for name, digest in landed.items() if found.get(name) != digest]
    assert not edited, (
        f"{', '.join(edited)}: edited, renamed or removed, after it has landed. There are ledgers that it "
        "has changed already: put it back as it was, and add a new migration."
    )
    new = [f"{found[name]}  {name}" for name in found.keys() - landed.keys()]
    assert not new, "\n".join([f"a new migration: append to {LANDED.name} when it lands", *new])
    assert list(landed) == sorted(landed), f"{LANDED.name} is appended to, in the order of revisions"
