"""A Delta table whose log is not as the mirror left it: told, or made anew; nothing is guessed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.mirrors import MIRROR, Lake
from tests.support.published import QUERY, SOURCE, key, publish


@pytest.fixture
def lake(ledger_url: str, tmp_path: Path) -> Iterator[Lake]:
    """A mirror of two commits."""
    with closing(Lake.open("delta inside", ledger_url, tmp_path)) as lake:
        for run in (1, 2):
            publish(lake.book.ledger, lake.warehouse, [key()], run, version="2")
            lake.run()
        yield lake


def log_of(lake: Lake) -> Path:
    return Path(lake.location) / SOURCE / QUERY / "_delta_log"


@pytest.mark.parametrize(("version", "content"), [(0, "no json"), (1, "no json"), (0, None)])
def test_a_log_that_cannot_be_read_is_told_with_the_way_out(
    lake: Lake, version: int, content: str | None
) -> None:
    file = log_of(lake) / f"{version:020d}.json"
    file.unlink() if content is None else file.write_text(content)
    [done] = lake.book.mirror(MIRROR).run()
    assert done.failed is not None
    assert "cannot be used" in done.failed
    assert f"remove {log_of(lake)}" in done.failed
    for each in log_of(lake).iterdir():
        each.unlink()
    assert lake.run().rebuilt == "it is new"
    assert lake.is_equal()


def test_a_commit_that_says_nothing_of_itself_is_not_of_the_mirror(lake: Lake) -> None:
    (log_of(lake) / f"{2:020d}.json").write_text("")
    [standing] = lake.book.mirror(MIRROR).standings()
    assert (standing.commit, standing.committed_at, standing.token) == ("2", None, None)
    assert lake.run().rebuilt == "its latest commit is not of the mirror"
    assert lake.is_equal()
