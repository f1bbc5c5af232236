"""How runs are divided among tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sealbook.rows.units import Digest, Slice
from sealbook.validate.bins import Binning
from sealbook.validate.plan import Candidate
from tests.support.validation import RUN, key

SIZES = st.lists(st.integers(0, 64 * 1024 * 1024), max_size=50)


def candidates(sizes: list[int]) -> list[tuple[int, Candidate]]:
    return [(ordinal, Candidate(key(ordinal), RUN, size)) for ordinal, size in enumerate(sizes)]


@given(SIZES, st.integers(1, 8))
def test_each_run_is_in_one_bin_and_no_bin_is_empty(sizes: list[int], cores: int) -> None:
    bins = Binning(cores).bins(candidates(sizes))

    assert [unit.ordinal for units in bins for unit in units] == list(range(len(sizes)))
    assert all(bins)


def test_each_bin_has_an_equal_share_of_what_is_left() -> None:
    """So the last are small, and cores that take one after the other end together."""
    sizes = [number % 7 * 10_000 for number in range(2_000)]
    bins = Binning(cores=4).bins(candidates(sizes))

    weights = [sum(sizes[unit.ordinal] + 32 * 1024 for unit in units) for units in bins]
    left = [sum(weights[number:]) for number in range(len(weights))]
    least = left[0] // 32
    for weight, rest in zip(weights[:-1], left[:-1], strict=True):
        most = max(rest // 4, least)
        assert most - 100_000 < weight <= most
    assert weights[-1] <= least < weights[0]


@given(SIZES, st.integers(2, 8))
def test_cores_that_take_bin_after_bin_end_within_one_small_bin(sizes: list[int], cores: int) -> None:
    bins = Binning(cores).bins(candidates(sizes))

    busy_until = [0] * cores
    for units in bins:
        busy_until[busy_until.index(min(busy_until))] += sum(sizes[unit.ordinal] for unit in units)
    least = max(sum(size + 32 * 1024 for size in sizes) // (cores * 8), 2 * 1024 * 1024)
    assert max(busy_until) - min(busy_until) <= max([least, *sizes]) * 2


def test_many_small_runs_are_few_tasks_and_large_ones_do_not_share() -> None:
    small = Binning(cores=2).bins(candidates([1_000] * 300))
    large = Binning(cores=2).bins(candidates([60 * 1024 * 1024] * 3))

    assert 2 <= len(small) <= 10
    assert [len(units) for units in large] == [1, 1, 1]


def test_a_large_payload_is_cut_into_slices_and_its_digest() -> None:
    binning = Binning(cores=2, sliced_above=100, slice_bytes=40)
    [(ordinal, candidate)] = candidates([101])
    assert binning.is_sliced(candidate)
    assert not binning.is_sliced(Candidate(key(), RUN, 100))

    units = [unit for [unit] in binning.slices([(ordinal, candidate)])]

    assert units == [
        Slice(0, key(0), RUN, 0, 0, 40),
        Slice(0, key(0), RUN, 1, 40, 80),
        Slice(0, key(0), RUN, 2, 80, 101),
        Digest(0, key(0), RUN, 3),
    ]
