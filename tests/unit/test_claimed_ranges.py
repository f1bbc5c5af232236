"""R-CTL-10: what was claimed together is fetched together, and nothing else is."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sealbook.config import SourceSettings
from sealbook.extract.plan import ExtractPlan
from sealbook.extract.ranges import Ranges
from sealbook.model import PartitionKey
from sealbook.model.claims import Claim, ranges_of
from sealbook.model.work import Lane, WorkKind
from tests.support.ranged import QUERY, RangedSource, days

SIZES = st.lists(st.tuples(st.integers(1, 7), st.integers(0, 2), st.sampled_from("ab")), max_size=12)
"""Of ranges, and the gaps before them; a range may follow another one without any."""


def claims_of(sizes: list[tuple[int, int, str]]) -> list[Claim]:
    found, first = [], dict.fromkeys("ab", 0)
    for size, gap, customer in sizes:
        start = first[customer] + gap
        first[customer] = start + size
        begins = days(1)[0].logical_date + timedelta(days=start)
        for number, key in enumerate(days(size, customer, begins)):
            requests = 0 if number else 1
            found.append(Claim(key, Lane.FRESH, WorkKind.FETCH, 1, None, requests, 0, None))
    return found


@given(sizes=SIZES, order=st.randoms(use_true_random=False))
def test_each_range_is_one_request_whatever_comes_after_it(
    sizes: list[tuple[int, int, str]], order: Random
) -> None:
    claims = claims_of(sizes)
    order.shuffle(claims)
    ranges = [tuple(claim.key for claim in own) for own in ranges_of(claims)]
    assert sorted(map(len, ranges)) == sorted(size for size, _, _ in sizes)

    plan = ExtractPlan.of_ranges(ranges)
    source = SourceSettings("demo", ("a", "b"), {QUERY.name: QUERY}, {})
    gather = Ranges(source, RangedSource()).gather
    fetched: list[tuple[PartitionKey, ...]] = [own for part in plan.parts for own in gather(part.expand())]
    assert sorted(fetched) == ranges
    assert len(plan.parts) <= 2
