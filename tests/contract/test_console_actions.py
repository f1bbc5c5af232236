"""Acting in the console: the same plans and rails as on the command line, in the name of the person."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sealbook
from sealbook.book import Book
from sealbook.console.deeds import ACTIONS
from sealbook.model import Status
from sealbook.model.plans import PlanKind, PlanState
from tests.support.cli import run_process
from tests.support.console import VIC, asking
from tests.support.ledger import accept, reject, run_id
from tests.support.partitions import seal
from tests.support.pointers import load
from tests.support.statuses import days, key, write_status_book

DAYS = days(30)
KEY, OTHER = key("a", DAYS[-1]), key("b", DAYS[-1])
MARKUP = "<script>alert(1)</script>"
WHY = {"reason": "the account is back"}
JSON = {"Accept": "application/json"}


@pytest.fixture
def folder(tmp_path: Path, ledger_url: str) -> Path:
    return write_status_book(tmp_path, ledger_url, first_day=DAYS[0])


@pytest.fixture
def book(folder: Path) -> Iterator[Book]:
    with sealbook.open(folder) as opened:
        yield opened


@pytest.fixture
def client(folder: Path, book: Book) -> Iterator[TestClient]:
    book.catch_up()
    with asking(folder) as asked:
        yield asked


def fail(book: Book, *keys: sealbook.model.PartitionKey) -> None:
    for each in keys:
        seal(book, each, 1, [b"{}"])
    book.ledger.judge([reject(each) for each in keys])
    book.catch_up()


def plan_of(answer: str) -> int:
    found = re.search(r'action="/plans/(\d+)"', answer)
    assert found is not None, answer
    return int(found[1])


def test_a_plan_is_what_the_command_shows_and_is_carried_out_by_its_id(
    folder: Path, book: Book, client: TestClient
) -> None:
    """R-CTL-11."""
    fail(book, KEY)
    shown = client.post("/actions/retry", data={"key": str(KEY), **WHY}, headers=JSON).json()
    told = run_process(
        "state", "retry", str(KEY), "--reason", "x", "--dry-run", "--format", "json", cwd=folder
    ).json
    assert {**shown, "plan_id": told["plan_id"]} == told
    answer = client.post("/actions/retry", data={"key": str(KEY), **WHY})
    number = plan_of(answer.text)
    assert f"sealbook state retry --plan {number}" in answer.text
    assert client.get(f"/plans/{number}.json").json()["carried_out"] is False
    assert book.ledger.state(KEY).status is Status.FAILED
    done = client.post(f"/plans/{number}")
    assert (done.status_code, done.headers["location"]) == (303, f"/plans/{number}")
    assert book.ledger.state(KEY).status is Status.PENDING
    page = client.get(f"/plans/{number}")
    assert "1 partition is pending again" in page.text
    kept = run_process(
        "state", "retry", "--plan", str(number), "--dry-run", "--format", "json", cwd=folder
    ).json
    assert client.get(f"/plans/{number}.json").json() == kept
    [entry] = [each for each in book.ledger.reader.override_log.entries() if each.actor == "ann"]
    assert (entry.reason, entry.keys) == (WHY["reason"], (KEY,))
    assert client.post(f"/plans/{number}").status_code == 409  # once


def test_what_has_drifted_is_refused_with_the_difference(book: Book, client: TestClient) -> None:
    """R-CTL-11."""
    fail(book, KEY, OTHER)
    number = plan_of(client.post("/actions/retry", data={"query": "campaign_daily", **WHY}).text)
    book.ledger.judge([accept(OTHER, again="x")])
    refused = client.post(f"/plans/{number}")
    assert refused.status_code == 409
    assert str(OTHER) in refused.text
    assert 'href="/actions/retry?query=campaign_daily"' in refused.text
    assert book.ledger.state(KEY).status is Status.FAILED
    answer = client.post(f"/plans/{number}", headers=JSON).json()
    assert any(str(OTHER) in each for each in answer["differences"])


def test_the_count_is_typed_out_above_twenty(book: Book, client: TestClient) -> None:
    """R-CTL-8."""
    asked = {"query": "campaign_daily", "since": str(DAYS[0]), "until": str(DAYS[-1]), "name": "all", **WHY}
    answer = client.post("/actions/backfill", data=asked)
    number = plan_of(answer.text)
    assert "Type 90 to go on" in answer.text
    for typed in ({}, {"count": "9"}, {"count": "ninety"}):
        refused = client.post(f"/plans/{number}", data=typed)
        assert refused.status_code == 400
        assert "type 90 to go on" in refused.text
    assert book.operator.previewed(number).plan.state is PlanState.PREVIEWED
    assert client.post(f"/plans/{number}", data={"count": "90"}).status_code == 303
    assert book.operator.previewed(number).plan.state is PlanState.OPEN
    assert ">90<" in client.get(f"/plans/{number}").text


def test_what_cannot_be_done_is_refused_by_name(book: Book, client: TestClient) -> None:
    """R-CTL-8."""
    book.ledger.judge([accept(KEY)])
    answer = client.post("/actions/retry", data={"key": str(KEY), **WHY})
    assert "it is good, and has not failed" in answer.text
    assert "There is nothing to do" in answer.text
    assert client.post("/actions/retry", data=WHY).status_code == 400  # nothing is chosen
    assert client.post("/actions/retry", data={"key": str(KEY)}).status_code == 400  # nobody says why
    assert client.post("/actions/retry", data={"source": "nope", **WHY}).status_code == 400
    assert client.get("/plans/77").status_code == 404
    assert client.post("/plans/77").status_code == 404


def test_filters_that_would_be_passed_over_are_refused(client: TestClient) -> None:
    """Who filtered a page by them would act on more than was shown."""
    for path in ("/actions", "/actions/retry", "/actions/rollback"):
        refused = client.get(f"{path}?match=a")
        assert refused.status_code == 400
        assert "match" in refused.text
    assert client.post("/actions/retry", data={"cell": "failed", **WHY}).status_code == 400


@pytest.mark.parametrize("name", [*PlanKind, *ACTIONS])
def test_every_action_has_a_form_that_shows_its_command(client: TestClient, name: str) -> None:
    answer = client.get(f"/actions/{name}")
    assert answer.status_code == 200
    assert "<code>sealbook " in answer.text
    assert f"/actions/{name}" in client.get("/actions").text


def act(client: TestClient, action: str, /, **values: str) -> tuple[str, str]:
    """Look at what an action would do; return what is said, and what the form would send as seen."""
    answer = client.post(f"/actions/{action}", data={**values, **WHY})
    assert answer.status_code == 200, answer.text
    seen = re.search(r'name="seen" value="([^"]*)"', answer.text)
    assert seen is not None, answer.text
    return answer.text, html.unescape(seen[1])


def test_a_rollback_is_shown_and_done(book: Book, client: TestClient) -> None:
    """R-STATE-9."""
    for run in (1, 2):
        seal(book, KEY, run, [b"{}"])
        book.ledger.judge([accept(KEY, run, records=1)])
        load(book.ledger)
    book.catch_up()
    values = {"key": str(KEY), "run": str(run_id(1))}
    text, seen = act(client, "rollback", **values)
    assert f"would go from run {run_id(2)} to run {run_id(1)}; readers get it at once" in text
    assert book.ledger.state(KEY).current_run_id == run_id(2)
    done = client.post("/actions/rollback", data={**values, **WHY, "seen": seen})
    assert f"{KEY} went from run {run_id(2)}" in done.text
    assert f'href="/partitions/{KEY}"' in done.text
    assert book.ledger.state(KEY).current_run_id == run_id(1)
    again = client.post("/actions/rollback", data={**values, **WHY, "seen": seen})
    assert again.status_code == 409


def test_a_rollback_that_drifted_is_refused(book: Book, client: TestClient) -> None:
    for run in (1, 2, 3):
        seal(book, KEY, run, [b"{}"])
    book.ledger.judge([accept(KEY, run, records=1) for run in (1, 2)])
    values = {"key": str(KEY), "run": str(run_id(1))}
    _, seen = act(client, "rollback", **values)
    book.ledger.judge([accept(KEY, 3, records=1)])
    refused = client.post("/actions/rollback", data={**values, **WHY, "seen": seen})
    assert refused.status_code == 409
    assert f"from_run_id: was {run_id(2)}, is {run_id(3)}" in refused.text
    assert book.ledger.state(KEY).current_run_id == run_id(3)


def test_pauses_begin_and_end(book: Book, client: TestClient) -> None:
    _, seen = act(client, "pause", source="demo", customer="a", until="2h")
    assert book.ledger.reader.schedule.pauses() == []
    values = {"source": "demo", "customer": "a"}
    done = client.post("/actions/pause", data={**values, "until": "2h", **WHY, "seen": seen})
    assert "demo/a/* is paused until" in done.text
    [pause] = book.ledger.reader.schedule.pauses()
    assert (pause.actor, pause.reason) == ("ann", WHY["reason"])
    _, seen = act(client, "resume", **values)
    assert "demo/a/* goes on" in client.post("/actions/resume", data={**values, **WHY, "seen": seen}).text
    assert book.ledger.reader.schedule.pauses() == []


def test_a_backfill_is_paused_and_cancelled(book: Book, client: TestClient) -> None:
    asked = {"key": str(KEY), "name": "week", **WHY}
    client.post(f"/plans/{plan_of(client.post('/actions/backfill', data=asked).text)}")
    for name, state in (("pause", "paused"), ("resume", "open"), ("cancel", "cancelled")):
        _, seen = act(client, f"{name}-backfill", name="week")
        done = client.post(f"/actions/{name}-backfill", data={"name": "week", **WHY, "seen": seen})
        assert f"(week) is {state}" in done.text
    actors = {each.actor for each in book.ledger.reader.override_log.entries()}
    assert actors == {"ann"}


def test_a_run_is_cancelled(book: Book, client: TestClient) -> None:
    run = str(book.ledger.open_run())
    _, seen = act(client, "cancel", run=run)
    assert (
        f"Run {run} is cancelled"
        in client.post("/actions/cancel", data={"run": run, **WHY, "seen": seen}).text
    )


def test_a_cut_names_who_made_it(book: Book, client: TestClient) -> None:
    text, seen = act(client, "cut", name="month_end")
    assert "would pin 0 partitions" in text
    assert book.ledger.pointers.cuts() == []
    assert (
        "Cut month_end pins"
        in client.post("/actions/cut", data={"name": "month_end", **WHY, "seen": seen}).text
    )
    [cut] = book.ledger.pointers.cuts()
    assert cut.note == WHY["reason"]
    [entry] = book.ledger.reader.override_log.entries()
    assert (entry.action, entry.actor, entry.reason) == ("cut", "ann", WHY["reason"])
    assert entry.filter == {"cut": "month_end"}


def test_who_may_only_look_changes_nothing(folder: Path, book: Book) -> None:
    fail(book, KEY)
    number = book.operator.retry(sealbook.Selection(keys=[KEY]), actor="ann", reason="x").plan.id
    before = list(book.ledger.reader.override_log.entries())
    for further in ({"person": VIC}, {"read_only": True}):
        with asking(folder, **further) as client:
            for path in (f"/plans/{number}", "/actions/retry", "/actions/rollback", "/actions/cut"):
                refused = client.post(
                    path, data={"key": str(KEY), "run": str(run_id(1)), "seen": "{}", **WHY}
                )
                assert refused.status_code == 403, path
            assert client.get("/actions").status_code == 403
            assert "Carry out" not in client.get(f"/plans/{number}").text
    assert list(book.ledger.reader.override_log.entries()) == before
    assert [plan.state for plan in book.ledger.reader.schedule.plans()] == [PlanState.PREVIEWED]


def test_what_people_write_is_text(book: Book, client: TestClient) -> None:
    fail(book, KEY)
    why = {"reason": f"why {MARKUP}"}
    answers = [
        client.post("/actions/retry", data={"key": str(KEY), **why}),
        client.post("/actions/retry", data={"key": MARKUP, **why}),
        client.post("/actions/pause", data={"source": "demo", "customer": MARKUP, **why}),
        client.post("/actions/rollback", data={"key": str(KEY), "run": MARKUP, **why}),
        client.get("/actions/rollback", params={"key": f"'; {MARKUP}"}),
        client.get("/actions", params={"customer": MARKUP}),
    ]
    for answer in answers:
        assert answer.status_code in (200, 400), answer.text
        assert "<script>alert" not in answer.text
    number = plan_of(answers[0].text)
    assert f"why {html.escape(MARKUP)}" in client.get(f"/plans/{number}").text
    assert "<script>alert" not in client.get(f"/plans/{number}").text


def test_a_command_to_copy_cannot_smuggle_another(client: TestClient) -> None:
    answer = html.unescape(client.get("/actions/cancel", params={"run": "x; rm -rf ~"}).text)
    assert "sealbook state cancel 'x; rm -rf ~'" in answer


def test_a_long_form_is_refused(client: TestClient) -> None:
    assert client.post("/actions/retry", data={"key": "x" * 300_000, **WHY}).status_code == 400


def test_requests_cost_what_the_plan_says(book: Book, client: TestClient) -> None:
    book.ledger.judge([accept(KEY), accept(OTHER)])
    asked = {"query": "campaign_daily", "since": str(DAYS[-1] - timedelta(days=1)), **WHY}
    shown = client.post("/actions/reprocess", data=asked, headers=JSON).json()
    assert (shown["partitions"], shown["requests"]) == (2, 2)
