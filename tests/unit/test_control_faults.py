"""The control plane under faults: thousands of seeds hold every rule, and without any one guard some do not.

Workers crash, stall past their leases, lose heartbeats and are told that quotas are used up; clocks jump; an
operator pauses, gives up and requeues. R-CTL-4, R-CTL-5, R-CTL-7, R-CTL-9, R-CTL-10.
"""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.support.control_ledger import Broken, Guards
from tests.support.control_world import World

BATCHES, SEEDS = 10, 200
"""Each batch is a test of its own, so that several processes can share them."""
MOST_SEEDS = 600
"""How many seeds a broken guard may take to be found out."""

CAUGHT_AS = {
    "readiness": "before its time",
    "pauses": "while it is paused",
    "stops": "though it has stopped",
    "shares": "waits for others too long",
    "passes_over": "held up by work that is not",
    "lease_is_free": "twice at once",
    "lease_expires": "never ends|held up",
    "fence_rises": "old fence",
    "fence_at_heartbeat": "accounted for no more|twice at once|never ends",
    "fence_at_fact": "not the newest",
    "fence_at_finish": "twice at once",
    "clock_never_back": "old fence|twice at once|before its time|overspent|accounted",
    "budget_before": "overspent",
    "budget_until_settled": "overspent|accounted for no more",
    "crash_is_spent": "overspent",
    "settled_is_lost": "accounted for no more",
    "published_stays": "touched what is published",
    "quota_pauses": "while its quota is used up",
    "quota_is_no_attempt": "counts as an attempt",
    "deadline": "accounted for no more",
}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_rule_holds_whatever_goes_wrong(batch: int) -> None:
    for seed in range(batch * SEEDS, (batch + 1) * SEEDS):
        try:
            World(seed, Guards()).run()
        except Broken as broken:
            pytest.fail(f"seed {seed}: {broken}")


@pytest.mark.parametrize("guard", [each.name for each in fields(Guards)])
def test_a_guard_that_is_left_out_is_found_out(guard: str) -> None:
    guards = replace(Guards(), **{guard: False})
    with pytest.raises(Broken, match=CAUGHT_AS[guard]):
        _try_all(guards)


def _try_all(guards: Guards) -> None:
    for seed in range(MOST_SEEDS):
        World(seed, guards).run()
