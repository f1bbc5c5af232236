"""Where an artifact lies below the root of its warehouse, both ways (R-WH-6)."""

from __future__ import annotations

import re

from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.contract import check_schema_version
from sealbook.model.keys import parse_date
from sealbook.model.publication import Artifact

# Spark and Hive pass over names that begin with _, so they do not read what is not whole yet.
DRAFTS = "_drafts"
"""The directory of files that are being written; each is named by a ULID, which says since when."""

_LOCATION = re.compile(
    r"(?P<source>[^/]+)/(?P<query_name>[^/]+)/schema_version=(?P<schema_version>[^/]+)"
    r"/customer_id=(?P<customer_id>[^/]+)/logical_date=(?P<logical_date>[^/]+)/run_id=(?P<run_id>[^/]+)"
)
_PART = re.compile(r"part-[0-9]{5}\.parquet")


def location_of(artifact: Artifact) -> str:
    """Return the directory that holds the parts of an artifact, and nothing else."""
    key = artifact.key
    return (
        f"{key.source}/{key.query_name}/schema_version={artifact.schema_version}"
        f"/customer_id={key.customer_id}/logical_date={key.logical_date.isoformat()}/run_id={artifact.run_id}"
    )


def part_path(location: str, number: int) -> str:
    """Return the path of one part of an artifact, counted from 0."""
    return f"{location}/part-{number:05d}.parquet"


def part_paths(location: str, parts: int) -> list[str]:
    """Return the paths of all parts of an artifact, in the order of their rows."""
    return [part_path(location, number) for number in range(parts)]


def is_part(path: str) -> bool:
    """Say whether the last name of a path is that of a part."""
    return _PART.fullmatch(path.rpartition("/")[2]) is not None


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
