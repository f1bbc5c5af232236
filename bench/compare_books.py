"""Large books against a small one: what a command about one customer, or with nothing to do, takes in each.

The commands run as a user types them. BOOK_PARTITIONS says how large the large ones are, as a list:
20,000 take a minute to make, a million forty minutes and 40 GB of disk.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.book_load import CUSTOMER, DAY, QUERY, enlarge, small_book
from bench.harness import Result, duration, megabytes, peak_memory, seconds
from bench.scale import sized
from sealbook.model import RunId
from tests.support.ledger import postgresql_server

SIZES = [
    int(size)
    for size in os.environ.get("BOOK_PARTITIONS", sized(small="5000", full="1000,5000,20000")).split(",")
]
_ROUNDS = sized(small=2, full=3)
_KEY = f"demo/{CUSTOMER}/{QUERY}/{DAY}"
_QUICK = (
    f"state inspect {_KEY}",
    f"state inspect --customer {CUSTOMER}",
    "state inspect --status failed",
    f"state history {_KEY}",
    f"coverage --customer {CUSTOMER}",
    f"raw list --customer {CUSTOMER}",
    f"validate --customer {CUSTOMER}",
    "validate --rejected",
    "load",
    f"load --customer {CUSTOMER}",
    "warehouse plan",
    f"warehouse pointers --customer {CUSTOMER}",
    f"warehouse records --customer {CUSTOMER}",
    f"warehouse verify --customer {CUSTOMER}",
    f"sql \"select count(*) from {QUERY} where customer_id = '{CUSTOMER}'\"",
    f"ledger verify --customer {CUSTOMER}",
    "runs",
    "events {run_id}",
    f"run {_KEY}",
)
"""What takes as long in a large book as in a small one."""
_STREAMED = ("validate", "state inspect --format json", "coverage --format json")
"""What looks at the whole book, without holding it."""


def run() -> list[Result]:
    """Measure on SQLite and PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder, postgresql_server(Path(folder) / "pg") as server:
        small, large = Path(folder) / "small", Path(folder) / "large"
        return [
            *_growing("SQLite", small, large, [f"sqlite:///{each}/book.db" for each in (small, large)]),
            *_growing(
                "PostgreSQL",
                Path(folder) / "small-pg",
                Path(folder) / "large-pg",
                [server.create_database() for _ in range(2)],
            ),
        ]


def _growing(database: str, small: Path, large: Path, ledgers: Sequence[str]) -> Iterator[Result]:
    """Compare a book that stays small with one that grows."""
    runs = [small_book(each, ledger) for each, ledger in zip((small, large), ledgers, strict=True)]
    made = 0
    for size in SIZES:
        enlarge(large, runs[1], made, size)
        made = size
        name = f"{database}, {size:,}"
        for command in _QUICK:
            mine, theirs = seconds(_ROUNDS, *map(_call, (large, small), _filled(command, runs[::-1])))
            yield duration(f"{_shown(command)}, {name}", mine, theirs, at_most=2, detail=f"{mine:.2f} s")
        yield _listing(name, small, large)
        for command in _STREAMED:
            yield megabytes(f"{_shown(command)}, {name}", _peak(large, command), at_most=200)


def _listing(name: str, small: Path, large: Path) -> Result:
    """Hold validation in a large book against that in a small one and a bare listing of the large one's runs.

    A seal may be made by anybody, so less than to list them all cannot find that there is no new one.
    """
    validate = [_call(book, "validate") for book in (large, small)]
    mine, theirs, listed = seconds(_ROUNDS, *validate, lambda: _list(large / "raw"))
    detail = f"{mine:.2f} s; listing {listed:.2f} s"
    what = f"validate with nothing new, {name}, against a small book's and a bare listing"
    return duration(what, mine, theirs + listed, at_most=2, detail=detail)


def _filled(command: str, runs: Sequence[RunId]) -> list[str]:
    return [command.format(run_id=run_id) for run_id in runs]


def _shown(command: str) -> str:
    return command.replace(_KEY, "KEY").replace(f" {CUSTOMER}", "").replace("{run_id}", "RUN")


def _call(book: Path, command: str) -> Callable[[], object]:
    sealbook = str(Path(sys.executable).parent / "sealbook")
    arguments = [sealbook, "--config", str(book), *shlex.split(command)]
    return lambda: subprocess.run(arguments, check=True, capture_output=True)


def _peak(book: Path, command: str) -> float:
    """Return the peak memory of a command; what it prints goes nowhere."""
    arguments = ["--config", str(book), *shlex.split(command)]
    return peak_memory(
        "import os\nfrom sealbook.cli import main\nout = os.dup(1)\n"
        "os.dup2(os.open(os.devnull, os.O_WRONLY), 1)\n"
        f"assert main({arguments!r}) == 0\nos.dup2(out, 1)"
    )


def _list(root: Path) -> int:
    """Find every directory of a run with nothing but the standard library."""
    found = [str(root)]
    for _ in range(5):  # source, customer, query, day, run
        found = [
            f"{directory}/{name}"
            for directory in found
            for name in os.listdir(directory)  # noqa: PTH208 - the quickest there is
        ]
    return len(found)
