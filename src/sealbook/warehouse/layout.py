"""Where an artifact lies below the root of its warehouse, both ways (R-WH-6)."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.artifacts import Artifact, is_unnamed
from sealbook.model.contract import check_schema_version
from sealbook.model.keys import parse_date

# Spark and Hive pass over names that begin with _, so they do not read what is not whole yet.
DRAFTS = "_drafts"
"""The directory of files that are being written; each is named by a ULID, which says since when."""

_LOCATION = re.compile(
    r"(?P<source>[^/]+)/(?P<query_name>[^/]+)/schema_version=(?P<schema_version>[^/]+)"
    r"/customer_id=(?P<customer_id>[^/]+)/logical_date=(?P<logical_date>[^/]+)/run_id=(?P<run_id>[^/]+)"
)
_PART = re.compile(r"part-([0-9]{5})(?:-([0-9a-f]{64})(?:-([1-9][0-9]*))?)?\.parquet")


class Filed(Protocol):
    """What names the files of an artifact."""

    @property
    def location(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def parts(self) -> int: ...
    @property
    def format(self) -> int: ...
    @property
    def copy(self) -> int: ...
    @property
    def part_digests(self) -> tuple[str, ...] | None: ...


class PartName(NamedTuple):
    """What the name of a part file says; those of the first format carry no digest."""

    number: int
    digest: str | None
    copy: int


def location_of(artifact: Artifact) -> str:
    """Return the directory that holds the parts of an artifact, and nothing else."""
    key = artifact.key
    return (
        f"{key.source}/{key.query_name}/schema_version={artifact.schema_version}"
        f"/customer_id={key.customer_id}/logical_date={key.logical_date.isoformat()}/run_id={artifact.run_id}"
    )


def part_path(location: str, number: int, digest: str, copy: int = 0) -> str:
    """Return the path of one part of an artifact, counted from 0: its name carries its sha256 and copy."""
    again = f"-{copy}" if copy else ""
    return f"{location}/part-{number:05d}-{digest}{again}.parquet"


def part_paths(artifact: Filed) -> list[str]:
    """Return the paths of all parts of an artifact, in the order of their rows."""
    location, copy = artifact.location, artifact.copy
    if is_unnamed(artifact.format, copy):
        return [f"{location}/part-{number:05d}.parquet" for number in range(artifact.parts)]
    digests = artifact.part_digests or (artifact.digest,)
    return [part_path(location, number, digest, copy) for number, digest in enumerate(digests)]


def parse_part(path: str) -> PartName | None:
    """Read the last name of a path; None if it is not that of a part."""
    match = _PART.fullmatch(path.rpartition("/")[2])
    if match is None:
        return None
    number, digest, copy = match.groups()
    return PartName(int(number), digest, int(copy or 0))


def parse_location(location: str) -> Artifact:
    """Read an artifact's identity off its directory; strict, InvalidInput names what is wrong."""
    match = _LOCATION.fullmatch(location)
    if match is None:
        raise InvalidInput.of(
            "location",
            location,
            "<source>/<query_name>/schema_version=…/customer_id=…/logical_date=…/run_id=…",
        )
    check_schema_version(match["schema_version"])
    day = parse_date("logical_date", match["logical_date"])
    key = PartitionKey(match["source"], match["customer_id"], match["query_name"], day)
    return Artifact(key, RunId(match["run_id"]), match["schema_version"])
