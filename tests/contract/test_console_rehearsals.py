"""Rehearsals in the console: what would be demoted, told by a child in the place of the command."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import sealbook
from sealbook.console.rehearsals import rehearsal_command
from sealbook.model.verdict import Check
from sealbook.validate.results import Judged, NotJudged, Result
from sealbook.views.encoding import encode
from sealbook.views.judgements import judgement_dict
from tests.support.cli import run
from tests.support.console import VIC, asking, console_of
from tests.support.console_books import BAD, FAILED, GOOD, MARKUP, OTHER
from tests.support.demo_books import write_demo_book
from tests.support.ledger import accept, reject, run_id

PAGE = "/contracts/rehearsal?query=campaign_daily"
BESIDE = "/contracts/rehearsal.json?query=campaign_daily"
ASKED = {"source": "demo", "query": "campaign_daily"}
JSON = {"Accept": "application/json"}
CHILD = """
import os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
with open(folder / "begun", "w") as begun:  # when somebody reads it
    print(os.getpid(), *sys.argv[2:], file=begun)
open(folder / "go_on").close()  # when somebody writes to it
sys.stderr.write((folder / "stderr").read_text())
sys.stdout.write((folder / "stdout").read_text())
"""


class Child:
    """A command that says that it has begun, waits to be let go, and prints what it was told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = [sys.executable, "-c", CHILD, str(folder)]
        for name in ("begun", "go_on"):
            os.mkfifo(folder / name)
        self.prints()

    def prints(self, stdout: str = "[]\n", stderr: str = "") -> None:
        (self.folder / "stdout").write_text(stdout)
        (self.folder / "stderr").write_text(stderr)

    def begun(self) -> tuple[int, list[str]]:
        """Wait until it has begun; return its process id, and the arguments that it was given."""
        number, *words = (self.folder / "begun").read_text().split()
        return int(number), words

    def go_on(self, client: TestClient) -> None:
        """Let it go, and wait until the console knows what came of it."""
        (self.folder / "go_on").write_text("")
        console_of(client).rehearsals.wait()


@pytest.fixture
def child(tmp_path: Path) -> Child:
    folder = tmp_path / "child"
    folder.mkdir()
    return Child(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_demo_book(tmp_path / "book")
    with sealbook.open(tmp_path / "book") as book:
        book.catch_up()
    return tmp_path / "book"


def contract_hash(folder: Path) -> str:
    with sealbook.open(folder, read_only=True) as book:
        [query] = book.queries
        return query.contracts[query.schema_version].hash


def printed(contract: str) -> str:
    """Return what the command prints of two accepted runs, one to be demoted, one that cannot be judged."""
    check = Check("rule:clicks", False, 1_234, (1,), f"clicks are too many: {MARKUP}")
    verdicts = [
        accept(GOOD),
        accept(OTHER),
        reject(BAD, checks=(check, Check("pk", True)), error=MARKUP),
    ]
    judged = [Judged(replace(each, contract_hash=contract), None, 1, 1) for each in verdicts]
    results: list[Result] = [*judged, NotJudged(FAILED, run_id(1), MARKUP)]
    lines = [encode(judgement_dict(each)).decode() for each in results]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def rehearsed(client: TestClient, child: Child) -> Any:
    """Have it rehearsed, and return what the console tells of it."""
    assert client.post("/contracts/rehearsal", data=ASKED).status_code == 303
    child.begun()
    child.go_on(client)
    return client.get(BESIDE).json()


def test_a_rehearsal_is_begun_runs_and_says_what_would_be_demoted(folder: Path, child: Child) -> None:
    contract = contract_hash(folder)
    child.prints(printed(contract))
    with asking(folder, rehearses=child.command) as client:
        assert client.get(BESIDE).json()["state"] == "never"
        assert "has not been rehearsed" in client.get("/contracts").text
        begun = client.post("/contracts/rehearsal", data=ASKED)
        assert (begun.status_code, begun.headers["location"]) == (
            303,
            "/contracts/rehearsal?source=demo&query=campaign_daily",
        )
        _, words = child.begun()
        assert words == ["--source", "demo", "--query", "campaign_daily"]
        page = client.get(begun.headers["location"]).text
        running = client.get(BESIDE).json()
        assert (running["state"], running["actor"]) == ("running", "ann")
        assert f'since <time datetime="{running["started_at"].removesuffix("Z")}' in page
        assert 'data-lasts="3"' in page  # it asks again by itself
        assert "Rehearse</button>" not in page
        assert "is being judged again" in client.get("/contracts").text
        child.go_on(client)
        done = client.get(BESIDE).json()
        counts = ("state", "accepted", "demoted", "not_judged", "contract_hashes", "is_of_another_contract")
        assert [done[name] for name in counts] == ["done", 2, 1, 1, [contract], False]
        demoted, unjudged = done["findings"]
        [check] = demoted["checks"]
        assert (check["name"], check["violations"]) == ("rule:clicks", 1234)
        assert check["error"] == f"clicks are too many: {MARKUP}"
        assert (unjudged["outcome"], unjudged["error"]) == ("not_judged", MARKUP)
        page = client.get(PAGE).text
        assert f'<a href="/partitions/{BAD}">{BAD}</a>' in page
        assert f'<a href="/partitions/{GOOD}">' not in page
        line = client.get("/contracts").text
        assert re.search(r"would demote <span[^>]*>1 of 4</span>", line)
        assert f"{contract[:8]}…</code>." in line
        assert 'href="/contracts/rehearsal?source=demo&amp;query=campaign_daily"' in line
        assert "started under another contract" not in line


def test_texts_that_a_rehearsal_quotes_stay_texts(folder: Path, child: Child) -> None:
    child.prints(printed("f" * 64))
    with asking(folder, rehearses=child.command) as client:
        rehearsed(client, child)
        text = client.get(PAGE).text
        assert unescape(text).count(MARKUP) == 2
        assert "<script>alert" not in text
        assert "<img" not in text
        child.prints("", json.dumps({"event": "error", "message": MARKUP, "remedy": MARKUP}))
        rehearsed(client, child)
        text = client.get(PAGE).text
        assert unescape(text).count(MARKUP) == 2
        assert "<script>alert" not in text


def test_a_contract_that_the_console_does_not_know_is_noted(folder: Path, child: Child) -> None:
    child.prints(printed("f" * 64))
    with asking(folder, rehearses=child.command) as client:
        assert rehearsed(client, child)["is_of_another_contract"] is True
        for page in (PAGE, "/contracts"):
            assert "started under another contract" in client.get(page).text


@pytest.mark.parametrize("hidden", [{"show_rows": False}, {"masked_columns": frozenset({"clicks"})}])
def test_values_that_are_hidden_are_not_quoted(folder: Path, child: Child, hidden: dict[str, Any]) -> None:
    child.prints(printed("f" * 64))
    with asking(folder, rehearses=child.command, **hidden) as client:
        [check] = rehearsed(client, child)["findings"][0]["checks"]
        assert check["error"] == "clicks are too many"
        assert MARKUP not in unescape(client.get(PAGE).text).partition("not judged")[0]


@pytest.mark.parametrize(
    ("stdout", "stderr", "error", "remedy"),
    [
        (
            "",
            'Picked up x\n{"event": "error", "message": "no Java", "remedy": "Install it."}\n[1]\n',
            "no Java",
            "Install it.",
        ),
        ("[\n", "", "the command ended before it was done (exit code 0)", "The console's log says more."),
        ("{}\n", "", "the command printed what is no judgement", "The console's log says more."),
    ],
)
def test_a_rehearsal_that_fails_says_why_and_can_be_begun_again(
    folder: Path, child: Child, stdout: str, stderr: str, error: str, remedy: str
) -> None:
    child.prints(stdout, stderr)
    with asking(folder, rehearses=child.command) as client:
        failed = rehearsed(client, child)
        assert (failed["state"], failed["remedy"]) == ("failed", remedy)
        assert failed["error"].startswith(error)
        page = unescape(client.get(PAGE).text)
        assert error in page
        assert remedy in page
        assert "failed" in client.get("/contracts").text
        child.prints()
        again = rehearsed(client, child)
        assert [again[name] for name in ("state", "error", "accepted", "demoted")] == ["done", None, 0, 0]


def test_a_second_one_is_refused_while_one_is_under_way(folder: Path, child: Child) -> None:
    with asking(folder, rehearses=child.command) as client:
        client.post("/contracts/rehearsal", data=ASKED)
        child.begun()
        refused = client.post("/contracts/rehearsal", data=ASKED, headers=JSON)
        assert refused.status_code == 409
        assert refused.json()["error"] == "demo/campaign_daily is being rehearsed, and one at a time is"
        assert client.get(BESIDE).json()["state"] == "running"
        child.go_on(client)
        assert client.get(BESIDE).json()["state"] == "done"


def test_who_may_not_act_rehearses_nothing_and_has_no_button(folder: Path) -> None:
    never = [sys.executable, "-c", "raise SystemExit('it was begun')"]
    for asked in (
        asking(folder, VIC, rehearses=never),
        asking(folder, read_only=True, rehearses=never),
    ):
        with asked as client:
            assert client.post("/contracts/rehearsal", data=ASKED).status_code == 403
            assert client.get(BESIDE).json()["state"] == "never"
            for page in (PAGE, "/contracts"):
                assert "Rehearse</button>" not in client.get(page).text
    with asking(folder, rehearses=never) as client:
        elsewhere = {"Sec-Fetch-Site": "cross-site"}
        assert client.post("/contracts/rehearsal", data=ASKED, headers=elsewhere).status_code == 403
        assert client.get(BESIDE).json()["state"] == "never"
        for page in (PAGE, "/contracts"):
            assert "Rehearse</button>" in client.get(page).text


@pytest.mark.parametrize(
    "asked",
    [{}, {"query": "nope"}, {"query": MARKUP}, {**ASKED, "source": "nope"}, {**ASKED, "key": str(GOOD)}],
)
def test_what_is_no_query_is_refused(folder: Path, asked: dict[str, str]) -> None:
    with asking(folder, rehearses=["false"]) as client:
        for answer in (
            client.post("/contracts/rehearsal", data=asked),
            client.get("/contracts/rehearsal", params=asked),
        ):
            assert answer.status_code == 400
            assert "<script>alert" not in answer.text


def test_the_child_ends_with_the_console(folder: Path, child: Child) -> None:
    with asking(folder, rehearses=child.command) as client:
        client.post("/contracts/rehearsal", data=ASKED)
        number, _ = child.begun()
        os.kill(number, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert console_of(client).rehearsals.of("demo", "campaign_daily").state == "failed"


def test_the_real_command_is_that_of_the_book(folder: Path, tmp_path: Path) -> None:
    """Of a book in which nothing is accepted it needs no Spark."""
    with sealbook.open(folder, read_only=True) as book:
        _, _, _, *words = rehearsal_command(book.settings)
    said = run(*words, "--source", "demo", "--query", "campaign_daily", cwd=tmp_path)
    assert (said.code, said.json) == (0, [])
