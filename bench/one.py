"""`python -m bench.one NAME FILE`: make one comparison, and write its results to a file as JSON."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import msgspec


def main(name: str, file: Path) -> None:
    """Make the comparison; what goes wrong ends this process, and no other comparison."""
    file.write_bytes(msgspec.json.encode(list(importlib.import_module(f"bench.compare_{name}").run())))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
