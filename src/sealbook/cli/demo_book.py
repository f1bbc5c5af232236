"""The files of the demo book: written once, and edited in one place while the demo goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from sealbook.errors import ConfigError
from sealbook.model.words import counted

FIRST_DAY, LAST_DAY = "2026-01-01", "2026-01-30"
ACCOUNTS = 20
PARTITIONS_PER_ACCOUNT = 3 * 30
STRICTER = "row_count: {min_ratio: 0.5}"
"""What the contract of device_daily, the last of its file, has too after `make_stricter`."""

_FIRST_ACCOUNT = 1001
_PER_LINE = 10
_ADDED = f"        {STRICTER}\n"


def accounts_for(partitions: int | None) -> int:
    """Return how many accounts have at least so many partitions; 20, which have all the faults, or more."""
    return max(ACCOUNTS, -(-(partitions or 0) // PARTITIONS_PER_ACCOUNT))


def prepare_book(folder: Path, partitions: int | None) -> None:
    """Write the files of a new book; one that is there begins again, and keeps what was changed by hand."""
    from sealbook.config import load_settings
    from sealbook.extract.sources.demo import demo_configuration

    settings, queries = folder / "sealbook.yaml", folder / "demo.yaml"
    there = [file for file in (settings, queries) if file.exists()]
    if len(there) == 1:
        raise ConfigError(
            f"{folder} has {there[0].name}, but is no demo book; nothing was changed",
            remedy="Name another folder.",
        )
    accounts = accounts_for(partitions)
    if not there:
        template = (files("sealbook") / "templates" / "demo.yaml").read_text("utf-8")
        _write(settings, template.replace("CUSTOMERS", "\n      ".join(_lines(accounts))))
        _write(queries, demo_configuration())
        return
    source = load_settings(folder).sources.get("demo")
    if source is None or (partitions is not None and len(source.customers) != accounts):
        has = "no source demo" if source is None else counted(len(source.customers), "account")
        raise ConfigError(
            f"{folder} has {has}; the demo that was asked for has {accounts:,} accounts",
            remedy="Name another folder.",
        )
    shutil.rmtree(folder / "demo_source", ignore_errors=True)  # its faults pass and strike as the first time
    _write(queries, queries.read_text("utf-8").removesuffix(_ADDED))


def make_stricter(folder: Path) -> None:
    """Change a contract as its author would: by one line at its end."""
    file = folder / "demo.yaml"
    _write(file, file.read_text("utf-8").removesuffix(_ADDED) + _ADDED)


def _lines(accounts: int) -> Iterator[str]:
    """Write down account ids, some to a line."""
    for start in range(0, accounts, _PER_LINE):
        numbers = range(_FIRST_ACCOUNT + start, _FIRST_ACCOUNT + min(start + _PER_LINE, accounts))
        yield " ".join(f'"{number}",' for number in numbers)


def _write(file: Path, content: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
