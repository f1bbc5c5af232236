"""Each stage over 1,000, 5,000 and 20,000 partitions, on both databases, against itself at the fewest.

Time, statements and files are held by the partition; memory as a whole.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.harness import Result
from bench.usage import Usage
from tests.support.ledger import postgresql_server

SIZES = (1_000, 5_000, 20_000)

Grown = Mapping[int, Usage]
"""What a stage took, by the number of partitions."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How many times as much of something the most partitions may take as the fewest."""

    what: str
    taken: Callable[[Usage, int], float]
    shown: str
    at_most: float


BOUNDS = (
    Bound("time a partition", lambda usage, size: 1_000 * usage.seconds / size, "{:,.2f} ms", 1.2),
    Bound("CPU a partition", lambda usage, size: 1_000 * usage.cpu_seconds / size, "{:,.2f} ms", 1.2),
    Bound("statements a partition", lambda usage, size: usage.statements / size, "{:,.4f}", 1),
    Bound("files a partition", lambda usage, size: usage.files / size, "{:,.3f}", 1),
    Bound("memory of the driver", lambda usage, _: usage.driver_megabytes, "{:,.0f} MB", 1.5),
    Bound("memory of Java", lambda usage, _: usage.java_megabytes, "{:,.0f} MB", 2),
    Bound("memory of a worker", lambda usage, _: usage.worker_megabytes, "{:,.0f} MB", 1.5),
)

REASONS = {
    ("sql", "memory of the driver"): "Arrow keeps the metadata of every file that it scans, some 30 KB each.",
}
"""Why a stage misses a bound, by its name and by what is bound."""


def run() -> list[Result]:
    """Measure every size in a process of its own, first on one database, then on the other."""
    with tempfile.TemporaryDirectory() as name, postgresql_server(Path(name) / "pg") as server:
        folder = Path(name)
        return [
            *_growing("SQLite", folder / "sqlite", lambda place: f"sqlite:///{place}/book.db"),
            *_growing("PostgreSQL", folder / "postgresql", lambda _: server.create_ledger()),
        ]


def _growing(database: str, folder: Path, ledger: Callable[[Path], str]) -> Iterator[Result]:
    taken: dict[int, dict[str, Usage]] = {}
    for size in SIZES:
        place = folder / str(size)
        place.mkdir(parents=True)
        taken[size] = _measured(place, ledger(place), size)
    for stage in taken[SIZES[0]]:
        yield from held(stage, database, {size: taken[size][stage] for size in SIZES})


def _measured(folder: Path, ledger: str, partitions: int) -> dict[str, Usage]:
    command = [sys.executable, "-m", "bench.growth_usage", str(folder), ledger, str(partitions)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return msgspec.json.decode(said, type=dict[str, Usage])


def held(stage: str, database: str, grown: Grown) -> Iterator[Result]:
    """Hold what a stage took of the most partitions against the fewest; what it has no use of is left out."""
    for bound in BOUNDS:
        each = {size: bound.taken(usage, size) for size, usage in sorted(grown.items())}
        least, *_, most = each.values()
        if not any(each.values()):
            continue
        ratio = most / least if least else float("inf")
        detail = ", ".join(f"{size:,}: {bound.shown.format(value)}" for size, value in each.items())
        yield Result(
            f"{stage}, {database}: {bound.what}",
            ratio,
            "x",
            f"<= {bound.at_most}",
            ratio <= bound.at_most,
            detail,
            REASONS.get((stage, bound.what), ""),
        )
