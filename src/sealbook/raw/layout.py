"""Where a raw partition lies below the root of its store, both ways (R-RAW-1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.keys import parse_date

METADATA = "metadata.json"
PAYLOAD = "payload.jsonl"
"""The payload's name where the metadata names none, as other tools may write it."""
PAYLOAD_NAME = re.compile(r"payload(-[0-9A-Za-z_-]{1,64})?\.jsonl")
"""Every name that a payload may have."""
_CUSTOMER = "customer_id="
RUN_DEPTH = 4
"""How many directories lead from the root to that of a run."""

RunName = tuple[str, str, str, date, str]
"""A run of a partition, as plainly as can be: source, customer_id, query_name, logical_date, run_id."""

_RUN = re.compile(
    r"(?P<source>[^/]+)/customer_id=(?P<customer_id>[^/]+)/query_name=(?P<query_name>[^/]+)"
    r"/logical_date=(?P<logical_date>[^/]+)/run_id=(?P<run_id>[^/]+)"
)


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The paths of one run of a partition, relative to the root."""

    key: PartitionKey
    run_id: RunId

    @property
    def directory(self) -> str:
        """All that belongs to the run lies below it."""
        key = self.key
        return run_directory(key.source, key.customer_id, key.query_name, key.logical_date, self.run_id)

    @property
    def metadata(self) -> str:
        """The seal."""
        return f"{self.directory}/{METADATA}"

    def payload(self, name: str = PAYLOAD) -> str:
        """The rows, one JSON object a line, under the name that the seal says."""
        return f"{self.directory}/{name}"

    def __str__(self) -> str:
        return f"{self.key} run {self.run_id}"


def payload_name(write_id: str) -> str:
    """Return the name of the payload of one write, which no other write has."""
    return f"payload-{write_id}.jsonl"


def key_prefix(key: PartitionKey) -> str:
    """Return the directory that holds every run of a partition."""
    query = query_prefix(key.source, key.customer_id, key.query_name)
    return f"{query}/logical_date={key.logical_date.isoformat()}"


def query_prefix(source: str, customer_id: str, query_name: str | None) -> str:
    """Return the directory of a customer, or of one query of that customer."""
    customer = f"{source}/{_CUSTOMER}{customer_id}"
    return customer if query_name is None else f"{customer}/query_name={query_name}"


def run_directory(source: str, customer_id: str, query_name: str, logical_date: date, run_id: str) -> str:
    """Return the directory of a run, without a look at its name."""
    return (
        f"{source}/{_CUSTOMER}{customer_id}/query_name={query_name}"
        f"/logical_date={logical_date.isoformat()}/run_id={run_id}"
    )


def customer_of(directory: str) -> str | None:
    """Read the customer id off a directory `<source>/customer_id=…`; None for any other name."""
    name = directory.rpartition("/")[2]
    return name.removeprefix(_CUSTOMER) if name.startswith(_CUSTOMER) else None


def parse_run(path: str) -> RunPaths:
    """Read key and run off the path of a run's directory; strict, InvalidInput names what is wrong."""
    match = _RUN.fullmatch(path)
    if match is None:
        raise InvalidInput.of("raw path", path, "<source>/customer_id=…/query_name=…/logical_date=…/run_id=…")
    key = PartitionKey(
        match["source"],
        match["customer_id"],
        match["query_name"],
        parse_date("logical_date", match["logical_date"]),
    )
    return RunPaths(key, RunId(match["run_id"]))
