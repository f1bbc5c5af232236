"""How a stream of changes goes on: in batches that are the same when they are asked for again (R-CON-5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sealbook.model.published_changes import PublishedChange, net_changes
from sealbook.model.selection import Selection

if TYPE_CHECKING:
    from sealbook.ledger.pointers import PublishedReader


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Up to where a stream has come: to a token, or to a part of what changed from it until another."""

    token: str
    until: str | None = None
    done: int = 0
    """How many of the changes from `token` until `until` are behind it."""

    def to_offset(self) -> dict[str, str | int]:
        """Return it as Spark keeps it in a checkpoint."""
        if self.until is None:
            return {"token": self.token}
        return {"token": self.token, "until": self.until, "done": self.done}

    @classmethod
    def of_offset(cls, offset: Mapping[str, str | int]) -> StreamPosition:
        """Read what a checkpoint has."""
        until = offset.get("until")
        return cls(str(offset["token"]), None if until is None else str(until), int(offset.get("done", 0)))


class Following:
    """Follows what changes of chosen partitions; with `net`, what that comes to for each of them.

    A batch lies between two positions, and what it has follows from these and the ledger's history alone.
    """

    def __init__(self, pointers: PublishedReader, selection: Selection, *, net: bool) -> None:
        self._pointers = pointers
        self._selection = selection
        self._net = net
        self._kept: tuple[str, str, Sequence[PublishedChange]] | None = None
        self._unchanged: tuple[str, str] | None = None

    def start(self, after: str | None) -> StreamPosition:
        """Return the position after a token or a cut; by default before anything was published."""
        return StreamPosition("0" if after is None else str(self._pointers.token(after)))

    def now(self) -> str:
        """Return the token of the present."""
        return str(self._pointers.token())

    def next(self, position: StreamPosition, most: int | None, end: str | None = None) -> StreamPosition:
        """Return where a batch of so many changes ends; the same position if nothing has changed.

        It goes no further than the token `end`, and by default to the present.
        """
        if position.until is None:
            until = self.now() if end is None else end
            if not self._changes(self._looked_up_to(position.token), until):
                self._unchanged = (position.token, until)
                return position
            position = replace(position, until=until)
        assert position.until is not None
        if most is None or position.done + most >= len(self._changes(position.token, position.until)):
            return StreamPosition(position.until)
        return replace(position, done=position.done + most)

    def between(self, start: StreamPosition, end: StreamPosition) -> Sequence[PublishedChange]:
        """Return the changes of the batch that lies between two positions."""
        if start.until is None or (start.token, start.until) == (end.token, end.until):
            rest: Sequence[PublishedChange] = ()
        else:  # what it had begun is ended first
            rest = self._changes(start.token, start.until)[start.done :]
            start = StreamPosition(start.until)
        if end.until is None:
            return [*rest, *self._changes(start.token, end.token)]
        return [*rest, *self._changes(end.token, end.until)[start.done : end.done]]

    def _looked_up_to(self, token: str) -> str:
        """Return up to where nothing has changed since: what others publish need not be looked at again."""
        return self._unchanged[1] if self._unchanged and self._unchanged[0] == token else token

    def _changes(self, after: str, until: str) -> Sequence[PublishedChange]:
        if self._kept is None or self._kept[:2] != (after, until):
            parse = self._pointers.token
            found = self._pointers.changes(self._selection, parse(after), until=parse(until)).items
            self._kept = (after, until, net_changes(found) if self._net else found)
        return self._kept[2]
