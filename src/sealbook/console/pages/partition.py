"""One partition: why it is as it is, what was found in which lines, what happened, what can be done."""

from __future__ import annotations

from sealbook.console.answers import Answer
from sealbook.console.commands import command_of
from sealbook.console.page import Ask, page
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey
from sealbook.model.selection import Selection
from sealbook.views.choosing import parse_key
from sealbook.views.comparison import compare_runs
from sealbook.views.partition import view_partition

_PATH = "/partitions/{source}/{customer_id}/{query_name}/{day}"
_SAMPLE = 20
_MOST = 500


def _gather(ask: Ask) -> Answer:
    key, attempt = _key(ask), _number(ask, "attempt")
    found = view_partition(ask.book, key, attempt=attempt, rules=ask.console.rows)
    same = command_of(f"sealbook explain {key} --full", Selection(), attempt=attempt)
    return Answer(found.to_dict(), same, {"view": found})


def _compare(ask: Ask) -> Answer:
    key, limit = _key(ask), min(_number(ask, "limit") or _SAMPLE, _MOST)
    before, after = ask.one("before"), ask.one("after")
    found = compare_runs(ask.book, key, before, after, limit=limit, rules=ask.console.rows)
    runs = f"{found.before.run_id} {found.after.run_id}"
    same = command_of(f"sealbook diff {key} {runs}", Selection(), limit=limit)
    return Answer([found.to_dict()], same, {"diff": found, "runs": ask.book.raw.runs(key), "limit": limit})


def _key(ask: Ask) -> PartitionKey:
    return parse_key("/".join(ask.path[name] for name in ("source", "customer_id", "query_name", "day")))


def _number(ask: Ask, name: str) -> int | None:
    text = ask.one(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise InvalidInput.of(name, text, "a number from 1")
    return int(text)


routes = [
    *page(f"{_PATH}/compare", "compare.html", _compare),
    *page(_PATH, "partition.html", _gather),
]
