"""Rows of the demo source: the shape of Google Ads reports, with numbers that depend on the key alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256, shake_128
from itertools import count
from struct import Struct

from sealbook.model import PartitionKey

_DEVICES = (b"MOBILE", b"DESKTOP", b"TABLET", b"CONNECTED_TV")
_NETWORKS = (b"SEARCH", b"CONTENT", b"YOUTUBE")
_THEMES = (b"Search Brand", b"Search Generic", b"Shopping", b"Performance Max", b"Video", b"Remarketing")
_STATUSES = (b"ENABLED", b"ENABLED", b"ENABLED", b"PAUSED")
_AD_GROUPS_PER_CAMPAIGN = 5

_NUMBERS = Struct("<HHHBB")
_BLOCK_ROWS = 4096

_WEEKDAY_PERCENT = (100, 104, 103, 101, 96, 72, 78)
_ARRIVED_PERCENT = (60, 80, 90, 95, 98, 100)
"""How many of a day's conversions are known at each extraction; the rest are attributed to it later."""


def demo_lines(key: PartitionKey, *, seed: int, rows: int, restatement: int) -> Iterator[bytes]:
    """Give the rows of a partition as JSON: always the same bytes for the same arguments, on any machine.

    A later `restatement` changes the conversions and nothing else: they grow, and from the sixth
    extraction on stay as they are. The lines come out encoded: half as fast again as dicts to be encoded.
    """
    shape = _SHAPES.get(key.query_name, _CAMPAIGN)
    line = shape.template.replace(b"<day>", key.logical_date.isoformat().encode())
    volume = _WEEKDAY_PERCENT[key.logical_date.weekday()]
    arrived = _ARRIVED_PERCENT[min(restatement, len(_ARRIVED_PERCENT) - 1)]
    entities = shape.entities(_first_id(key.customer_id, seed))
    for (reach, appeal, price, interest, intent), entity in zip(
        _numbers(key, seed, rows), entities, strict=False
    ):
        impressions = (reach * appeal >> 16) * volume // 100
        clicks = impressions * (1 + interest % 120) // 1000
        hundredths = clicks * (intent % 15) * arrived // 100
        cost_micros = clicks * (150_000 + 50 * price)
        yield line % (*entity, impressions, clicks, hundredths // 100, hundredths % 100, cost_micros)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The columns of a report before its metrics, and the endless series of what they are about."""

    columns: bytes
    entities: Callable[[int], Iterator[tuple[int | bytes, ...]]]

    @property
    def template(self) -> bytes:
        return (
            b"{" + self.columns + b',"segments_date":"<day>","metrics_impressions":%d,"metrics_clicks":%d,'
            b'"metrics_conversions":%d.%02d,"metrics_cost_micros":%d}'
        )


def _campaigns(first_id: int) -> Iterator[tuple[int | bytes, ...]]:
    for number in count():
        theme, status = _THEMES[number % len(_THEMES)], _STATUSES[number % len(_STATUSES)]
        for device in _DEVICES:
            yield first_id + number, theme, number + 1, status, device


def _ad_groups(first_id: int) -> Iterator[tuple[int | bytes, ...]]:
    for number in count():
        theme = _THEMES[number % len(_THEMES)]
        for part in range(_AD_GROUPS_PER_CAMPAIGN):
            ad_group = number * _AD_GROUPS_PER_CAMPAIGN + part
            status = _STATUSES[ad_group % len(_STATUSES)]
            for device in _DEVICES:
                yield first_id + number, theme, number + 1, 10 * first_id + ad_group, part + 1, status, device


def _devices(first_id: int) -> Iterator[tuple[int | bytes, ...]]:
    for number in count():
        for device in _DEVICES:
            for network in _NETWORKS:
                yield first_id + number, device, network


_CAMPAIGN = _Shape(
    b'"campaign_id":%d,"campaign_name":"%b %d","campaign_status":"%b","segments_device":"%b"', _campaigns
)
_SHAPES = {
    "ad_group_daily": _Shape(
        b'"campaign_id":%d,"campaign_name":"%b %d",'
        b'"ad_group_id":%d,"ad_group_name":"Ad group %d","ad_group_status":"%b","segments_device":"%b"',
        _ad_groups,
    ),
    "device_daily": _Shape(
        b'"campaign_id":%d,"segments_device":"%b","segments_ad_network_type":"%b"', _devices
    ),
}


def _first_id(customer_id: str, seed: int) -> int:
    """Give an account ids of its own, the same ones on every day."""
    digest = sha256(f"{seed}|{customer_id}".encode()).digest()
    return 10_000_000_000 + int.from_bytes(digest[:4], "big")


def _numbers(key: PartitionKey, seed: int, rows: int) -> Iterator[tuple[int, ...]]:
    """Give five numbers for each row. SHAKE is the same everywhere, which `random` does not promise."""
    for block, start in enumerate(range(0, rows, _BLOCK_ROWS)):
        size = min(_BLOCK_ROWS, rows - start) * _NUMBERS.size
        yield from _NUMBERS.iter_unpack(shake_128(f"{seed}|{key}|{block}".encode()).digest(size))
