"""Mirrors of runs that share the files of another: no commit removes a path and adds it."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.ledger import run_id
from tests.support.mirrors import KINDS, Lake
from tests.support.published import CONTRACTS
from tests.support.sharing import KEY, clean_up, put, seal, share


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_shares_files_has_copies_in_a_mirror(ledger_url: str, tmp_path: Path, kind: str) -> None:
    (tmp_path / "raw").mkdir()
    with closing(Lake.open(kind, ledger_url, tmp_path, {"1": CONTRACTS["1"]}, "1")) as lake:
        seal(lake.book, 1)
        put(lake.book, 1)
        lake.run()
        for run in (2, 3):
            share(lake.book, run)
            done = lake.run()
            assert (done.added, done.removed, done.copied, done.rebuilt) == (1, 1, 1, None)
            assert lake.is_equal()
        # Back to each, from each: to files that were referred to, and to copies that are there.
        back = [1, 3, 2, 1, 2, 3]
        for run in back:
            lake.book.ledger.rollback(KEY, run_id(run), actor="ann", reason="to try it")
            lake.run()
            assert lake.is_equal()
        seal(lake.book, 4, "b")
        put(lake.book, 4)
        lake.run()
        commits = [commit for commit, _ in lake.commits()]
        for commit, run in zip(commits, [1, 2, 3, *back, 4], strict=True):
            assert set(lake.rows(commit)["run_id"].to_pylist()) == {run_id(run)}
        for before, after in pairwise(map(lake.paths, commits)):
            assert before.isdisjoint(after)


@pytest.mark.parametrize("kind", KINDS)
def test_clean_up_leaves_copies_of_what_is_published(ledger_url: str, tmp_path: Path, kind: str) -> None:
    """Also those within the warehouse."""
    (tmp_path / "raw").mkdir()
    with closing(Lake.open(kind, ledger_url, tmp_path, {"1": CONTRACTS["1"]}, "1")) as lake:
        seal(lake.book, 1)
        put(lake.book, 1)
        share(lake.book, 2)
        assert lake.run().copied == 1
        assert clean_up(lake.book) == 0
        assert lake.is_equal()
        assert lake.run(check=True).commit is None
        assert lake.run(rebuild=True).removed == 0
        assert lake.is_equal()
