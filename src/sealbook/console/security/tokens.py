"""Tokens by which people and programs are known: kept as hashes, in a file beside the book.

A file and no table: who may read the ledger need not see who may use the console, and a console that only
reads has nothing to write to.
"""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from sealbook.clock import utc_now
from sealbook.console.security.people import Person, Role
from sealbook.errors import ConfigError, InvalidInput, NotFound

_PREFIX = "sbk"


@dataclass(frozen=True, slots=True)
class Token:
    """A token: whose it is, what it lets them do, and until when; the secret itself is nowhere."""

    id: str
    name: str
    role: Role
    digest: str
    created_at: datetime
    expires_at: datetime | None = None

    @property
    def person(self) -> Person:
        """Who it stands for."""
        return Person(self.name, self.role)

    def is_valid(self, now: datetime) -> bool:
        """Tell whether it has not run out."""
        return self.expires_at is None or now < self.expires_at

    def to_dict(self) -> dict[str, object]:
        """Return it as it is listed: without its digest, which nobody needs to see."""
        return {
            "id": self.id,
            "name": self.name,
            "role": self.role,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
        }


class TokenFile:
    """The tokens of a book. A console that runs sees at once what a command has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._known: tuple[Token, ...] = ()

    def all(self) -> tuple[Token, ...]:
        """Return the tokens, the oldest first; the file is read again if it is another."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._seen, self._known = None, ()
            return ()
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen != self._seen:
            self._known, self._seen = self._read(), seen
        return self._known

    def find(self, secret: str) -> Token | None:
        """Return the token that a secret is of, if it has not run out."""
        digest = _digest(secret)
        found = [each for each in self.all() if compare_digest(each.digest, digest)]
        return next((each for each in found if each.is_valid(utc_now())), None)

    def get(self, token_id: str) -> Token | None:
        """Return a token by its id, if it has not run out."""
        now = utc_now()
        return next((each for each in self.all() if each.id == token_id and each.is_valid(now)), None)

    def create(self, name: str, role: Role, lasts: timedelta | None = None) -> tuple[Token, str]:
        """Add a token; return it with its secret, which is shown this once."""
        if not name.strip() or not name.isprintable() or len(name) > 100:
            raise InvalidInput.of("name", name, "a name of up to 100 printable characters")
        secret = f"{_PREFIX}_{secrets.token_urlsafe(32)}"
        now = utc_now()
        made = Token(
            secrets.token_hex(4), name, role, _digest(secret), now, None if lasts is None else now + lasts
        )
        with self._changing() as tokens:
            tokens.append(made)
        return made, secret

    def revoke(self, name: str) -> list[Token]:
        """Take out a token by its id, or all of a name; return them. NotFound if there is none."""
        with self._changing() as tokens:
            gone = [each for each in tokens if name in (each.id, each.name)]
            if not gone:
                raise NotFound(
                    f"there is no token {name}", remedy="`sealbook console token list` lists those there are."
                )
            tokens[:] = [each for each in tokens if each not in gone]
        return gone

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """Read the tokens, and write them as they are afterwards; others who change them wait."""
        with self._path.with_name(f"{self._path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = list(self._read()) if self._path.exists() else []
            yield tokens
            encoded = msgspec.json.format(msgspec.json.encode(tokens), indent=2)
            # Made readable by its owner alone, and whole at every moment.
            with NamedTemporaryFile(dir=self._path.parent, prefix=".tokens-", delete=False) as file:
                file.write(encoded + b"\n")
            Path(file.name).replace(self._path)

    def _read(self) -> tuple[Token, ...]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=tuple[Token, ...])
        except (msgspec.DecodeError, OSError) as error:
            raise ConfigError(
                f"{self._path}: these are no tokens: {error}", remedy="Remove the file, and create them anew."
            ) from error


def _digest(secret: str) -> str:
    """Return the hash of a secret; it is random and long, so that a quick hash will do."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
