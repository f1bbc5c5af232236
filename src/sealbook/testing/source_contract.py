"""The contract of a source, as a suite that any adapter can run: rows, failures, options, secrets.

Subclass `SourceContract` in a test module, name the class, and say what it has:

    class TestMySource(SourceContract):
        source_class = MySource

        def options(self) -> Mapping[str, object]:
            return {"folder": "…"}

        def partitions(self) -> Sequence[Known]:
            return [Known(key, query, rows), Known(other_key, query, other_rows)]

        def failures(self) -> Sequence[Provoked]:
            return [Provoked("no such day", key, query, ErrorClass.TRANSIENT)]

The methods are plain functions with assertions, so that pytest and unittest alike can run them.
"""

from __future__ import annotations

import os
import pickle
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from itertools import chain, islice, repeat

import msgspec

from sealbook.errors import ConfigError, QuotaExceeded, QuotaScope, Transient
from sealbook.extract.source import Checkable, Examinable, Remark, Row, Source
from sealbook.model import PartitionKey
from sealbook.model.contract import Query
from sealbook.model.failures import ErrorClass

_THREADS = 8
_ROUNDS = 4
_OPEN_FILES = "/dev/fd"


@dataclass(frozen=True)
class Known:
    """A partition that the source has, and its rows in their order: as mappings of JSON values."""

    key: PartitionKey
    query: Query
    rows: Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Provoked:
    """A failure that was brought about: where it strikes, and by what it must be classed (R-CTL-7)."""

    what: str
    key: PartitionKey
    query: Query
    error_class: ErrorClass
    scope: QuotaScope | None = None
    """Whose quota is used up, where that is the class."""
    retry_after: float | None = None
    """The wait that the server asked for."""


class SourceContract(ABC):
    """What every source does.

    `secrets` are texts that the options, or the environment, have, and that nobody may read anywhere else.
    """

    source_class: type[Source]
    secrets: Sequence[str] = ()

    @abstractmethod
    def options(self) -> Mapping[str, object]:
        """Return the options of a source that has the partitions, and the failures."""

    @abstractmethod
    def partitions(self) -> Sequence[Known]:
        """Return at least two partitions with different rows, the first of which has several."""

    @abstractmethod
    def failures(self) -> Sequence[Provoked]:
        """Return failures of at least two classes, and of each class that the source can tell."""

    def unusable(self) -> Mapping[str, object] | None:
        """Return options with which nothing can be fetched; None if there are none such."""
        return None

    def held(self) -> int:
        """Return how much is open now: files and connections of this process, or streams of a server."""
        return len(os.listdir(_OPEN_FILES))  # noqa: PTH208 - a folder that changes by being looked at

    def make_source(self) -> Source:
        """Return a new source."""
        return self.source_class.from_options(self.options())

    def test_rows_come_in_their_order(self) -> None:
        """Each partition has its own, in the order received."""
        source = self.make_source()
        for known in self._known():
            assert _decoded(source.fetch(known.key, known.query)) == known.rows, known.key

    def test_every_call_begins_at_the_first_row(self) -> None:
        """A retry writes the partition anew: also after a reader that stopped in the middle."""
        source, known = self.make_source(), self._known()[0]
        for _ in range(2):
            first = next(iter(_decoded(_some(source, known, 1))))
            assert first == known.rows[0]
            assert _decoded(source.fetch(known.key, known.query)) == known.rows

    def test_many_threads_share_a_source(self) -> None:
        """Each gets the rows of its own partition, whole and in order."""
        source = self.make_source()
        asked = list(chain.from_iterable(repeat(self._known(), _ROUNDS)))
        with ThreadPoolExecutor(_THREADS) as pool:
            found = list(pool.map(lambda each: _decoded(source.fetch(each.key, each.query)), asked))
        assert found == [list(each.rows) for each in asked]

    def test_failures_are_classed_by_type(self) -> None:
        """R-CTL-7: by what must happen before another try makes sense, with the scope and the wait."""
        failures = self.failures()
        assert len({each.error_class for each in failures}) > 1, "failures() shows too few classes"
        for each in failures:
            error = self._raised(each)
            assert ErrorClass.of(error) is each.error_class, f"{each.what}: {error!r}"
            if each.retry_after is not None:
                assert isinstance(error, Transient)
                assert error.retry_after == each.retry_after, f"{each.what}: {error.retry_after}"
            if each.scope is not None:
                assert isinstance(error, QuotaExceeded)
                assert error.scope is each.scope, f"{each.what}: {error.scope}"

    def test_a_failure_does_not_spoil_the_source(self) -> None:
        """One that has failed gives the rows of other partitions as before."""
        source, known = self.make_source(), self._known()[0]
        for each in self.failures():
            _error_of(source, each)
            assert _decoded(source.fetch(known.key, known.query)) == known.rows, each.what

    def test_a_reader_that_stops_early_leaves_nothing_open(self) -> None:
        """No file, connection or stream stays open for rows that nobody takes."""
        source, known = self.make_source(), self._known()[0]
        list(source.fetch(known.key, known.query))  # what the source keeps for all fetches is open by now
        before = self.held()
        for _ in range(3):
            _some(source, known, 1)
        assert self.held() == before

    def test_nothing_is_opened_before_it_is_asked_for(self) -> None:
        """A source is made where nothing is fetched, too."""
        self.make_source()
        before = self.held()
        sources = [self.make_source() for _ in range(3)]
        assert self.held() == before
        del sources

    def test_its_options_can_be_sent_to_a_worker(self) -> None:
        """Executors get the options, and make a source of them that has the same rows."""
        sent = pickle.loads(pickle.dumps(self.options()))
        source, known = self.source_class.from_options(sent), self._known()[0]
        assert _decoded(source.fetch(known.key, known.query)) == known.rows

    def test_an_unknown_option_is_refused_by_name(self) -> None:
        """A slip of the pen must not go unnoticed; the value may be secret."""
        options = {**self.options(), "no_such_option": "a value of it"}
        error = _raised_by(lambda: self.source_class.from_options(options))
        assert isinstance(error, ConfigError), f"an unknown option was taken: {error!r}"
        assert "no_such_option" in str(error)
        assert "a value of it" not in f"{error!r} {error.remedy}"

    def test_it_is_checked_before_anything_starts(self) -> None:
        """A good source passes; one that could fetch nothing is refused."""
        source, queries = self.make_source(), self._queries()
        if not isinstance(source, Checkable):
            assert self.unusable() is None, "options can make it unusable, and it has no `check`"
            return
        source.check(queries)
        if (options := self.unusable()) is not None:
            assert self._refusal(options) is not None, "it was taken, and could fetch nothing"

    def test_it_tells_how_it_is(self) -> None:
        """`sealbook doctor` shows what it says: one line each."""
        source = self.make_source()
        if not isinstance(source, Examinable):
            return
        remarks = source.examine(self._queries(), date(2026, 1, 1))
        assert remarks
        for remark in remarks:
            assert isinstance(remark, Remark)
            assert remark.text.strip()
            assert "\n" not in remark.text

    def test_secrets_stay_secret(self) -> None:
        """In nothing that it says of itself, and in no error, nor in what caused it."""
        said = [repr(self.make_source()), str(self.make_source())]
        said += [_whole(self._raised(each)) for each in self.failures()]
        if (options := self.unusable()) is not None and (refusal := self._refusal(options)) is not None:
            said.append(_whole(refusal))
        source = self.make_source()
        if isinstance(source, Examinable):
            said += map(repr, source.examine(self._queries(), date(2026, 1, 1)))
        for secret in self.secrets:
            assert [text for text in said if secret in text] == []

    def _known(self) -> Sequence[Known]:
        known = self.partitions()
        assert len(known) > 1, "partitions() has too few"
        assert len(known[0].rows) > 1, "the first of partitions() has too few rows"
        return known

    def _queries(self) -> list[Query]:
        return list({known.query.name: known.query for known in self.partitions()}.values())

    def _raised(self, provoked: Provoked) -> Exception:
        return _error_of(self.make_source(), provoked)

    def _refusal(self, options: Mapping[str, object]) -> Exception | None:
        """Return with what a check refuses options, if it does."""
        queries = self._queries()

        def check() -> None:
            source = self.source_class.from_options(options)
            assert isinstance(source, Checkable)
            source.check(queries)

        return _raised_by(check)


def _error_of(source: Source, provoked: Provoked) -> Exception:
    error = _raised_by(lambda: list(source.fetch(provoked.key, provoked.query)))
    assert error is not None, f"{provoked.what}: nothing was raised"
    return error


def _raised_by(work: Callable[[], object]) -> Exception | None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - a source is foreign code
        return error
    return None


def _some(source: Source, known: Known, number: int) -> list[Row]:
    """Take some rows of a partition, and stop as a task does that is told to."""
    rows = iter(source.fetch(known.key, known.query))
    taken = list(islice(rows, number))
    close = getattr(rows, "close", None)
    if close is not None:
        close()
    return taken


def _decoded(rows: Iterator[Row] | Sequence[Row]) -> list[object]:
    """Return rows as their JSON says them."""
    return [
        msgspec.json.decode(row if isinstance(row, bytes) else msgspec.json.encode(dict(row))) for row in rows
    ]


def _whole(error: Exception) -> str:
    """Return all that an error says, its remedy and what caused it."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(getattr(error, "remedy", ""))
