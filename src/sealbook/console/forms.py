"""What a person fills in, in the address of a page or in a form: never more than a form takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from sealbook.errors import InvalidInput
from sealbook.model.selection import Selection
from sealbook.views.choosing import selection_of

_LONGEST = 256 * 2**10
FILTERS = ("key", "source", "customer", "query", "since", "until")
"""How partitions are chosen in addresses and forms."""


@dataclass(frozen=True, slots=True)
class Values:
    """Names with what was given for each; one that is empty was not given."""

    given: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Values:
        """Gather what was given, without the spaces around it."""
        found: dict[str, tuple[str, ...]] = {}
        for name, value in pairs:
            if value.strip():
                found[name] = (*found.get(name, ()), value.strip())
        return cls(found)

    def one(self, name: str) -> str | None:
        """Return a value; the last if it was given again."""
        return self.given.get(name, (None,))[-1]

    def many(self, name: str) -> list[str]:
        """Return a value that may be given again, or with commas, spaces or lines between."""
        return [part for text in self.given.get(name, ()) for part in text.replace(",", " ").split()]

    def need(self, name: str, remedy: str) -> str:
        """Return a value that must be given."""
        value = self.one(name)
        if value is None:
            raise InvalidInput(f"{name} is missing", field=name, remedy=remedy)
        return value

    def selection(self) -> Selection:
        """Return which partitions are meant."""
        return selection_of(
            keys=self.many("key"),
            source=self.many("source"),
            customers=self.many("customer"),
            queries=self.many("query"),
            since=self.one("since"),
            until=self.one("until"),
        )

    def check_names(self, known: Collection[str]) -> None:
        """Refuse what would be passed over: whoever gave it means something by it."""
        for name in self.given:
            if name not in known:
                raise InvalidInput(
                    f"partitions to act on are not chosen by {name}",
                    field=name,
                    remedy=f"Choose them by {', '.join(FILTERS)}.",
                )


def in_address(request: Request) -> Values:
    """Return what the address of a page says."""
    return Values.of(request.query_params.multi_items())


async def in_form(request: Request) -> Values:
    """Return what a form says that was sent."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST:
            raise InvalidInput("the form is too long", field="form", remedy="Choose by filters, not by keys.")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the form is no text", field="form") from None
    return Values.of(parse_qsl(text, keep_blank_values=True))


def selection_query(selection: Selection) -> str:
    """Return a selection as the address of a page has it."""
    names = {"key": selection.keys, "source": selection.source, "customer": selection.customers}
    names["query"] = selection.queries
    pairs = [(name, str(value)) for name, values in names.items() for value in values or ()]
    days = (("since", selection.since), ("until", selection.until))
    pairs += [(name, day.isoformat()) for name, day in days if day is not None]
    return urlencode(pairs, safe="/")
