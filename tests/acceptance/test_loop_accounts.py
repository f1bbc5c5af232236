"""A loop asks for accounts by itself, and works on those that are new in the same round."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from tests.support.loops import light_loop, open_light, write_loop_book
from tests.support.schedule import work_in

LEASE = timedelta(seconds=60)


def test_new_accounts_are_taken_up_by_loops_that_are_running(ledger_url: str, tmp_path: Path) -> None:
    file = write_loop_book(tmp_path, ledger_url, customers=1, days=1)
    document = yaml.safe_load(file.read_text())
    source = document["sources"]["demo"]
    source["customers"] = {"discover": "agency", "backfill": "2d"}
    source["options"] = {"rows": 2, "accounts": [{"id": "one"}]}
    file.write_text(yaml.safe_dump(document))
    heard: list[tuple[str, Any]] = []

    def tell(event: str, **fields: Any) -> None:
        heard.append((event, fields.get("found")))

    with open_light(file, LEASE) as book:
        ticked = light_loop(book, tell=tell).tick()
        assert ("accounts", 2) in heard, "the manager and the account"
        assert ticked.tally.count("published") == 2, "the days before the one on which it was found"
        running = light_loop(book)
        source["options"]["accounts"].append({"id": "two"})
        file.write_text(yaml.safe_dump(document))
        with open_light(file, LEASE) as other:
            other.accounts.refresh("demo")
        book.accounts.take_up()
        running.open_round()
        assert {key.customer_id for key in work_in(book.ledger)} == {"two"}
        assert running.tick().tally.count("published") == 2
