"""A table of mistakes: each ends before anything starts, names the thing and the way out, leaves no trace."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from sqlalchemy import make_url

from sealbook.extract.sources.demo import demo_configuration
from sealbook.spark import session
from tests.support.books import REMOVED, changed, contents
from tests.support.cli import run
from tests.support.ledger import PostgresqlServer
from tests.support.s3 import S3Server

DAY = ("--day", "2026-01-02")
RUN = ("run", *DAY)
TOMORROW = datetime.now(UTC).date() + timedelta(days=1)
ULID = "01J8ZQ6T5N8W3Y2V7R4K9M0XCE"

SETTINGS: dict[str, Any] = {
    "ledger": "sqlite:///book.db",
    "raw": "raw",
    "warehouse": "warehouse",
    "sources": {"demo": {"queries": "demo.yaml", "customers": ["c0", "c1"], "options": {"rows": 5}}},
}
CATALOGUE: dict[str, Any] = yaml.safe_load(demo_configuration())
GOOGLE_ADS: dict[str, Any] = {"queries": "ads.yaml", "customers": ["123-456-7890"], "options": {}}
GOOGLE_ADS_CATALOGUE = {**CATALOGUE, "source": "google_ads"}
GOOGLE_ADS_CATALOGUE["queries"] = {
    "campaign_daily": {
        **CATALOGUE["queries"]["campaign_daily"],
        "text": "SELECT campaign.id FROM campaign WHERE segments.date = '{logical_date}'",
    }
}
CONTRACT = "queries.campaign_daily.contracts.1"


@dataclass
class Book:
    """The files of a small book, before they are written; a mistake changes them."""

    settings: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(SETTINGS))
    catalogue: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(CATALOGUE))
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        files = {
            "sealbook.yaml": yaml.safe_dump(self.settings, sort_keys=False),
            "demo.yaml": yaml.safe_dump(self.catalogue, sort_keys=False),
            "ads.yaml": yaml.safe_dump(GOOGLE_ADS_CATALOGUE, sort_keys=False),
            **self.texts,
        }
        for name, text in files.items():
            (folder / name).write_text(text)
        return folder


Change = Callable[[Book], None]


class Mistake(NamedTuple):
    """What is typed or written wrong, what is named then, and the way out; `code` is mostly wrong usage."""

    command: tuple[str, ...]
    named: str
    way_out: str
    change: Change = lambda _book: None
    env: Mapping[str, str] = {}
    code: int = 2
    reads: bool = False
    """The ledger must be read to tell; one on SQLite is made when it is first opened."""


def settings(path: str, value: object) -> Change:
    def change(book: Book) -> None:
        book.settings = changed(book.settings, path, value)

    return change


def catalogue(path: str, value: object) -> Change:
    def change(book: Book) -> None:
        book.catalogue = changed(book.catalogue, path, value)

    return change


def text(name: str, content: str) -> Change:
    return lambda book: book.texts.update({name: content})


def google_ads(**options: object) -> Change:
    return settings("sources", {"google_ads": {**GOOGLE_ADS, "options": options}})


def each(*changes: Change) -> Change:
    def change(book: Book) -> None:
        for one in changes:
            one(book)

    return change


MISTAKES = {
    # Configuration
    "no book": Mistake(
        ("run", *DAY, "--config", "elsewhere"), "there is no file", "`sealbook init` writes one"
    ),
    "not yaml": Mistake(RUN, "sealbook.yaml: not valid YAML", "(line 2)", text("sealbook.yaml", "a: [")),
    "unknown field": Mistake(
        RUN, "sealbook.yaml: ledgre: there is no such field", "The fields here are: ledger",
        settings("ledgre", "x"),
    ),
    "missing field": Mistake(
        RUN, "sealbook.yaml: ledger: the field is missing", "Write it there", settings("ledger", REMOVED)
    ),
    "wrong type": Mistake(
        RUN, "sources.demo.limits.threads: expected `int` >= 1", "(line 1",
        settings("sources.demo.limits", {"threads": 0}),
    ),
    "unquoted version": Mistake(
        RUN, "schema_version: expected `str`, got `int`", "Put it in quotes",
        catalogue("queries.campaign_daily.schema_version", 1),
    ),
    "variable not set": Mistake(
        RUN, "the environment variable BOOK_DB is not set", "Set BOOK_DB", settings("ledger", "${BOOK_DB}")
    ),
    "no catalogue": Mistake(
        RUN, "sources.demo.queries: there is no file nowhere.yaml", "relative to sealbook.yaml",
        settings("sources.demo.queries", "nowhere.yaml"),
    ),
    "customer twice": Mistake(
        RUN, "customer c0 is listed twice", "Take one of the two out",
        settings("sources.demo.customers[1]", "c0"),
    ),
    "raw in the warehouse": Mistake(
        RUN, "raw and warehouse are the same place", "Give each", settings("warehouse", "raw")
    ),
    # Sources
    "unknown source": Mistake(
        RUN,
        "sources.dmeo: there is no source 'dmeo'; known are demo, files, google_ads, http_json",
        "Correct the name",
        each(settings("sources", {"dmeo": SETTINGS["sources"]["demo"]}), catalogue("source", "dmeo")),
    ),
    "unknown option": Mistake(
        RUN, "sealbook.yaml: sources.demo.options.colour", "Its options are seed, rows,",
        settings("sources.demo.options.colour", "red"),
    ),
    "bad option": Mistake(
        ("extract", *DAY), "rows: expected `int` >= 0", "Its options are",
        settings("sources.demo.options.rows", -1),
    ),
    "catalogue of another source": Mistake(
        RUN, "'demi' is used as the catalogue of source 'demo'", "Write the same name in both",
        catalogue("source", "demi"),
    ),
    # Credentials
    "no credentials": Mistake(
        RUN, "source google_ads: there are no Google Ads credentials at", "Set `credentials_file`",
        google_ads(), {"HOME": "/nonexistent"},
    ),
    "no credentials file": Mistake(
        ("extract", *DAY), "there are no Google Ads credentials at", "Set `credentials_file`",
        google_ads(credentials_file="secret.yaml"),
    ),
    "credentials of another format": Mistake(
        RUN, "the Google Ads credentials are not in the client's format", "google-ads.yaml",
        google_ads(credentials_file="ads.yaml"),
    ),
    "no manager account": Mistake(
        RUN, "options.login_customer_id", "ten digits", google_ads(login_customer_id="12", endpoint="h:1")
    ),
    "no such api version": Mistake(
        RUN, "api_version 'v1'", "Ask for one of these",
        each(
            google_ads(endpoint="127.0.0.1:1"),
            text("ads.yaml", yaml.safe_dump({**GOOGLE_ADS_CATALOGUE, "api_version": "v1"})),
        ),
    ),
    # Storage
    "one slash": Mistake(
        RUN, "raw: 's3:/bucket/raw' is neither a folder nor a URL", "Use a folder, or a URL",
        settings("raw", "s3:/bucket/raw"),
    ),
    "unknown storage": Mistake(
        RUN, "places of kind 'ftp' are not supported", "s3://", settings("warehouse", "ftp://host/x")
    ),
    "no bucket named": Mistake(RUN, "the URL names no bucket", "Use a folder", settings("raw", "s3:///x")),
    "raw is a file": Mistake(
        RUN, "sealbook.yaml: raw: ", "Name a folder that exists, or that may be created",
        settings("raw", "demo.yaml"),
    ),
    "warehouse is a file": Mistake(
        RUN, "sealbook.yaml: warehouse: ", "Name a folder that exists, or that may be created",
        settings("warehouse", "demo.yaml"),
    ),
    # Ledger
    "not a URL": Mistake(
        RUN, "ledger: the value is not a URL", "sqlite:///path/to/book.db", settings("ledger", "book.db")
    ),
    "two slashes": Mistake(
        RUN, "the SQLite URL names no file", "sqlite:///path", settings("ledger", "sqlite://book.db")
    ),
    "unknown database": Mistake(
        RUN, "ledgers of kind 'mysql' are not supported", "postgresql://", settings("ledger", "mysql://h/d")
    ),
    "no folder for the ledger": Mistake(
        RUN, "the ledger's folder", "Create it: mkdir -p", settings("ledger", "sqlite:///no/such/book.db")
    ),
    "not a database": Mistake(
        ("runs",), "is not a SQLite database", "Name another file", settings("ledger", "sqlite:///demo.yaml")
    ),
    "nobody answers": Mistake(
        RUN, "did not answer", "Check the ledger's URL and that the database runs",
        settings("ledger", "postgresql://me:hunter2@127.0.0.1:1/book"), code=1,
    ),
    # Contracts and rules
    "no contract": Mistake(
        RUN, "queries.campaign_daily", "expected", catalogue("queries.campaign_daily.schema_version", "9")
    ),
    "unknown column type": Mistake(
        RUN, "type 'money' is not valid", "bigint",
        catalogue(f"{CONTRACT}.columns.metrics_clicks.type", "money"),
    ),
    "primary key of no column": Mistake(
        RUN, "primary_key 'nope' is not valid", "a column of the contract",
        catalogue(f"{CONTRACT}.primary_key", ["nope"]),
    ),
    "date column of no column": Mistake(
        RUN, "date_column", "a column", catalogue(f"{CONTRACT}.date_column", "nope")
    ),
    "share above one": Mistake(
        RUN, "max_share", "from 0 to 1",
        catalogue(f"{CONTRACT}.rules", [{"name": "r", "expression": "metrics_clicks > 0", "max_share": 29}]),
    ),
    "unknown field of a rule": Mistake(
        RUN, "tolerance: there is no such field", "The fields here are: name, expression",
        catalogue(f"{CONTRACT}.rules", [{"name": "r", "expression": "metrics_clicks > 0", "tolerance": 1}]),
    ),
    "contract of no query": Mistake(
        ("contract", "show", "nope"), "no query nope is configured", "Configured are"
    ),
    # Days
    "reversed days": Mistake(
        ("run", "--since", "2026-01-03", "--until", "2026-01-02"), "ends before it begins",
        "Give the first day as since and the last one as until",
    ),
    "no days": Mistake(("run",), "no telling which days to fetch", "Give --since and --until, or --day"),
    "no such day": Mistake(("run", "--day", "2026-02-30"), "day '2026-02-30' is not valid", "YYYY-MM-DD"),
    "another order of day and month": Mistake(
        ("extract", "--day", "01/02/2026"), "day '01/02/2026' is not valid", "YYYY-MM-DD"
    ),
    "days and a day": Mistake(
        ("run", *DAY, "--until", "2026-01-03"), "a day and a span of days are given", "Give --day, or"
    ),
    "a lookback from nothing": Mistake(("run", "--lookback", "3"), "no day to look back from", "Give --day"),
    "a day to come": Mistake(("run", "--day", str(TOMORROW)), "1 day has not begun", "--force"),
    "ten years": Mistake(
        ("extract", "--since", "2016-01-01", "--until", "2025-12-31"), "that is much to fetch", "--yes"
    ),
    # Names
    "unknown customer": Mistake(
        (*RUN, "--customer", "c9"), "no customer c9 is configured", "Configured are c0, c1"
    ),
    "unknown query": Mistake(
        (*RUN, "--query", "campaign"), "no query campaign is configured", "Configured are"
    ),
    "unknown source name": Mistake(
        ("load", "--source", "google_ads"), "no source google_ads is configured", "Configured are demo"
    ),
    "a key cut short": Mistake(
        ("run", "demo/c0/campaign_daily"), "partition key 'demo/c0/campaign_daily' is not valid",
        "source/customer_id/query_name/YYYY-MM-DD",
    ),
    "keys and filters": Mistake(
        ("run", "demo/c0/campaign_daily/2026-01-02", "--source", "demo"), "named by key",
        "Give keys or filters, not both",
    ),
    "customer and query of other sources": Mistake(
        ("run", *DAY, "--customer", "c0", "--query", "campaign_daily", "--source", "google_ads"),
        "no customer c0 is configured", "Configured are 1234567890",
        lambda book: book.settings["sources"].update(google_ads=GOOGLE_ADS),
    ),
    "a run that is none": Mistake((*RUN, "--run-id", "7"), "run_id '7' is not valid", "ULID"),
    "another status": Mistake(("state", "inspect", "--status", "done"), "status 'done'", "success"),
    "judge again what?": Mistake(
        ("validate", "--rejected", "--revalidate"), "judged again by two commands",
        "Give --revalidate or --rejected, not both",
    ),
    "a table that is none": Mistake(
        ("sql", "select * from campaigns"), "campaigns", "campaign_daily", reads=True
    ),
    "a column that is none": Mistake(
        ("sql", "select metrics_click from campaign_daily"), '"metrics_click" not found', '"metrics_clicks"',
        reads=True,
    ),
    "no SQL": Mistake(
        ("sql", "selct 1"), 'syntax error at or near "selct"', "Ask in the SQL of DuckDB. Tables: campaign_d",
        reads=True,
    ),
    "a command that is none": Mistake(("validat",), "No such command 'validat'", "Did you mean 'validate'"),
    "an option that is none": Mistake((*RUN, "--querry", "x"), "No such option: --querry", "--query"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_arguments: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(session, "spark_session", start)


def check(mistake: Mistake, folder: Path) -> None:
    """Make a mistake in a folder, and see that it is told and does nothing."""
    book = Book()
    mistake.change(book)
    book.write(folder)
    before = contents(folder)

    ran = run(*mistake.command, cwd=folder, env=mistake.env)

    assert (ran.code, ran.out) == (mistake.code, ""), ran.err
    assert mistake.named in ran.said
    assert mistake.way_out in ran.said
    assert "Traceback" not in ran.err
    assert "hunter2" not in ran.err
    assert "xml" not in ran.err
    assert sum(line.startswith("Error: ") for line in ran.err.splitlines()) <= 1
    after = contents(folder)
    if mistake.reads:
        del after["book.db"]
    assert after == before


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_before_anything_starts(name: str, tmp_path: Path) -> None:
    check(MISTAKES[name], tmp_path)


def test_there_are_enough_of_them() -> None:
    assert len(MISTAKES) + len(ON_S3) + len(ON_POSTGRESQL) >= 40


ON_S3 = {
    "run": ("raw", RUN),
    "extract": ("raw", ("extract", *DAY)),
    "validate": ("raw", ("validate",)),
    "run to a warehouse": ("warehouse", RUN),
}


@pytest.mark.usefixtures("s3_url")
@pytest.mark.parametrize("name", ON_S3)
def test_a_bucket_that_does_not_exist(name: str, tmp_path: Path, s3_server: S3Server) -> None:
    """One request tells, whichever command needs the bucket; the answer's XML stays out of sight."""
    place, command = ON_S3[name]
    s3_server.expect(None)
    mistake = Mistake(
        command,
        f"sealbook.yaml: {place}: s3://no-such-bucket/x cannot be found: NoSuchBucket",
        "Check that its bucket or folder exists",
        settings(place, "s3://no-such-bucket/x"),
    )
    check(mistake, tmp_path)
    assert s3_server.requests <= 2


ON_POSTGRESQL: dict[str, tuple[dict[str, str], str]] = {
    "database": ({"database": "missing"}, 'database "missing" does not exist'),
    "user": ({"username": "nobody"}, 'role "nobody" does not exist'),
}


@pytest.mark.parametrize("name", ON_POSTGRESQL)
def test_a_database_that_refuses(name: str, tmp_path: Path, postgresql: PostgresqlServer) -> None:
    """It did answer: that is wrong configuration, whichever command meets it first."""
    change, said = ON_POSTGRESQL[name]
    url = make_url(postgresql.uri).set(**change).render_as_string(hide_password=False)  # type: ignore[arg-type]
    for command in (RUN, ("state", "inspect"), ("ledger", "version")):
        folder = tmp_path / command[0]
        folder.mkdir()
        wrong = settings("ledger", url)
        check(Mistake(command, said, "Check the user, the password and the database", wrong), folder)
