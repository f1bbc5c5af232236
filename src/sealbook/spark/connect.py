"""Spark Connect: a session without a Spark context, by which data is read; stages need more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sealbook.errors import ConfigError, MissingExtra, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMOTE = "SPARK_REMOTE"
_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""PySpark sets it when a process has a session of Spark Connect; such a process has no other."""


def connect_url(master: str) -> str | None:
    """Return the address of the Spark Connect server that is to be used; None for a classic session."""
    if master.startswith("sc://"):
        return master
    return os.environ.get(_REMOTE) or None


def uses_connect(master: str) -> bool:
    """Say whether the session of this process is one of Spark Connect, or would be."""
    return connect_url(master) is not None or _MODE in os.environ


def is_connect(session: SparkSession) -> bool:
    """Say whether a session is one of Spark Connect, without importing that: it needs further packages."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connect_session(master: str) -> SparkSession:
    """Return the session of this process, or a new one of the Spark Connect server that is to be used."""
    from pyspark.errors import PySparkException, PySparkImportError
    from pyspark.sql import SparkSession

    url = connect_url(master)
    try:
        session = (SparkSession.builder.remote(url) if url else SparkSession.builder).getOrCreate()
        session.version  # noqa: B018 - nobody has asked the server until now
    except PySparkImportError as error:
        raise MissingExtra(
            f"Spark Connect cannot be used: {first_line(error)}", remedy="pip install 'pyspark[connect]'"
        ) from error
    except PySparkException as error:
        raise ConfigError(
            f"Spark Connect does not answer: {first_line(error)}",
            remedy=f"Look at `spark.master` and {_REMOTE}, and whether the server runs.",
        ) from error
    return session


def refuse_connect() -> ConfigError:
    """Return what a stage says that was given Spark Connect."""
    return ConfigError(
        "extract, validate and load need a classic Spark session, and this is Spark Connect",
        remedy="Set `spark.master` to this machine or to a cluster; through Spark Connect, read.",
    )
