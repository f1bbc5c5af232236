"""A program of Airflow's environment: writes two events of a trigger; between them a day is run again."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseEventTrigger

import sealbook
from sealbook.airflow import ChangesTrigger


def run(book: str) -> None:
    """Fetch a day, and publish it."""
    with sealbook.open(book) as opened:
        opened.run(sealbook.Selection(customers="1001", since="2026-01-01", until="2026-01-01"))


async def events(trigger: ChangesTrigger, book: str) -> list[Any]:
    """Take two events of a trigger, and leave it."""
    taken: list[Any] = []
    run(book)
    async for event in trigger.run():
        taken.append(event.payload)
        if len(taken) == 2:
            break
        run(book)
    return taken


if __name__ == "__main__":
    trigger = ChangesTrigger(sys.argv[1], "campaign_daily", consumer="airflow", poll_seconds=0.1)
    path, arguments = trigger.serialize()
    again = ChangesTrigger(**arguments)
    assert BaseEventTrigger.hash(path, arguments) == BaseEventTrigger.hash(*again.serialize())
    Path(sys.argv[2]).write_text(json.dumps(asyncio.run(events(again, sys.argv[1]))))
