"""Ranges seal exactly what single days would, or nothing: wherever the stream breaks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealbook.errors import (
    ConfigError,
    Forbidden,
    PastHorizon,
    Permanent,
    QuotaExceeded,
    Transient,
    Unwritable,
)
from sealbook.extract.allowance import Allowance
from sealbook.extract.by_day import by_day
from sealbook.extract.extractor import Extractor
from sealbook.extract.ranges import singles
from sealbook.extract.results import Ending, Extracted
from sealbook.extract.retry import RetryPolicy
from sealbook.extract.sources.demo import DemoSource
from sealbook.model import PartitionKey
from sealbook.model.failures import ErrorClass
from sealbook.raw import RawMetadata, RawStore, Row
from tests.support.extraction import FIRST_DAY
from tests.support.ranged import Break, RangedSource, changed_on, days, ranged_extractor

ONCE = Allowance(once=True)

row_lists = st.lists(st.integers(0, 99).map(lambda number: {"number": number}), max_size=4)
numbers = st.integers(0, 7)


def sealed(extractor: Extractor, keys: list[PartitionKey]) -> dict[PartitionKey, bytes]:
    """Return the payloads of what is sealed, as lines that were read and checked."""
    store = RawStore.open(extractor.raw_url)
    return {
        key: store.read(key, extractor.run_id).payload()
        for key in keys
        if store.is_sealed(key, extractor.run_id)
    }


def rows_of(keys: list[PartitionKey], lists: list[list[dict[str, int]]]) -> dict[date, list[Row]]:
    return {key.logical_date: list(own) for key, own in zip(keys, lists, strict=True)}


def endings(results: list[Extracted]) -> list[Ending]:
    return [result.ending for result in results]


@settings(max_examples=40)
@given(
    lists=st.lists(row_lists, min_size=1, max_size=6),
    broken=st.dictionaries(numbers, st.builds(Break, st.just(Permanent("bad day")), st.integers(0, 4))),
    passing=st.dictionaries(
        numbers, st.builds(Break, st.just(Transient("busy")), st.integers(0, 4), st.integers(1, 4))
    ),
)
def test_by_hand_only_bad_days_fail_and_all_others_are_as_if_fetched_alone(
    lists: list[list[dict[str, int]]], broken: dict[int, Break], passing: dict[int, Break]
) -> None:
    """What passes is tried again; a range that fails is halved until its bad days are alone."""
    keys = days(len(lists))
    rows = rows_of(keys, lists)
    breaks = {key.logical_date: broken[number] for number, key in enumerate(keys) if number in broken}
    hiccups = {key.logical_date: passing[number] for number, key in enumerate(keys) if number in passing}
    source = RangedSource(rows, {**hiccups, **breaks})
    with TemporaryDirectory() as folder:
        alone = ranged_extractor(Path(folder) / "alone", RangedSource(rows))
        together = ranged_extractor(
            Path(folder) / "together", source, retry=RetryPolicy(tries=5, base_seconds=0.0)
        )
        assert endings(alone(singles(keys))) == [Ending.SEALED] * len(keys)
        results = together([tuple(keys)])
        good = [key for key in keys if key.logical_date not in breaks]
        expected = sealed(alone, keys)
        found = sealed(together, keys)
    assert [result.key for result in results] == keys
    assert found == {key: expected[key] for key in good}
    assert [result.key for result in results if result.ending is Ending.SEALED] == good
    assert sum(result.requests for result in results) == len(source.asked)


@settings(max_examples=40)
@given(
    lists=st.lists(row_lists, min_size=2, max_size=6),
    place=numbers,
    after=st.integers(0, 4),
    error=st.sampled_from([Permanent("bad"), Transient("busy"), QuotaExceeded("used up"), ValueError("bad")]),
)
def test_where_requests_are_reserved_a_range_is_asked_for_once_and_sealed_whole_or_not_at_all(
    lists: list[list[dict[str, int]]], place: int, after: int, error: Exception
) -> None:
    keys = days(len(lists))
    rows = rows_of(keys, lists)
    breaks = {key.logical_date: Break(error, after) for key in keys[place : place + 1]}
    source = RangedSource(rows, breaks)
    with TemporaryDirectory() as folder:
        alone = ranged_extractor(Path(folder) / "alone", RangedSource(rows))
        alone(singles(keys))
        together = ranged_extractor(Path(folder) / "together", source, allowance=ONCE)
        results = together([tuple(keys)])
        expected = {} if breaks else sealed(alone, keys)
        assert sealed(together, keys) == expected
        assert len(RawStore.open(together.raw_url)._storage.names("demo")) == 2 * len(expected)
    assert set(endings(results)) == {Ending.FAILED if breaks else Ending.SEALED}
    assert {result.error_message for result in results} == ({str(error)} if breaks else {None})
    assert [result.requests for result in results] == [1] + [0] * (len(keys) - 1)
    assert {result.days for result in results} == {len(keys) if breaks else 1}
    assert source.asked == [tuple(keys)]


@given(st.lists(st.integers(-1, 5), max_size=8))
def test_a_stream_is_split_where_its_days_change_or_refused(numbers: list[int]) -> None:
    """Days that come out of order, twice or without having been asked for are no day's rows."""
    keys = days(5)
    stream = [(FIRST_DAY + timedelta(days=number), b"%d" % number) for number in numbers]

    def split() -> dict[PartitionKey, list[Row]]:
        return {key: list(own) for key, own in by_day(stream, keys)}

    if numbers == sorted(numbers) and all(number in range(5) for number in numbers):
        assert split() == {key: [row for day, row in stream if day == key.logical_date] for key in keys}
    else:
        with pytest.raises(Permanent, match="out of order or was not asked for"):
            split()


def test_a_stream_is_split_as_it_comes() -> None:
    """Nothing is collected: of a stream without an end the first rows can be had."""
    endless = ((FIRST_DAY, {"number": number}) for number in count())
    key, rows = next(by_day(endless, days(2)))
    assert key == days(1)[0]
    assert list(islice(rows, 2)) == [{"number": 0}, {"number": 1}]


def test_a_stream_that_is_not_in_order_seals_nothing(tmp_path: Path) -> None:
    keys = days(3)
    stream = [(keys[place].logical_date, {"place": place}) for place in (0, 2, 1)]
    extractor = ranged_extractor(tmp_path, RangedSource(stream=stream), allowance=ONCE)
    assert endings(extractor([tuple(keys)])) == [Ending.FAILED] * 3
    assert sealed(extractor, keys) == {}


def test_nothing_is_sealed_before_the_stream_has_ended(tmp_path: Path) -> None:
    keys = days(3)
    seen: list[object] = []

    def stream() -> Iterator[tuple[date, Row]]:
        for key in keys:
            yield key.logical_date, {"day": key.logical_date.isoformat()}
            seen.append(sealed(extractor, keys))

    extractor = ranged_extractor(tmp_path, RangedSource(stream=stream()))
    assert endings(extractor([tuple(keys)])) == [Ending.SEALED] * 3
    assert seen == [{}, {}, {}]


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("no credentials"),
        Forbidden("no access"),
        QuotaExceeded("used up"),
        Unwritable("full"),
        Transient("come back later", retry_after=3600.0),
    ],
)
def test_what_holds_for_every_day_is_not_asked_again_in_halves(tmp_path: Path, error: Exception) -> None:
    keys = days(4)
    source = RangedSource(breaks={keys[2].logical_date: Break(error)})
    extractor = ranged_extractor(tmp_path, source, retry=RetryPolicy(tries=1))
    results = extractor([tuple(keys)])
    assert endings(results) == [Ending.FAILED] * 4
    assert {result.error_message for result in results} == {str(error)}
    assert source.asked == [tuple(keys)]


def test_where_requests_are_reserved_only_what_may_be_one_day_s_failed_together(tmp_path: Path) -> None:
    """R-CTL-7: control takes apart what failed together; an account without access is parked as it is."""
    keys = tuple(days(4))
    for error, together in ((Forbidden("no access"), 1), (Permanent("bad"), 4)):
        source = RangedSource(breaks={keys[2].logical_date: Break(error)})
        results = ranged_extractor(tmp_path, source, allowance=ONCE)([keys])
        assert [result.days for result in results] == [together] * 4


class BoundedSource(RangedSource):
    """A source that gives no day before the third of the test's days."""

    def horizon(self, today: date) -> date:
        """Return its first day."""
        del today
        return FIRST_DAY + timedelta(days=2)


def test_days_past_the_horizon_fail_alone_and_are_not_asked_for(tmp_path: Path) -> None:
    keys = tuple(days(5))
    source = BoundedSource()
    results = ranged_extractor(tmp_path, source, allowance=ONCE)([keys])
    assert [result.error_class for result in results] == [ErrorClass.PAST_HORIZON] * 2 + [None] * 3
    assert source.asked == [keys[2:]]


def test_a_day_that_the_server_finds_past_the_horizon_gives_up_no_later_one(tmp_path: Path) -> None:
    keys = tuple(days(4))
    source = RangedSource(breaks={keys[0].logical_date: Break(PastHorizon("too old"))})
    results = ranged_extractor(tmp_path, source, allowance=ONCE)([keys])
    assert [result.error_class for result in results] == [
        ErrorClass.PAST_HORIZON,
        *[ErrorClass.TRANSIENT] * 3,
    ]


def test_a_bad_day_is_found_by_halves(tmp_path: Path) -> None:
    keys = tuple(days(8))
    source = RangedSource(breaks={keys[5].logical_date: Break(Permanent("bad"))})
    results = ranged_extractor(tmp_path, source)([keys])
    assert source.asked == [keys, keys[:4], keys[4:], keys[4:6], keys[4:5], keys[5:6], keys[6:]]
    assert [(each.key, each.days) for each in results if each.ending is Ending.FAILED] == [(keys[5], 1)]
    assert [result.requests for result in results] == [2, 0, 0, 0, 3, 1, 1, 0]


def test_what_the_run_sealed_before_is_not_fetched_again(tmp_path: Path) -> None:
    """Days in between are, as part of one request; they stay as they are."""
    keys = tuple(days(5))
    source = RangedSource({key.logical_date: [{"of": str(key)}] for key in keys})
    extractor = ranged_extractor(tmp_path, source)
    extractor(singles([keys[0], keys[2]]))
    before = sealed(extractor, list(keys))
    del source.asked[:]
    results = extractor([keys])
    sealed_before = [Ending.SKIPPED, Ending.SEALED, Ending.SKIPPED, Ending.SEALED, Ending.SEALED]
    assert endings(results) == sealed_before
    assert source.asked == [keys[1:]]
    assert before.items() <= sealed(extractor, list(keys)).items()


def test_a_seal_that_fails_leaves_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next try fetches what is left."""
    keys = tuple(days(4))
    source = RangedSource()
    extractor = ranged_extractor(tmp_path, source, resumes=False)
    seal, failures = RawStore.seal, [Transient("the storage is busy")]

    def failing(store: RawStore, key: PartitionKey, *args: Any, **kwargs: Any) -> RawMetadata:
        if key == keys[2] and failures:
            raise failures.pop()
        return seal(store, key, *args, **kwargs)

    monkeypatch.setattr(RawStore, "seal", failing)
    assert endings(extractor([keys])) == [Ending.SEALED] * 4
    assert source.asked == [keys, keys[2:]]


def test_a_range_is_one_request_to_every_limit(tmp_path: Path) -> None:
    asked: list[str] = []

    class Limiter:
        def acquire(self, customer_id: str) -> None:
            asked.append(customer_id)

    extractor = ranged_extractor(tmp_path, RangedSource())
    extractor.__dict__["_limiter"] = Limiter()
    extractor([tuple(days(7))])
    assert asked == ["c0"]


def test_nothing_of_a_range_is_asked_once_time_is_up(tmp_path: Path) -> None:
    source = RangedSource()
    results = ranged_extractor(tmp_path, source, allowance=Allowance(until=0.0))([tuple(days(3))])
    assert [(each.ending, each.requests) for each in results] == [(Ending.LEFT, 0)] * 3
    assert source.asked == []


def test_a_range_for_a_source_that_takes_none_fails(tmp_path: Path) -> None:
    results = ranged_extractor(tmp_path, DemoSource.from_options({}))([tuple(days(2))])
    assert {result.error_message for result in results} == {"source demo takes one day in a request, not 2"}


def test_a_range_is_fetched_by_the_version_of_its_days(tmp_path: Path) -> None:
    """R-VER-7."""
    keys = tuple(days(4))
    query = changed_on(keys[2].logical_date)
    extractor = ranged_extractor(tmp_path, RangedSource(), queries={query.name: query})
    seals = [result.seal for result in extractor([keys[:2], keys[2:]])]
    assert [seal.schema_version for seal in seals if seal is not None] == ["1", "1", "2", "2"]
