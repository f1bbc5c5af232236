"""The composition root: from settings to the parts of a book, each opened when first asked for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealbook.config import Settings
    from sealbook.extract.results import Extracted
    from sealbook.ledger import Ledger
    from sealbook.model import PartitionKey, RunId
    from sealbook.raw import RawStore


class Book:
    """A configured book. Use it as a context manager, or close it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def ledger(self) -> Ledger:
        """The state of every partition."""
        from sealbook.ledger import open_ledger

        return open_ledger(self.settings.ledger)

    @cached_property
    def raw(self) -> RawStore:
        """The sealed raw partitions."""
        from sealbook.raw import RawStore

        return RawStore.open(self.settings.raw)

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of this process."""
        from sealbook.spark.session import spark_session

        return spark_session(self.settings.spark)

    def extract(
        self, source: str, keys: Sequence[PartitionKey], run_id: RunId
    ) -> Generator[list[Extracted], None, None]:
        """Extract partitions of one source as part of a run; yields results as they come."""
        from sealbook.extract.extractor import Extractor
        from sealbook.extract.job import extract

        settings = self.settings.sources[source]
        extractor = Extractor(
            run_id=run_id,
            source_name=source,
            queries=settings.queries,
            raw_url=self.settings.raw,
            options=settings.options,
            limits=settings.limits,
        )
        return extract(self.spark, extractor, keys)

    def close(self) -> None:
        """Close what was opened; the book opens it again when asked to."""
        ledger: Ledger | None = self.__dict__.pop("ledger", None)
        if ledger is not None:
            ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
