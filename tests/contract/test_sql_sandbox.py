"""SQL of people on the console: published tables, within limits, and nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sealbook
from sealbook.book import Book
from sealbook.config.console import SqlSettings
from sealbook.errors import Forbidden, InvalidInput, Permanent, SealbookError
from sealbook.read.sandbox import Sandbox
from tests.support.console import asking
from tests.support.published import QUERY, SOURCE, key, publish, write_book

TABLE = f"{SOURCE}.{QUERY}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of two customers with two days each, and a file beside it that is nobody's business."""
    found = write_book(tmp_path_factory.mktemp("book"))
    (found / "secret.csv").write_text("word\nsesame\n")
    with sealbook.open(found) as book:
        keys = [key(customer, day) for customer in range(2) for day in range(2)]
        publish(book.ledger, found / "warehouse", keys, version="2", rows=2)
    return found


@pytest.fixture
def book(folder: Path) -> Iterator[Book]:
    with sealbook.open(folder) as opened:
        yield opened


def files_of(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "book.db" not in path.name
    }


@pytest.mark.parametrize(
    "question",
    [
        f"select customer_id, count(*) from {QUERY} group by all order by all",
        f"select * from {TABLE} where customer_id = 'c1' order by all",
        f"with own as (select * from {QUERY}) select max(clicks) from own, range(3), (values (1)) as v",
        f"select unnest([1, 2]) as n, (select count(*) from {QUERY}) as rows",
        f"from {QUERY} select id order by all",
        f"describe {QUERY}",
        f"select count(*) as explain from {QUERY.upper()}",
        f"with {QUERY} as (select 1 as n) select n from {QUERY}",
    ],
)
def test_what_is_published_is_answered_as_by_the_command(book: Book, question: str) -> None:
    table, is_cut = book.sql_within(question, Sandbox())
    assert (table.to_pylist(), is_cut) == (book.sql(question).to_pylist(), False)


@pytest.mark.parametrize(
    "question",
    [
        "select * from read_csv('{folder}/secret.csv')",
        "select * from '{folder}/secret.csv'",
        "from '{folder}/secret.csv'",
        "select * from read_text('/etc/passwd')",
        "select * from read_blob('/etc/passwd')",
        "select * from glob('{folder}/*')",
        "select * from read_parquet('{folder}/warehouse/**')",
        "select (select content from read_text('/etc/passwd'))",
        "with x as (select * from read_text('/etc/passwd')) select * from x",
        "select * from query('select * from read_text(''/etc/passwd'')')",
        "select * from query_table('__demo__campaign_daily')",
        "select * from __demo__campaign_daily",
        "select * from sqlite_scan('{folder}/book.db', 'run_event')",
        "select * from postgres_scan('host=127.0.0.1', 'public', 'run_event')",
        "copy (select 1) to '{folder}/written.csv'",
        f"copy {QUERY} to '{{folder}}/written.parquet'",
        "export database '{folder}/written'",
        "attach '{folder}/book.db' as other",
        "attach ':memory:' as other",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma database_list",
        "call pragma_version()",
        "create table made as select 1",
        f"drop view {QUERY}",
        f"insert into {QUERY} values (1)",
        "create secret (type s3)",
        "select 1; copy (select 1) to '{folder}/written.csv'",
        "explain analyze copy (select 1) to '{folder}/written.csv'",
        "select * from duckdb_settings()",
        "select * from duckdb_secrets()",
        "select * from duckdb_tables",
        "select * from information_schema.tables",
        "select * from pg_catalog.pg_class",
        "select * from duckdb_tables, (with duckdb_tables as (select 1) select * from duckdb_tables)",
        'with "information_schema.tables" as (select 1) select * from information_schema.tables',
        "select * from system.information_schema.tables",
        "select current_setting('temp_directory')",
        "select getvariable('x')",
        "select write_log('x')",
        "select getenv('HOME')",
        "",
        "selec",
    ],
)
def test_nothing_else_is_read_or_written(book: Book, folder: Path, question: str) -> None:
    before = files_of(folder)
    with pytest.raises((Forbidden, InvalidInput)) as refused:
        book.sql_within(question.format(folder=folder), Sandbox())
    assert "sesame" not in str(refused.value)
    assert files_of(folder) == before


@pytest.mark.parametrize("function", ["read_csv", "read_parquet", "read_text", "read_json"])
def test_nothing_is_fetched_from_the_network(book: Book, function: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/x.csv"
        with pytest.raises(Forbidden):
            book.sql_within(f"select * from {function}('{address}')", Sandbox())
        with pytest.raises(BlockingIOError):
            server.accept()


def test_duckdb_by_itself_reaches_no_file(book: Book, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the question is taken for, DuckDB has no way out."""
    monkeypatch.setattr(Sandbox, "check", lambda *_: None)
    for question in ("select * from read_text('/etc/passwd')", f"select * from '{folder}/secret.csv'"):
        with pytest.raises(SealbookError, match="disabled by configuration"):
            book.sql_within(question, Sandbox())


def test_an_answer_ends_at_its_limit_of_rows(book: Book) -> None:
    table, is_cut = book.sql_within("select * from range(5000)", Sandbox(rows=3))
    assert (table.num_rows, is_cut) == (3, True)
    table, is_cut = book.sql_within("select * from range(3)", Sandbox(rows=3))
    assert (table.num_rows, is_cut) == (3, False)


def test_an_answer_that_is_too_large_is_refused(book: Book) -> None:
    with pytest.raises(Permanent, match="too large"):
        book.sql_within("select repeat('x', 1000000) from range(60)", Sandbox(megabytes=128))


@pytest.mark.parametrize(
    "question",
    [
        f"select name from {QUERY}",
        f"select upper(name) as name from {TABLE}",
        f"select min(name) as name from {QUERY}",
    ],
)
def test_a_masked_column_is_there_in_name_alone(book: Book, question: str) -> None:
    for masked in ("name", f"{QUERY}.name"):
        table, _ = book.sql_within(question, Sandbox(masked_columns=frozenset({masked})))
        assert {*table.column("name").to_pylist()} == {"•••"}
    table, _ = book.sql_within(question, Sandbox(masked_columns=frozenset({"clicks.name"})))
    assert "•••" not in table.column("name").to_pylist()


@pytest.fixture(scope="module")
def console(folder: Path) -> Iterator[TestClient]:
    with asking(folder, sql=SqlSettings(seconds=20, rows=3)) as client:
        yield client


def test_the_page_answers_as_the_command_does(console: TestClient, book: Book) -> None:
    question = (
        f"select customer_id, logical_date, clicks from {QUERY} where customer_id = 'c1' order by all limit 2"
    )
    asked = {"sql": question}
    assert console.get("/sql.json", params=asked).json() == [
        {**row, "logical_date": str(row["logical_date"])} for row in book.sql(question).to_pylist()
    ]
    page = console.get("/sql", params=asked).text
    assert "2 rows" in page
    assert "<td>2026-01-0" in page
    csv = console.get("/sql.csv", params=asked)
    assert csv.text.splitlines()[0] == "customer_id,logical_date,clicks"
    assert len(csv.text.splitlines()) == 3
    assert "attachment" in csv.headers["content-disposition"]


def test_the_page_shows_what_is_wrong_beside_the_question(console: TestClient) -> None:
    asked = {"sql": "select '<script>' from read_text('/etc/passwd')"}
    page = console.get("/sql", params=asked)
    assert page.status_code == 200
    assert "read_text cannot be asked here" in page.text
    assert "<script>&#39;" not in page.text
    assert "&lt;script&gt;" in page.text
    refused = console.get("/sql.json", params=asked)
    assert (refused.status_code, refused.json()["error"]) == (403, "read_text cannot be asked here")


def test_what_runs_long_is_ended(folder: Path) -> None:
    question = "select sum(a.range * b.range) from range(100000000) a, range(10000) b"
    with asking(folder, sql=SqlSettings(seconds=3)) as client:
        answer = client.get("/sql.json", params={"sql": question})
    assert (answer.status_code, answer.json()["error"]) == (500, "the question took longer than 3 seconds")


def test_what_eats_memory_is_ended(folder: Path) -> None:
    question = "select list(a.range || repeat('x', 1000)) from range(100000000) a"
    with asking(folder, sql=SqlSettings(megabytes=64)) as client:
        answer = client.get("/sql.json", params={"sql": question})
    assert answer.status_code == 500
    assert "memory" in answer.json()["error"].lower()


def test_a_question_from_another_site_is_shown_and_not_asked(console: TestClient) -> None:
    asked = {"sql": f"select * from {QUERY}"}
    page = console.get("/sql", params=asked, headers={"Sec-Fetch-Site": "cross-site"})
    assert "It has not been asked" in page.text
    assert console.get("/sql.json", params=asked, headers={"Sec-Fetch-Site": "cross-site"}).json() == []


def test_rows_that_are_switched_off_cannot_be_asked_for(folder: Path) -> None:
    with asking(folder, show_rows=False) as client:
        for path in ("/sql.json", "/sql.csv"):
            assert client.get(path, params={"sql": "select 1"}).status_code == 403
        assert "shows no rows" in client.get("/sql", params={"sql": "select 1"}).text
