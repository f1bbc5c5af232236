"""A book of revision 0010, made by the code of then, is carried over: it says the same, and works on.

`tests/data/book_0010/make.py` says what happened to its partitions: accepted, replaced, rejected, rolled
back, demoted, failed to be fetched, accepted and not loaded; there is a cut, and a run that was cancelled.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from sealbook.ledger.db import schema
from tests.support.cli import run
from tests.support.ledger import BACKENDS, PostgresqlServer

BOOK = Path(__file__).parents[1] / "data" / "book_0010"
ROLLED_BACK = "demo/1001/campaign_daily/2026-01-02"
DEMOTED = "demo/1001/campaign_daily/2026-01-03"


@pytest.fixture(params=BACKENDS)
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of the book, whose ledger is as it was then."""
    with tarfile.open(BOOK / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    file = tmp_path / "sealbook.yaml"
    settings = yaml.safe_load(file.read_text())
    # Coverage was of the days that the ledger knew; now it is of all days that are due.
    settings["sources"]["demo"] |= {"first_day": "2026-01-01", "last_day": "2026-01-03"}
    if request.param == "postgresql":
        server: PostgresqlServer = request.getfixturevalue("postgresql")
        settings["ledger"] = server.create_database()
        dumped = (tmp_path / "ledger.sql").read_text()
        server.run("psql", "--quiet", "--set", "ON_ERROR_STOP=1", settings["ledger"], given=dumped)
    file.write_text(yaml.safe_dump(settings))
    return tmp_path


def ask(book: Path, *question: str, code: int = 0) -> Any:
    ran = run(*question, "--format", "json", cwd=book)
    assert ran.code == code, (question, ran.said)
    return ran.json


def as_of_then(now: Any, then: Any) -> Any:
    """Return an answer without the fields that were added since."""
    if isinstance(then, dict) and isinstance(now, dict):
        return {name: as_of_then(value, then[name]) for name, value in now.items() if name in then}
    if isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        return [as_of_then(*each) for each in zip(now, then, strict=True)]
    return now


def migrate(book: Path) -> None:
    assert revision(book) == "0010"
    assert run("ledger", "migrate", cwd=book).code == 0
    assert revision(book) == schema.HEAD


def revision(book: Path) -> str | None:
    [version] = ask(book, "ledger", "version")
    found: str | None = version["revision"]
    return found


def test_it_gives_the_same_answers(book: Path) -> None:
    """Each question that was asked then is answered as it was, in every field that there was."""
    migrate(book)
    answers = json.loads((book / "answers.json").read_text())
    for then in answers:
        now = ask(book, *then["question"], code=then["code"])
        assert as_of_then(now, then["answer"]) == then["answer"], then["question"]


def test_what_came_since_works_on_it(book: Path) -> None:
    """Status and explanations are built from the log of then; a loop goes on with what was open."""
    migrate(book)
    status = ask(book, "status")
    assert status["total"]["due"] == 9
    assert status["availabilities"] == {"published": 3, "behind": 1, "hidden": 1, "none": 4}
    rolled_back, demoted = ask(book, "explain", ROLLED_BACK), ask(book, "explain", DEMOTED)
    assert (rolled_back["display"], rolled_back["reading"]) == ("Materialized", "readable")
    assert rolled_back["history"] | {"ways": []} == {
        "judgements": 2,
        "runs": 2,
        "publications": 3,
        "ways": [],
    }
    assert demoted["display"] == "Withdrawn"
    assert [problem["kind"] for problem in demoted["problems"]] == ["withdrawn"]
    ticked = ask(book, "control", "tick")
    assert ticked["results"] == {"sealed": 5, "accepted": 5, "published": 6}, "what was sealed is loaded"
    after = {key_of(each): each for each in ask(book, "coverage")}
    assert {each["kind"] for each in after.values()} == {"published"}
    assert after[ROLLED_BACK]["run_id"] == rolled_back["run_id"], "a rollback holds"
    assert ask(book, "ledger", "verify") == []
    assert ask(book, "warehouse", "verify") == []


def key_of(row: dict[str, Any]) -> str:
    return "/".join(row[name] for name in ("source", "customer_id", "query_name", "logical_date"))
