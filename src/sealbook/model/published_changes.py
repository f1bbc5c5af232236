"""What changed of what is published, step by step, and the token to go on from (R-CON-5).

Pointers have a history by versions of the warehouse, which never changes. But a verdict can withdraw a run at
once, before a load has ended its pointer: a token says of which pointers that was so, and nearly always of
none.
"""

from __future__ import annotations

import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from sealbook.errors import InvalidInput
from sealbook.model.keys import PartitionKey, RunId
from sealbook.model.publication import Change, Withdrawal
from sealbook.model.selection import key_of

_TOKEN = re.compile(r"(?P<version>[0-9]{1,18})(\.(?P<unread>[A-Za-z0-9_=-]+))?")
_CONSUMER = re.compile(r"[a-z][a-z0-9_.-]{0,62}")


class UnreadPointer(NamedTuple):
    """A pointer that holds, and that readers pass over: its run was rejected, and no load has come by yet."""

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    valid_from: int

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return PartitionKey(*self[:4])


@dataclass(frozen=True, slots=True)
class ChangeToken:
    """An instant of all that is published: a version of the warehouse, and the pointers that were unread."""

    version: int = 0
    unread: frozenset[UnreadPointer] = frozenset()

    def __str__(self) -> str:
        if not self.unread:
            return str(self.version)
        lines = "\n".join(f"{each.key} {each.valid_from}" for each in sorted(self.unread))
        return f"{self.version}.{urlsafe_b64encode(zlib.compress(lines.encode(), 9)).decode()}"

    @classmethod
    def is_one(cls, text: str) -> bool:
        """Say whether a text looks like a token; names of cuts do not."""
        return _TOKEN.fullmatch(text) is not None

    @classmethod
    def parse(cls, text: str) -> ChangeToken:
        """Read a token; InvalidInput if it is none."""
        found = _TOKEN.fullmatch(text)
        try:
            if found is None:
                raise ValueError
            packed = found["unread"]
            lines = "" if packed is None else zlib.decompress(urlsafe_b64decode(packed)).decode()
            pairs = [line.split(" ") for line in lines.splitlines()]
            unread = frozenset(
                UnreadPointer(*key_of(PartitionKey.parse(key)), int(begun)) for key, begun in pairs
            )
        except (ValueError, zlib.error):
            raise InvalidInput.of("token", text, "a token that `sealbook changes` gave, or a cut") from None
        return cls(int(found["version"]), unread)


class PublishedChange(NamedTuple):
    """One change of the run that consumers get of a partition."""

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    kind: Change
    from_run_id: RunId | None
    to_run_id: RunId | None
    version: int
    at: datetime | None
    """When; None for what a verdict has withdrawn or brought back, until a load comes by."""

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return PartitionKey(*self[:4])


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in their order, and the token from which the next ones follow; `more` if those are there."""

    items: tuple[PublishedChange, ...]
    token: str
    more: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return one object."""
        return {"items": [each._asdict() for each in self.items], "token": self.token, "more": self.more}


class PointerStep(NamedTuple):
    """What a version of the warehouse did to the pointer of a partition: ended it, began another, or both."""

    version: int
    source: str
    customer_id: str
    query_name: str
    logical_date: date
    at: datetime
    ended_run_id: RunId | None
    ended_from: int | None
    """Since when what ended had held."""
    begun_run_id: RunId | None
    had_one: bool
    """Whether the partition ever had a pointer before the one that began."""


def told(steps: Iterable[PointerStep], unread: set[UnreadPointer]) -> Iterator[PublishedChange]:
    """Say what steps, in their order, change for whoever knows the pointers that are `unread`.

    Those that end are taken out of it: that they cannot be read is no news.
    """
    for step in steps:
        before, after = step.ended_run_id, step.begun_run_id
        if unread and step.ended_from is not None:
            known = UnreadPointer(*step[1:5], step.ended_from)
            if known in unread:
                unread.remove(known)
                before = None
        if before is not None or after is not None:
            kind = _kind(before, after, had_one=step.had_one)
            yield PublishedChange(*step[1:5], kind, before, after, step.version, step.at)


def _kind(before: RunId | None, after: RunId | None, *, had_one: bool) -> Change:
    if after is None:
        return Change.WITHDRAWN
    if before is not None:
        return Change.REPLACED
    return Change.RESTORED if had_one else Change.PUBLISHED


def by_verdict(pointer: UnreadPointer, run_id: RunId, version: int, *, withdrawn: bool) -> PublishedChange:
    """Say that a verdict has withdrawn a run, or brought it back, while its pointer held."""
    return PublishedChange(
        *pointer[:4],
        Change.WITHDRAWN if withdrawn else Change.RESTORED,
        run_id if withdrawn else None,
        None if withdrawn else run_id,
        version,
        None,
    )


def net_changes(changes: Iterable[PublishedChange]) -> list[PublishedChange]:
    """Say what changes come to for each partition, in the order of the last of each.

    A partition of which nothing changed in the end is left out.
    """
    first: dict[PartitionKey, PublishedChange] = {}
    last: dict[PartitionKey, PublishedChange] = {}
    for each in changes:
        first.setdefault(each.key, each)
        last.pop(each.key, None)  # so that it is put at the end
        last[each.key] = each
    return [
        each._replace(
            kind=_kind(before, each.to_run_id, had_one=first[key].kind is not Change.PUBLISHED),
            from_run_id=before,
        )
        for key, each in last.items()
        if (before := first[key].from_run_id) != each.to_run_id
    ]


class Consumer(NamedTuple):
    """Who follows a query under a name, and up to where."""

    name: str
    source: str
    query_name: str
    version: int
    token: str
    advanced_at: datetime
    holds: bool = False
    """Whether clean-up keeps for it what was published when it last advanced, or since."""


class Holder(NamedTuple):
    """Who has a run of a partition: a cut that reads it, or a consumer that was told of it last."""

    holder: str
    name: str
    version: int
    run_id: RunId
    withdrawn: Withdrawal | None
    """Why the present does not read that run any more; None if it could."""


def check_consumer_name(name: object) -> None:
    """Refuse a name under which no token can be kept."""
    if not isinstance(name, str) or _CONSUMER.fullmatch(name) is None:
        raise InvalidInput.of(
            "consumer", name, "a lower-case letter, then at most 62 of a-z, 0-9, ., _ and -"
        )
