"""Every page: its JSON is what its command prints, it is paged and filtered, and texts stay texts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

import sealbook
from tests.support.cli import run
from tests.support.console import VIC, asking, console_of
from tests.support.console_books import BAD, GOOD, MARKUP, write_lively_book
from tests.support.ledger import run_id

RUN = run_id(1)
PAGES = {
    "/": "/?query=campaign_daily&since=2026-01-01&step=week&rows=10&cell=missing",
    "/runs": "/runs?status=FAILED",
    "/runs/{run_id:path}": f"/runs/{RUN}?type=PartitionJudged&limit=1",
    "/backfills": "/backfills",
    "/backfills/{name}": "/backfills/old",
    "/lanes": "/lanes?source=demo&customer=1001",
    "/leases": "/leases?lane=fresh&expired=yes",
    "/pauses": "/pauses",
    "/budget": "/budget",
    "/cuts": "/cuts",
    "/contracts": "/contracts?query=campaign_daily",
    "/contracts/rehearsal": "/contracts/rehearsal?query=campaign_daily",
    "/audit": "/audit?action=mark&from=2026-01-01&customer=1001",
    "/alerts": "/alerts?since=2026-01-01",
    "/sql": "/sql?sql=select count(*) as n from campaign_daily",
    "/partitions/{source}/{customer_id}/{query_name}/{day}": f"/partitions/{BAD}?attempt=1",
    "/partitions/{source}/{customer_id}/{query_name}/{day}/compare": f"/partitions/{GOOD}/compare?limit=5",
    "/plans/{plan_id}": "/plans/2",
}
"""The path of every page, and an address of it with filters."""
REHEARSAL = "/contracts/rehearsal"
"""The one page that tells what its command found at another time: it has tests of its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("book")
    write_lively_book(made)
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with asking(folder, VIC) as client:
        yield client


def beside(address: str) -> str:
    """Return the address of the JSON beside a page."""
    path, question, query = address.partition("?")
    return f"{'/index' if path == '/' else path}.json{question}{query}"


def command_of(text: str) -> str:
    """Return the command that a page says says the same."""
    [found] = re.findall(r'<p class="command.*?<code>(.*?)</code>', text, re.DOTALL)
    return unescape(found)


def test_every_page_with_json_is_tried_here(client: TestClient) -> None:
    assert isinstance(client.app, Starlette)
    paths = [route.path for route in client.app.routes if isinstance(route, Route)]
    assert sorted(path for path in paths if path.endswith(".json")) == sorted(map(beside, PAGES))


@pytest.mark.parametrize(
    "address",
    [
        *(PAGES[path] for path in PAGES if path != REHEARSAL),
        *(path for path in PAGES if "{" not in path and path not in ("/sql", REHEARSAL)),
    ],
)
def test_the_json_beside_a_page_is_what_its_command_prints(
    client: TestClient, folder: Path, address: str
) -> None:
    page = client.get(address)
    assert page.status_code == 200
    _, *words = shlex.split(command_of(page.text))
    printed = run(*words, "--format", "json", cwd=folder)
    assert printed.code in (0, 3), printed.err
    answer = client.get(beside(address))
    assert answer.headers["content-type"] == "application/json"
    assert settled(answer.json()) == settled(printed.json)


def settled(content: Any) -> Any:
    """Leave out the time, and how long something has lasted, which is longer at every look."""
    if isinstance(content, list):
        return [settled(each) for each in content]
    changing = ("now", "held_seconds", "left_seconds")
    return {name: value for name, value in content.items() if name not in changing}


def test_the_book_has_something_for_the_pages_to_show(client: TestClient) -> None:
    plain = {path for path in PAGES if "{" not in path and path != REHEARSAL}
    filled = {path for path in plain if client.get(beside(path)).json()}
    assert filled == plain - {"/leases", "/sql"}


@pytest.mark.parametrize("address", PAGES.values())
def test_texts_that_come_from_data_stay_texts(client: TestClient, address: str) -> None:
    text = client.get(address.partition("?")[0]).text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "onerror=alert(2)>" not in text
    assert "49" not in re.findall(r"&amp;amp;(.{0,7})", text)
    if any(MARKUP in str(value) for value in [client.get(beside(address.partition("?")[0])).text]):
        assert MARKUP in unescape(text)


@pytest.mark.parametrize(
    "address", ["/runs", f"/runs/{RUN}", "/backfills", "/backfills/old", "/pauses", "/cuts", "/audit"]
)
def test_these_pages_do_show_what_somebody_wrote(client: TestClient, address: str) -> None:
    assert MARKUP in unescape(client.get(address).text)


@pytest.mark.parametrize(
    "name", ["status", "before", "limit", "action", "from", "source", "customer", "lane"]
)
@pytest.mark.parametrize("path", ["/runs", "/audit", "/leases", "/lanes", "/backfills"])
def test_a_filter_that_is_nonsense_is_refused_as_text(client: TestClient, path: str, name: str) -> None:
    answer = client.get(path, params={name: MARKUP})
    assert answer.status_code in (200, 400)
    assert "<script>alert" not in answer.text
    assert "<img" not in answer.text


def test_a_run_leads_to_its_partitions(client: TestClient) -> None:
    text = client.get(f"/runs/{RUN}").text
    assert f'<a href="/partitions/{GOOD}">{GOOD}</a>' in text
    assert f'href="/runs/{RUN}"' in client.get("/runs").text


def test_events_of_a_run_go_on_by_number(client: TestClient) -> None:
    every = client.get(f"/runs/{RUN}.json").json()
    [second] = client.get(f"/runs/{RUN}.json?limit=1&after={every[0]['runSeq']}").json()
    assert second == every[1]
    assert f"after={second['runSeq']}" in client.get(f"/runs/{RUN}?limit=1&after=1").text


def test_pages_go_on_by_key(client: TestClient) -> None:
    seen: list[int] = []
    address: str | None = "/audit?limit=2"
    while address is not None:
        seen += [each["id"] for each in client.get(beside(address)).json()]
        found = re.search(r'href="([^"]+)" rel="next"', client.get(address).text)
        address = None if found is None else unescape(found[1])
    everything = [each["id"] for each in client.get("/audit.json").json()]
    assert seen == everything
    assert len(everything) >= 4
    assert everything == sorted(everything, reverse=True)


@pytest.mark.parametrize(
    "address", ["/runs?limit=0", "/audit?before=x", "/runs?limit=1e3", "/audit?limit=99999"]
)
def test_what_is_no_page_is_refused_with_the_reason(client: TestClient, address: str) -> None:
    answer = client.get(beside(address))
    assert answer.status_code == 400
    assert "expected" in answer.json()["error"]
    assert client.get(address).status_code == 400


def test_what_is_not_there_is_not_found_and_says_the_way_out(client: TestClient) -> None:
    answer = client.get("/backfills/nothing.json")
    assert answer.status_code == 404
    assert answer.json()["error"] == "there is no backfill nothing"
    assert "sealbook backfill" in answer.json()["remedy"]


def test_a_page_that_has_not_changed_is_not_sent_again(folder: Path) -> None:
    with asking(folder) as client:
        first = client.get("/cuts")
        again = client.get("/cuts", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        fragment = client.get(
            "/cuts", headers={"If-None-Match": first.headers["etag"], "Sealbook-Fragment": "1"}
        )
        assert fragment.status_code == 200
        assert "<html" not in fragment.text
        assert fragment.text.strip() in first.text
        with sealbook.open(folder) as book:
            book.ledger.pointers.create_cut("later")
        console_of(client).acted()
        changed = client.get("/cuts", headers={"If-None-Match": first.headers["etag"]})
        assert (changed.status_code, "later" in changed.text) == (200, True)
        with sealbook.open(folder) as book:
            book.ledger.pointers.drop_cut("later")


def test_a_page_says_how_old_its_data_is(client: TestClient) -> None:
    answer = client.get("/runs")
    assert f'datetime="{answer.headers["sealbook-gathered"]}"' in answer.text
