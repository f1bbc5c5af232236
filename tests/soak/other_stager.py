"""A stager in a process of its own, with the pyarrow of its own path: told by its stdin what to do next."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from sealbook.ledger import open_ledger
from tests.acceptance.test_stagers_race import publish, stage


def main(folder: Path, url: str) -> None:
    """Say which pyarrow this is; then, for each wave, plan when told to, and stage and swap when told to."""
    say(pa.__version__)
    with open_ledger(url) as ledger:
        while sys.stdin.readline():
            items = list(ledger.pointers.plan())
            say(len(items))
            sys.stdin.readline()
            say(publish(ledger, stage("first", folder, items)))


def say(answer: object) -> None:
    """Answer in a line of its own."""
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
