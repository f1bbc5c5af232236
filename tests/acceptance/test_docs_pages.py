"""What pages of the documentation tell a reader to type works as it stands there."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from tests.support.account_trees import AccountTree, Node
from tests.support.cli import run, run_process
from tests.support.demo_books import CUSTOMERS, GOOD, REJECTED, write_demo_book
from tests.support.google_ads import Batch, GoogleAdsServer
from tests.support.http_api import Asked, HttpApi, Reply
from tests.support.ledger import PostgresqlServer
from tests.support.pages import DOCS, blocks, follow
from tests.support.s3 import S3Server

TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("pages")  # which share a book that takes a while to make
ELSEWHERE = {"cluster.md": "test_connect.py"}
"""Pages whose programs need what another test has: a server for Spark Connect."""
A_KEY = "google_ads/1234567890/campaign_daily/2026-01-01"
A_RUN = "01J8ZQ6T5N8W3Y2V7R4K9M0XCE"
RUN_SQL = """
import sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    for statement in filter(str.strip, sys.stdin.read().split(";")):
        connection.execute(statement)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book in which a run published three partitions, and a fourth was rejected."""
    folder = tmp_path_factory.mktemp("made") / "book"
    write_demo_book(folder)
    assert run_process("run", "--since", "2026-01-01", "--until", "2026-01-02", cwd=folder).code == 3
    return folder


@pytest.fixture
def book(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "book"))


def runs(book: Path) -> list[str]:
    """Return the runs of a book, the oldest first."""
    return sorted(str(each["runId"]) for each in run("runs", "--format", "json", cwd=book).json)


def published(book: Path, key: str) -> str:
    """Return which run of a partition readers get."""
    told = run("warehouse", "pointers", "--format", "json", cwd=book).json
    names = ("source", "customer_id", "query_name", "logical_date")
    return {"/".join(each[name] for name in names): str(each["run_id"]) for each in told}[key]


def set_as_the_page_says(book: Path, page: str) -> None:
    """Put what a page says of the settings into those of a book."""
    file = book / "sealbook.yaml"
    said = [yaml.safe_load(each.text) for each in blocks(page) if each.language == "yaml"]
    settings = yaml.safe_load(file.read_text())
    for each in said:
        settings |= each
    file.write_text(yaml.safe_dump(settings, sort_keys=False))


def test_the_demo(tmp_path: Path) -> None:
    """tutorial.md: only that .venv is there already."""
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    shown = follow("tutorial.md", tmp_path, stand_ins={"make demo": "sealbook demo"})
    assert "0 partitions: 0 terminal" in shown, "what was given up has been mended"
    assert "since cut as_reported: 5 replaced" in shown


def test_your_own_data(tmp_path: Path) -> None:
    """tutorial-own-data.md: only that the package is on the path, and not installed."""
    page = "tutorial-own-data.md"
    [project] = [tomllib.loads(each.text) for each in blocks(page) if each.language == "toml"]
    info = tmp_path / "shop" / "shop_source-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-source\nVersion: 1.0\n")
    [(group, names)] = project["project"]["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))

    installed = {"pip install --quiet --editable .": "export PYTHONPATH=$PWD"}
    shown = follow(page, tmp_path, stand_ins=installed)
    assert "amount_not_negative" in shown
    assert "'amount': 1.0" in shown


def test_find_out_why(book: Path) -> None:
    shown = follow("how-to/find-out-why.md", book, stand_ins={A_KEY: REJECTED})
    assert REJECTED in shown


def test_compare_runs(book: Path) -> None:
    """The rejected run of a day is fetched again: there are two to compare."""
    assert run_process("run", REJECTED, cwd=book).code in (1, 3)
    stand_ins = {A_KEY: REJECTED, "--day 2026-01-01": "--day 2026-01-02"}
    shown = follow("how-to/compare-runs.md", book, stand_ins=stand_ins)
    assert "matched by" in shown
    assert "with nothing to compare" in shown


def test_restatement(book: Path) -> None:
    """A day is fetched again that says the same: there is one replacement."""
    assert run_process("run", GOOD, cwd=book).code == 0
    shown = follow("how-to/restatement.md", book, stand_ins={})
    assert "100.00%" in shown
    assert "1 replacement." in shown
    assert " 1 1.0 0.0" in shown


def test_mirrors(book: Path) -> None:
    """Both mirrors of the page are configured at once."""
    page, file = "how-to/mirrors.md", book / "sealbook.yaml"
    said = [yaml.safe_load(each.text)["mirrors"] for each in blocks(page) if each.language == "yaml"]
    settings = yaml.safe_load(file.read_text()) | {"mirrors": {**said[0], **said[1]}}
    file.write_text(yaml.safe_dump(settings, sort_keys=False))
    stand_ins = {
        "pip install 'sealbook[delta]'": "true",
        "pip install 'sealbook[iceberg]'": "true",
        "warehouse/google_ads": "warehouse/demo",
        "google_ads.campaign_daily": "demo.campaign_daily",
    }
    shown = follow(page, book, stand_ins=stand_ins)
    assert shown.count("60 rows") == 2
    assert "was made anew: it was asked for" in shown


def test_follow_changes(book: Path) -> None:
    shown = follow("how-to/follow-changes.md", book, stand_ins={A_KEY: GOOD})
    assert f"{GOOD} published None {runs(book)[0]}" in shown
    assert "3 changes. To go on" in shown
    assert "reports" in shown
    assert "0 holders have a run of it" in shown, "it has advanced to where nothing was published yet"


def test_stream_changes(book: Path) -> None:
    """The copy has what is published, also when the page is followed again."""
    rows = len(run("sql", "select customer_id from campaign_daily", "--format", "json", cwd=book).json)
    for _ in range(2):
        shown = follow("how-to/stream-changes.md", book)
        assert f"{rows} rows copied, {rows} published" in shown
    assert "from_run_id" in shown


def test_a_contract_of_your_own(book: Path) -> None:
    """The demo has one version: it is held against itself."""
    shown = follow("how-to/own-contract.md", book, stand_ins={"contract diff 1 2": "contract diff 1 1"})
    assert "# Proposed from " in shown
    assert "every check bites" in shown
    assert "Versions 1 and 1 say the same." in shown


def test_mend_a_rejection(book: Path) -> None:
    """The data is mended where the page says so: what was wrong on purpose is right then."""
    fetched = "sealbook run csv_folder/acme/orders/2026-01-02"
    mended = f"sed -i '/faults:/,$d' sealbook.yaml\n{fetched}"
    stand_ins = {fetched: mended, "csv_folder/acme/orders/2026-01-02": REJECTED}
    follow("how-to/mend-a-rejection.md", book, stand_ins=stand_ins)
    assert published(book, REJECTED) == runs(book)[-1]


def test_recover(book: Path) -> None:
    """A file of the warehouse is gone, and is there again; a newer run is rolled back from."""
    [first] = runs(book)
    [gone, *_] = (book / "warehouse").rglob("*.parquet")
    gone.unlink()
    follow("how-to/recover.md", book, stand_ins={A_KEY: GOOD, A_RUN: first})
    assert gone.is_file()
    assert published(book, GOOD) == first
    assert len(runs(book)) == 2


def test_backfill(book: Path) -> None:
    """Of days before those that were fetched; nothing works them off meanwhile."""
    settings = book / "sealbook.yaml"
    settings.write_text(settings.read_text().replace("first_day: '2026-01-01'", "first_day: '2025-12-30'"))
    stand_ins = {
        "123-456-7890": "1003",
        "--plan 12": "--plan 1",
        "--plan 13": "--plan 2",
        "--since 2025-01-01": "--since 2025-12-30",
        "--source google_ads": "--source demo",
        A_KEY: REJECTED,
    }
    shown = follow("how-to/backfill.md", book, stand_ins=stand_ins)
    assert "year_2025" in shown


def test_run_the_loop(book: Path) -> None:
    """What how-to/run-the-loop.md gives cron and Airflow; `serve` has a test of its own."""
    texts = [each.text for each in blocks("how-to/run-the-loop.md")]
    by_cron = texts[0].split(maxsplit=5)[5]
    [operator] = [node for node in ast.walk(ast.parse(texts[1])) if isinstance(node, ast.Call)]
    [by_airflow] = [ast.literal_eval(each.value) for each in operator.keywords if each.arg == "bash_command"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in (by_cron, by_airflow):
        here = command.replace("/srv/book", str(book))
        ended = subprocess.run(["bash", "-c", here], env={**os.environ, "PATH": path}, timeout=120)
        # Done in part: once the book is five minutes old, what was rejected is tried again, and is again.
        assert ended.returncode in (0, 3)
    told = [json.loads(line)["event"] for line in (book / "tick.log").read_text().splitlines()]
    assert told


def test_upgrade_and_back(book: Path) -> None:
    """With the copy in place, what was sealed since is judged and published."""
    follow("how-to/upgrade.md", book)
    [first] = runs(book)
    assert run_process("run", GOOD, cwd=book).code == 0
    newer = published(book, GOOD)
    assert newer > first

    for file in book.glob("sealbook.db*"):
        if file.name != "sealbook.db.before":
            file.unlink()
    (book / "sealbook.db.before").rename(book / "sealbook.db")
    assert published(book, GOOD) == first
    assert run_process("validate", cwd=book).code == 0
    assert run_process("load", cwd=book).code == 0
    assert published(book, GOOD) == newer


@pytest.fixture
def marked(postgresql: PostgresqlServer) -> Iterator[Callable[[str], str]]:
    """The names of the page, each made unlike any other on the server; they are gone afterwards."""
    mark = f"r{uuid4().hex[:12]}_"
    yield lambda name: f"{mark}{name}"
    postgresql.execute(f"DROP DATABASE IF EXISTS {mark}book")
    roles = (
        "reporting",
        "worker",
        "consumer",
        "viewer",
        "extractor",
        "validator",
        "loader",
        "control",
        "book_owner",
    )
    for role in roles:
        postgresql.execute(f"DROP ROLE IF EXISTS {mark}{role}")


def test_postgresql(postgresql: PostgresqlServer, marked: Callable[[str], str], tmp_path: Path) -> None:
    page, book, runner = "how-to/postgresql.md", tmp_path / "book", tmp_path / "run_sql.py"
    write_demo_book(book)
    set_as_the_page_says(book, page)
    runner.write_text(RUN_SQL)
    at = "@localhost:5432/book"
    stand_ins = {
        f"postgresql://book_owner:change-me{at}": postgresql.url(marked("book"), marked("book_owner")),
        f"postgresql://worker:and-me{at}": postgresql.url(marked("book"), marked("worker")),
        "sealbook ledger grant": f"sealbook ledger grant --prefix {marked('')}",
        "sealbook_": marked(""),
        "ROLE book_owner": f"ROLE {marked('book_owner')}",
        "DATABASE book OWNER book_owner": f"DATABASE {marked('book')} OWNER {marked('book_owner')}",
        "reporting": marked("reporting"),
        "ROLE worker": f"ROLE {marked('worker')}",
        "TO worker": f"TO {marked('worker')}",
    }
    run_by = {"sql": f"python {runner} '{postgresql.uri}'"}
    shown = follow(page, book, stand_ins=stand_ins, languages=run_by)
    assert f"user {marked('worker')}: consumer, viewer, extractor, loader, validator, control" in shown
    assert "FAIL" not in shown


def test_s3(s3_server: S3Server, tmp_path: Path) -> None:
    page = "how-to/s3.md"
    s3_server.expect(None)
    write_demo_book(tmp_path)
    set_as_the_page_says(tmp_path, page)
    bucket = s3_server.new_bucket()
    settings = tmp_path / "sealbook.yaml"
    settings.write_text(settings.read_text().replace("my-bucket", bucket))
    there = {"AWS_ENDPOINT_URL": s3_server.endpoint, "NO_PROXY": "127.0.0.1"}
    shown = follow(page, tmp_path, environment=there)
    assert shown.count("honours create-only puts") == 2
    assert f"load      {len(CUSTOMERS)} new" in shown


def test_google_ads(google_ads_server: GoogleAdsServer, tmp_path: Path) -> None:
    """Against a server that speaks the API; it needs no credentials."""
    metrics: dict[str, object] = {"impressions": 10, "clicks": 2, "conversions": 1.0, "cost_micros": 5}
    row: dict[str, dict[str, object]] = {
        "campaign": {"id": 1, "name": "winter", "status": "ENABLED"},
        "ad_group": {"id": 2, "name": "boots"},
        "segments": {"date": "2026-01-01", "device": "MOBILE"},
        "metrics": metrics,
    }
    paths = [f"{resource}.{field}" for resource, fields in row.items() for field in fields]
    google_ads_server.reply("2345678901", [Batch(paths, [row])])
    below = [Node("2345678901", "boots"), Node("3456789012", "hats", status="CLOSED")]
    google_ads_server.answer = AccountTree(Node("1234567890", "agency", below=below)).answer
    stand_ins = {
        "pip install 'sealbook[google-ads]'": "true",
        "credentials_file: ../google-ads.yaml": f"endpoint: {google_ads_server.endpoint}",
    }
    shown = follow("how-to/google-ads.md", tmp_path, stand_ins=stand_ins)
    assert "answers: 1 account directly accessible" in shown
    assert "load      2 new" in shown
    assert "winter" in shown
    assert "no: a manager" in shown
    assert re.search(r"boots +enabled", shown)


def test_http_api(http_api: HttpApi, tmp_path: Path) -> None:
    """Against a server with two pages for one customer, and none for the other."""
    total = {"amount": 19.90, "currency": "EUR"}

    def orders(asked: Asked) -> Reply:
        if asked.params["from"] != "2026-01-01":
            return Reply({"orders": []})
        page = 2 if "cursor" in asked.params else 1
        order = {"id": page, "createdAt": "2026-01-01T09:30:00Z", "total": total}
        return Reply({"orders": [order], "paging": {"next": "abc" if page == 1 else None}}, packed=True)

    http_api.routes["/v2/acme/orders"] = orders
    http_api.reply("/v2/globex/orders", Reply({"orders": None}))
    http_api.reply("/v2/me", Reply({"name": "ann"}))
    stand_ins = {"https://api.example.com": http_api.origin}
    shown = follow("how-to/http-api.md", tmp_path, stand_ins=stand_ins, environment={"NO_PROXY": "127.0.0.1"})
    assert f"{http_api.origin} answers /me by 200" in shown
    assert "load      4 new" in shown
    assert "39.80" in shown
    assert {each.headers["Authorization"] for each in http_api.requests} == {"Bearer change-me"}
    assert {each.params["to"] for each in http_api.asked("/v2/globex/orders")} == {"2026-01-02", "2026-01-03"}


def test_files(tmp_path: Path) -> None:
    shown = follow("how-to/files.md", tmp_path)
    assert "drops can be read" in shown
    assert "orders/2026-01-02 is not complete yet: its marker berlin/2026-01-02/_SUCCESS" in shown
    assert "13.5" in shown
    assert "all_orders" in shown


def test_every_page_that_says_what_to_type_is_followed() -> None:
    """A how-to or tutorial with commands is named by the test that runs them."""
    pages = [*(DOCS / "how-to").glob("*.md"), *DOCS.glob("tutorial*.md")]
    named = "\n".join(file.read_text("utf-8") for file in TESTS.rglob("*.py"))
    typed = [page for page in pages if any(each.language in ("sh", "python") for each in blocks(str(page)))]
    assert typed
    assert [page.name for page in typed if page.name not in named] == []
    assert [test for test in ELSEWHERE.values() if not list(TESTS.rglob(test))] == []
