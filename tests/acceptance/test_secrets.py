"""Secrets in every place that takes one: never in what is said, logged, recorded or planned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url, select

from sealbook.errors import Permanent
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.tables import metadata
from tests.support.cli import Ran, run, run_process
from tests.support.demo_books import write_demo_book
from tests.support.http_api import HttpApi, Reply
from tests.support.ledger import PostgresqlServer

CANARY = "hunter2-canary"
COMMANDS = (
    ("doctor", "--quick"),
    ("status",),
    ("state", "inspect"),
    ("run", "--day", "2026-01-01"),
    ("warehouse", "plan"),
    ("status", "alerts", "--send"),
    ("events", "show"),
    ("contract", "check"),
    ("explain", "google_ads/1234567890/campaign/2020-01-01"),
    ("source", "try", "--text", "x '{logical_date}'", "--customer", "1234567890", "--date", "2026-01-01"),
)
DEAD = "127.0.0.1:1"


@dataclass(frozen=True)
class Place:
    """A place that takes a secret, and how it is put there: by settings, files and the environment."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = COMMANDS


def ledgers() -> Iterator[Place]:
    urls = {
        "nobody answers": f"postgresql://ann:{CANARY}@{DEAD}/book?connect_timeout=2",
        "password as an option": f"postgresql://{DEAD}/book?user=ann&password={CANARY}&connect_timeout=2",
        "unknown option": f"postgresql://ann:{CANARY}@{DEAD}/book?bogus={CANARY}",
        "another kind": f"mysql://ann:{CANARY}@host/book",
        "no port": f"postgresql://ann:{CANARY}@host:port/book",
        "two at signs": f"postgresql://ann:x@{CANARY}@host/book",
        "no database": f"postgresql://ann:{CANARY}@host",
        "sqlite with a host": f"sqlite://ann:{CANARY}@host/book",
        "no URL": f"ann:{CANARY}@host/book",
    }
    for name, url in urls.items():
        yield Place(f"ledger, {name}", {"ledger": url})
        yield Place(
            f"ledger, {name}, by a variable", {"ledger": "${BOOK_LEDGER}"}, environment={"BOOK_LEDGER": url}
        )


def storages() -> Iterator[Place]:
    for setting in ("raw", "warehouse"):
        yield Place(f"{setting}, of a bucket", {setting: f"s3://key:{CANARY}@bucket/prefix"})
        yield Place(f"{setting}, no URL", {setting: f"s3://key:{CANARY}@[bucket/prefix"})
        yield Place(f"{setting}, odd letters", {setting: f"s3://key:{CANARY}@b\u2100/prefix"})
        yield Place(f"{setting}, no bucket", {setting: f"s3:key:{CANARY}@bucket"})
        yield Place(f"{setting}, another kind", {setting: f"ftp://key:{CANARY}@host/x"})
        yield Place(f"{setting}, signed", {setting: f"az://container/x?sig={CANARY}"})
        yield Place(f"{setting}, file", {setting: f"file://key:{CANARY}@host/x"})
    yield Place("archive", {"retention": {"events": "400d", "archive": f"s3://key:{CANARY}@bucket/x"}})
    endpoint = {"AWS_ENDPOINT_URL": f"http://key:{CANARY}@s3.example/x"}
    yield Place("endpoint of S3", {"raw": "s3://bucket/raw"}, environment=endpoint)


def sources() -> Iterator[Place]:
    def google_ads(options: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "sources": {"google_ads": {"queries": "q.yaml", "customers": ["1234567890"], "options": options}}
        }

    query = {
        "text": "SELECT campaign.id FROM campaign WHERE segments.date = '{logical_date}'",
        "schema_version": "1",
        "contracts": {"1": {"columns": {"campaign_id": {"type": "bigint"}}}},
    }
    queries = {"source": "google_ads", "api_version": "v26", "queries": {"campaign": query}}
    catalogue = {"q.yaml": yaml.safe_dump(queries)}
    account = json.dumps(
        {"type": "service_account", "client_email": "a@b", "private_key": CANARY, "token_uri": "x"}
    )
    files = {
        "no YAML": f"client_secret: [{CANARY}",
        "not a mapping": f"- {CANARY}",
        "incomplete": f"client_secret: {CANARY}\nrefresh_token: {CANARY}\n",
        "not to be used": f"developer_token: {CANARY}\njson_key_file_path: account.json\nuse_proto_plus: 1\n",
    }
    for name, text in files.items():
        yield Place(
            f"credentials file, {name}",
            google_ads({"credentials_file": "google-ads.yaml"}),
            {**catalogue, "google-ads.yaml": text, "account.json": json.dumps(account)},
        )
    variables = ("DEVELOPER_TOKEN", "CLIENT_SECRET", "REFRESH_TOKEN", "JSON_KEY_FILE_PATH")
    yield Place(
        "credentials in variables",
        google_ads({}),
        catalogue,
        {f"GOOGLE_ADS_{name}": CANARY for name in variables},
    )
    yield Place("an option that there is not", google_ads({"developer_token": CANARY}), catalogue)
    yield Place("an option of another type", google_ads({"timeout_seconds": CANARY}), catalogue)
    yield from http_apis()


def http_apis() -> Iterator[Place]:
    query = {
        "text": {"path": "/orders", "params": {"day": "{logical_date}"}},
        "schema_version": "1",
        "contracts": {"1": {"columns": {"id": {"type": "bigint"}}}},
    }
    catalogue = {"q.yaml": yaml.safe_dump({"source": "shop", "queries": {"orders": query}})}
    commands = (("doctor", "--quick"), ("run", "--day", "2026-01-01"), ("contract", "check"))

    def api(name: str, environment: Mapping[str, str] | None = None, **options: Any) -> Place:
        given = {"url": f"http://{DEAD}", **options}
        shop = {"type": "http_json", "queries": "q.yaml", "customers": ["acme"], "options": given}
        return Place(f"API, {name}", {"sources": {"shop": shop}}, catalogue, environment or {}, commands)

    by_variable: dict[str, Any] = {
        "headers": {"Authorization": {"env": "SHOP_TOKEN"}},
        "params": {"key": {"env": "SHOP_TOKEN"}},
    }
    yield api("by a variable", {"SHOP_TOKEN": CANARY}, **by_variable)
    yield api("no header", {"SHOP_TOKEN": f"{CANARY}\nx"}, **by_variable)
    yield api("in the settings", headers={"A": CANARY}, params={"key": CANARY})
    yield api("no variable", headers={"A": {"env": "NO_SUCH", "prefix": CANARY}})
    yield api("of another type", headers={"A": [CANARY]})
    yield api("in the path", url=f"http://{DEAD}/{CANARY}")
    yield api("with a password", url=f"https://ann:{CANARY}@host")
    yield api("with a key", url=f"https://host/?key={CANARY}")
    yield api("no URL", url=f"ann:{CANARY}@host")


def receivers() -> Iterator[Place]:
    headers = {"Authorization": f"Bearer {CANARY}"}
    yield Place("alerts", {"alerts": {"url": f"http://{DEAD}/{CANARY}?token={CANARY}", "headers": headers}})
    yield Place("alerts, with a password", {"alerts": {"url": f"http://ann:{CANARY}@{DEAD}/"}})
    yield Place("alerts, no URL", {"alerts": {"url": f"ann:{CANARY}@host"}})
    yield Place(
        "alerts, a header with a line",
        {"alerts": {"url": f"http://{DEAD}/", "headers": {"A": f"{CANARY}\nx"}}},
    )
    yield Place("alerts, a command", {"alerts": {"command": ["no-such-command", CANARY]}})
    lineage = (("run", "--day", "2026-01-01"), ("doctor", "--quick"), ("lineage", "send"))
    for name, url in {
        "nobody answers": f"http://ann:{CANARY}@{DEAD}/{CANARY}?key={CANARY}",
        "no URL": f"ann:{CANARY}@host",
    }.items():
        yield Place(f"lineage, {name}", {"lineage": {"url": url, "headers": headers}}, commands=lineage)


def files() -> Iterator[Place]:
    good = "ledger: sqlite:///sealbook.db\n"
    broken = {
        "not YAML": f"{good}spark: [{CANARY}\n",
        "twice": f"{good}tenant: {CANARY}\ntenant: {CANARY}\n",
        "of another type": f"{good}spark: {CANARY}\n",
        "in a list": f"ledger: [{CANARY}]\n",
        "a variable that is not set": "ledger: ${NO_SUCH_VARIABLE}\n",
        "no variable": f"ledger: ${{{CANARY}\n",
    }
    for name, text in broken.items():
        yield Place(f"settings, {name}", files={"sealbook.yaml": text}, commands=(("doctor",), ("status",)))
    secret = {"spark.hadoop.fs.s3a.secret.key": CANARY}
    yield Place(
        "configuration of Spark", {"spark": {"master": "local[1]", "config": {**secret, "x": [CANARY]}}}
    )


PLACES = [*ledgers(), *storages(), *sources(), *receivers(), *files()]


Try = Callable[[Place, str], Iterator[Ran]]


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """Put a secret in its place, and give commands one after the other; none gets as far as Spark."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("spark_session", "start_java"):
        monkeypatch.setattr(f"sealbook.spark.session.{name}", no_spark)

    def give(place: Place, form: str) -> Iterator[Ran]:
        write_demo_book(tmp_path, **place.settings)
        for name, text in place.files.items():
            (tmp_path / name).write_text(text)
        environment = {"SEALBOOK_LOG": form, **place.environment}
        for command in place.commands:
            yield run("--debug", *command, cwd=tmp_path, env=environment)

    return give


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_secret_is_not_said(tried: Try, tmp_path: Path, place: Place, form: str) -> None:
    """In no result, message or traceback, and in no file that a command writes."""
    for ran in tried(place, form):
        assert CANARY not in ran.out
        assert CANARY not in ran.err
    assert set(holding_it(tmp_path)) <= {"sealbook.yaml", *place.files}


def no_spark(_settings: object) -> None:
    raise Permanent("there is no Spark in this test")


def test_the_password_of_a_ledger_is_nowhere_in_it(tried: Try, postgresql: PostgresqlServer) -> None:
    """A ledger that answers: events, plans and contracts are written, and every table is read."""
    url = make_url(postgresql.create_ledger()).set(password=CANARY)
    place = Place("ledger", {"ledger": url.render_as_string(hide_password=False)})
    for ran in tried(place, "json"):
        assert CANARY not in ran.out + ran.err
    with closing(Database(str(place.settings["ledger"]))) as database, database.read() as connection:
        rows = {table.name: connection.execute(select(table)).all() for table in metadata.sorted_tables}
    assert rows["run_event"]
    assert [name for name, found in rows.items() if CANARY in repr(found)] == []


def test_a_whole_run_keeps_its_secrets(tmp_path: Path) -> None:
    """With Spark: a secret of its configuration is in nothing that is said, sealed, recorded or published."""
    secret = {"spark.hadoop.fs.s3a.secret.key": "${S3A_SECRET}"}
    write_demo_book(tmp_path, spark={"master": "local[1]", "config": secret})
    environment = {"S3A_SECRET": CANARY, "SEALBOOK_LOG": "json"}
    ran = run_process("run", "--day", "2026-01-02", cwd=tmp_path, env=environment)
    assert ran.code == 3, ran.err
    told = run_process("events", "export", "--to", "log", cwd=tmp_path, env=environment)
    assert told.code == 0, told.err
    assert CANARY not in ran.out + ran.err + told.out + told.err
    assert holding_it(tmp_path) == []


def test_a_whole_run_against_an_api_keeps_its_secrets(http_api: HttpApi, tmp_path: Path) -> None:
    """With Spark: in no raw metadata, event, plan or message, whether the API takes it, or not."""
    shop = {
        "type": "http_json",
        "queries": "q.yaml",
        "customers": ["acme", "globex"],
        "options": {
            "url": http_api.origin,
            "headers": {"Authorization": {"env": "SHOP_TOKEN", "prefix": "Bearer "}},
            "params": {"key": "${SHOP_TOKEN}"},
        },
    }
    query = {
        "text": "/{customer_id}/{logical_date}",
        "schema_version": "1",
        "contracts": {"1": {"columns": {"id": {"type": "bigint"}}}},
    }
    write_demo_book(tmp_path, sources={"shop": shop})
    (tmp_path / "q.yaml").write_text(yaml.safe_dump({"source": "shop", "queries": {"orders": query}}))
    http_api.reply("/acme/2026-01-02", Reply([{"id": 1}]))
    http_api.reply("/globex/2026-01-02", Reply({"said": CANARY}, status=401))
    environment = {"SHOP_TOKEN": CANARY, "SEALBOOK_LOG": "json", "NO_PROXY": "127.0.0.1"}
    ran = run_process("--debug", "run", "--day", "2026-01-02", cwd=tmp_path, env=environment)
    assert ran.code == 3, ran.err
    assert {each.headers["Authorization"] for each in http_api.requests} == {f"Bearer {CANARY}"}
    told = run_process("events", "export", "--to", "log", cwd=tmp_path, env=environment)
    assert told.code == 0, told.err
    assert CANARY not in ran.out + ran.err + told.out + told.err
    assert holding_it(tmp_path) == []


def holding_it(folder: Path) -> list[str]:
    """Return the files that hold the secret."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if CANARY.encode() in file.read_bytes()]
