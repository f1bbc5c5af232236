"""`sealbook doctor`: each thing that can be wrong with what a book stands on is named, with the way out."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import psycopg
import pytest
import yaml
from sqlalchemy import make_url, update
from ulid import ULID

import sealbook
from sealbook.ledger import grant_roles, health, open_ledger
from sealbook.ledger.db.engine import Database
from sealbook.ledger.db.leases import claim
from sealbook.ledger.pointers.tables import removal
from sealbook.ledger.schedule.scheduler import Terms
from sealbook.ledger.states.tables import partition_state
from sealbook.model.artifacts import Artifact
from sealbook.storage import open_storage
from sealbook.views import doctor
from tests.support.books import changed, contents
from tests.support.cli import Ran, run
from tests.support.google_ads import Failure, GoogleAdsServer
from tests.support.ledger import PostgresqlServer, run_id
from tests.support.published import CONTRACTS, key, publish, write, write_book
from tests.support.runs import new_run_id
from tests.support.schedule import SetClock, open_work, work_of
from tests.support.validation import seal

NEXT_YEAR = str(ULID.from_datetime(datetime.now(UTC) + timedelta(days=365)))
LONG_AGO = datetime.now(UTC) - timedelta(days=30)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A book with a published partition, in which all is well."""
    write_book(tmp_path)
    with sealbook.open(tmp_path) as book:
        book.ledger.contracts.put_in_force(book.queries)
        publish(book.ledger, book.settings.warehouse, [key()], version="2")
    seal(tmp_path / "raw", key(), [{"id": 1}], run_id(1))
    return tmp_path


def edit(folder: Path, name: str, path: str, value: object) -> None:
    file = folder / name
    file.write_text(yaml.safe_dump(changed(yaml.safe_load(file.read_text()), path, value), sort_keys=False))


def levels(ran: Ran) -> dict[str, str]:
    """Return the worst that was found of each part."""
    order = ("ok", "warn", "fail")
    worst: dict[str, str] = {}
    for each in ran.json:
        worst[each["part"]] = max(each["level"], worst.get(each["part"], "ok"), key=order.index)
    return worst


def test_all_is_well(folder: Path) -> None:
    """Every part is named once or twice, nothing is left in the folders, and the exit code is 0."""
    before = contents(folder)
    ran = run("doctor", cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert all(line.startswith("ok    ") for line in lines)
    assert [line.split()[1] for line in lines] == [
        "java:",
        "configuration:",
        "ledger:",
        "raw:",
        "warehouse:",
        "source",
        "contracts:",
        "raw:",
        "warehouse:",
    ]
    after = contents(folder)
    for made_by_sqlite in ("book.db-shm", "book.db-wal"):
        before.pop(made_by_sqlite, None)
        after.pop(made_by_sqlite, None)
    assert after == before


def test_a_book_in_which_nothing_was_done_yet(tmp_path: Path) -> None:
    """Neither ledger nor folders are made only to be looked at."""
    write_book(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    ran = run("doctor", "--format", "json", cwd=tmp_path)
    assert ran.code == 0
    assert set(levels(ran).values()) == {"ok"}
    assert sorted(tmp_path.rglob("*")) == before


def test_a_book_with_nothing_but_a_ledger(tmp_path: Path) -> None:
    write_book(tmp_path)
    with sealbook.open(tmp_path) as book:
        book.ledger.open_run()
    ran = run("doctor", "--format", "json", cwd=tmp_path)
    assert (ran.code, set(levels(ran).values())) == (0, {"ok"})
    assert not (tmp_path / "raw").exists()
    assert not (tmp_path / "warehouse").exists()


def a_typing_error(folder: Path) -> None:
    edit(folder, "sealbook.yaml", "sources.demo.customers", ["not a customer"])


def a_raw_store_that_is_a_file(folder: Path) -> None:
    (folder / "file").touch()
    edit(folder, "sealbook.yaml", "raw", "file")


def an_unknown_source(folder: Path) -> None:
    edit(folder, "sealbook.yaml", "sources", {"nobody": {"queries": "queries.yaml", "customers": ["c0"]}})
    edit(folder, "queries.yaml", "source", "nobody")


def changed_columns(folder: Path) -> None:
    path = "queries.campaign_daily.contracts.2.columns.clicks.type"
    edit(folder, "queries.yaml", path, "string")


def an_older_ledger(folder: Path) -> None:
    _execute(folder, "UPDATE alembic_version SET version_num = '0009'")


def a_newer_ledger(folder: Path) -> None:
    _execute(folder, "UPDATE alembic_version SET version_num = '9999'")


def a_sealed_run_from_the_future(folder: Path) -> None:
    seal(folder / "raw", key(), [{"id": 1}], NEXT_YEAR)


def an_authority_from_the_future(folder: Path) -> None:
    """As ledgers may have one that were written before such runs were refused."""
    with sealbook.open(folder) as book:
        change = update(partition_state).values(current_run_id=NEXT_YEAR)
        book.ledger._database.write(lambda connection: connection.execute(change))


def a_lease_whose_holder_died(folder: Path) -> None:
    with sealbook.open(folder) as book:
        book.ledger._database.write(
            lambda connection: claim(connection, ["projection"], "host-1", LONG_AGO, timedelta(minutes=1))
        )


def a_claim_whose_holder_died(folder: Path) -> None:
    with open_ledger(f"sqlite:///{folder}/book.db", clock=SetClock(LONG_AGO)) as ledger:
        open_work(ledger, [work_of(key(), ready_at=LONG_AGO)])
        assert ledger.scheduler.claim("host-2", Terms(["demo"]), limit=1, lease=timedelta(minutes=1))


def a_clock_that_was_set_back(folder: Path) -> None:
    ahead = SetClock(datetime.now(UTC) + timedelta(hours=1))
    with open_ledger(f"sqlite:///{folder}/book.db", clock=ahead) as ledger:
        ledger.open_run()


def a_payload_that_nobody_sealed(folder: Path) -> None:
    seal(folder / "raw", key(), [{"id": 1}], new_run_id())
    [seal_file] = set((folder / "raw").rglob("metadata.json")) - {
        path for path in (folder / "raw").rglob("metadata.json") if run_id(1) in str(path)
    }
    seal_file.unlink()
    for path in seal_file.parent.iterdir():
        os.utime(path, (0, 0))


def files_of_a_load_that_died(folder: Path) -> None:
    write(folder / "warehouse", key(1), 1, contract=CONTRACTS["1"])


def a_clean_up_that_died(folder: Path) -> None:
    with sealbook.open(folder) as book:
        book.ledger.pointers.condemn([Artifact(key(1), run_id(1), "1")], timedelta(0))
        change = update(removal).values(condemned_at=LONG_AGO)
        book.ledger._database.write(lambda connection: connection.execute(change))


def _execute(folder: Path, statement: str) -> None:
    database = Database(f"sqlite:///{folder}/book.db")
    database.write(lambda connection: connection.exec_driver_sql(statement))
    database.close()


class Wrong(NamedTuple):
    """What is wrong, how bad that is for which part, and what is said of it, with the way out."""

    happened: Callable[[Path], None]
    level: str
    part: str
    said: str
    way_out: str


WRONG = [
    Wrong(a_typing_error, "fail", "configuration", "customers[0]", ""),
    Wrong(a_raw_store_that_is_a_file, "fail", "raw", "sealbook.yaml: raw: ", "Name a folder"),
    Wrong(an_unknown_source, "fail", "source nobody", "there is no source 'nobody'", "Correct the name"),
    Wrong(
        changed_columns, "fail", "contracts", "clicks was bigint, is string", "schema_version of their own"
    ),
    Wrong(an_older_ledger, "warn", "ledger", "revision 0009", "migrates it by itself"),
    Wrong(a_newer_ledger, "fail", "ledger", "9999", "Upgrade Sealbook"),
    Wrong(a_sealed_run_from_the_future, "warn", "raw", f"and set aside: {key()}", "delete the directory"),
    Wrong(an_authority_from_the_future, "warn", "ledger", f"no new run takes over: {key()}", "rollback"),
    Wrong(a_lease_whose_holder_died, "warn", "ledger", "lease projection of host-1", "next who comes"),
    Wrong(a_claim_whose_holder_died, "warn", "ledger", "1 partition is claimed by host-2", "start another"),
    Wrong(a_clock_that_was_set_back, "warn", "ledger", "ahead of its clock", "Set the clock right"),
    Wrong(a_payload_that_nobody_sealed, "warn", "raw", "1 file", "sealbook raw gc"),
    Wrong(files_of_a_load_that_died, "warn", "warehouse", "1 artifact", "sealbook warehouse gc"),
    Wrong(a_clean_up_that_died, "warn", "warehouse", "a clean-up died", "sealbook warehouse gc"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.happened.__name__)
def test_what_is_wrong_is_named_with_the_way_out(folder: Path, wrong: Wrong) -> None:
    """For people and for programs alike; warnings alone do not fail."""
    wrong.happened(folder)
    ran = run("doctor", "--format", "json", cwd=folder)
    [found] = [each for each in ran.json if each["level"] == wrong.level]
    assert found["part"] == wrong.part
    assert wrong.said in found["text"]
    assert wrong.way_out in (found["remedy"] or "")
    assert ran.code == (1 if wrong.level == "fail" else 0)
    assert {each["level"] for each in ran.json} == {"ok", wrong.level}

    shown = run("doctor", cwd=folder)
    assert shown.code == ran.code
    label = {"fail": "FAIL", "warn": "warn"}[wrong.level]
    [line] = [line for line in shown.out.splitlines() if not line.startswith("ok")]
    assert line.startswith(f"{label:<6}{wrong.part}: ")
    assert found["remedy"] is None or line.endswith(f"→ {found['remedy']}")


def test_raw_list_names_what_is_from_the_future(folder: Path) -> None:
    """R-RUN-2: beside the run itself, with the way out; results stay results."""
    assert "future" not in run("raw", "list", cwd=folder).err
    a_sealed_run_from_the_future(folder)
    ran = run("raw", "list", "--format", "json", cwd=folder)
    assert [each["run_id"] for each in ran.json] == [run_id(1), NEXT_YEAR]
    assert f"{key()}: run {NEXT_YEAR} is from the future" in ran.said
    assert "fetch the partition again" in ran.said


def test_a_quick_look_lists_nothing(folder: Path) -> None:
    """What only a listing of everything can tell is left out; what the ledger tells is not."""
    for happened in (a_sealed_run_from_the_future, files_of_a_load_that_died, a_lease_whose_holder_died):
        happened(folder)
    worst = levels(run("doctor", "--quick", "--format", "json", cwd=folder))
    assert {part for part, level in worst.items() if level != "ok"} == {"ledger"}


def on_google_ads(folder: Path, endpoint: str, api_version: str) -> Ran:
    """Look at a book whose one query asks a server that is there."""
    source = {"queries": "queries.yaml", "customers": ["1234567890"], "options": {"endpoint": endpoint}}
    edit(folder, "sealbook.yaml", "sources", {"google_ads": source})
    edit(folder, "queries.yaml", "source", "google_ads")
    edit(folder, "queries.yaml", "api_version", api_version)
    for query in yaml.safe_load((folder / "queries.yaml").read_text())["queries"]:
        edit(folder, "queries.yaml", f"queries.{query}.text", "SELECT x FROM y WHERE d = '{logical_date}'")
    return run("doctor", "--quick", "--format", "json", cwd=folder)


def test_a_source_is_asked_something_cheap(tmp_path: Path, google_ads_server: GoogleAdsServer) -> None:
    """One call that is no fetch; what it answers is told, and what it refuses fails."""
    write_book(tmp_path)
    said = [each["text"] for each in on_google_ads(tmp_path, google_ads_server.endpoint, "v26").json]
    assert "API v26 answers: 1 account directly accessible" in said
    assert google_ads_server.requests == []

    google_ads_server.accounts = ()
    ran = run("doctor", "--quick", "--format", "json", cwd=tmp_path)
    [found] = [each for each in ran.json if each["level"] == "warn"]
    assert (ran.code, found["part"]) == (0, "source google_ads")
    assert "has no account" in found["text"]

    refusal = {
        "error_code": {"authorization_error": "CLOUD_PROJECT_NOT_UNDER_ORGANIZATION"},
        "message": "no project",
    }
    google_ads_server.accounts = Failure("PERMISSION_DENIED", [refusal])
    ran = run("doctor", "--quick", "--format", "json", cwd=tmp_path)
    [found] = [each for each in ran.json if each["level"] == "fail"]
    assert (ran.code, found["part"]) == (1, "source google_ads")
    assert "CLOUD_PROJECT_NOT_UNDER_ORGANIZATION" in found["text"]
    assert "Move the Cloud project" in found["remedy"]


@pytest.mark.parametrize(
    ("today", "level", "code"),
    [
        (datetime(2026, 11, 18, tzinfo=UTC), "warn", 0),
        (datetime(2027, 1, 20, tzinfo=UTC), "warn", 0),
        (datetime(2027, 1, 25, tzinfo=UTC), "fail", 1),
    ],
)
def test_an_api_version_that_will_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, today: datetime, level: str, code: int
) -> None:
    monkeypatch.setattr(doctor, "utc_now", lambda: today)
    write_book(tmp_path)
    with GoogleAdsServer(api_version="v23") as server:
        ran = on_google_ads(tmp_path, server.endpoint, "v23")
    [found] = [each for each in ran.json if each["level"] != "ok"]
    assert (found["level"], ran.code, found["part"]) == (level, code, "source google_ads")
    assert found["text"].startswith("API v23 ends in February 2027")
    assert "`api_version`" in found["remedy"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "Java 11.0.2, which is too old"),
        ("echo hello >&2", "does not say its version"),
    ],
)
def test_a_java_that_will_not_do(folder: Path, answer: str, said: str) -> None:
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{answer}\n")
    java.chmod(0o755)
    ran = run("doctor", "--format", "json", cwd=folder, env={"JAVA_HOME": str(folder / "jdk")})
    assert ran.code == 1
    assert said in ran.json[0]["text"]
    assert "Java 17" in ran.json[0]["remedy"]


def test_no_java_and_no_book(tmp_path: Path) -> None:
    ran = run("doctor", "--format", "json", cwd=tmp_path, env={"JAVA_HOME": "/nowhere"})
    assert ran.code == 1
    assert levels(ran) == {"java": "fail", "configuration": "fail"}
    assert "sealbook init" in ran.json[1]["remedy"]


def test_a_bucket_that_is_not_there(folder: Path, s3_url: str) -> None:
    """The line of the settings is named. The warehouse, whose bucket is there, is probed and left alone."""
    edit(folder, "sealbook.yaml", "raw", "s3://shop-bok/raw")
    edit(folder, "sealbook.yaml", "warehouse", s3_url)
    ran = run("doctor", "--quick", "--format", "json", cwd=folder, env=dict(os.environ))
    assert ran.code == 1
    worst = levels(ran)
    assert (worst["raw"], worst["warehouse"]) == ("fail", "ok")
    [found] = [each for each in ran.json if each["level"] == "fail"]
    assert "sealbook.yaml: raw: " in found["text"]
    assert "(line " in found["text"]
    assert "exists" in found["remedy"]
    assert list_bucket(s3_url) == []


def list_bucket(url: str) -> list[str]:
    return open_storage("bucket", url)[1].names("_probe")


@pytest.fixture
def on_postgresql(folder: Path) -> Callable[[str], None]:
    """Put a ledger on PostgreSQL in the place of the book's own."""

    def put(url: str) -> None:
        edit(folder, "sealbook.yaml", "ledger", url)

    return put


def test_a_machine_whose_clock_is_wrong(
    folder: Path,
    postgresql: PostgresqlServer,
    on_postgresql: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R-STATE-11: the ledger goes by its own clock; it is said how far this machine's is off."""
    on_postgresql(postgresql.create_ledger())
    monkeypatch.setattr(health, "utc_now", lambda: datetime.now(UTC) - timedelta(minutes=2))
    ran = run("doctor", "--quick", "--format", "json", cwd=folder)
    [found] = [each for each in ran.json if each["level"] == "warn"]
    assert (ran.code, found["part"]) == (0, "ledger")
    assert found["text"] == "this machine's clock is 120 s behind the ledger's"


def test_a_ledger_on_postgresql(
    folder: Path, postgresql: PostgresqlServer, on_postgresql: Callable[[str], None]
) -> None:
    """Which server, revision, clock and role; what roles lack since a migration; who has no role at all."""
    url, prefix = postgresql.create_ledger(), f"r{uuid4().hex[:12]}_"
    grant_roles(url, prefix)
    on_postgresql(url)
    ran = run("doctor", "--quick", "--format", "json", cwd=folder)
    assert ran.code == 0
    [found] = [each for each in ran.json if each["part"] == "ledger"]
    assert found["level"] == "ok"
    assert found["text"].startswith("PostgreSQL ")
    assert " s apart, user postgres: consumer, viewer, extractor, loader, validator, control" in found["text"]

    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"REVOKE EXECUTE ON FUNCTION run_event_append FROM {prefix}loader".encode())
        admin.execute(f"CREATE ROLE {prefix}reader LOGIN IN ROLE {prefix}consumer".encode())
        admin.execute(f"CREATE ROLE {prefix}nobody LOGIN".encode())
    try:
        ran = run("doctor", "--quick", "--format", "json", cwd=folder)
        [lacks] = [each for each in ran.json if each["level"] == "warn"]
        assert f"role {prefix}loader lacks 1 right: EXECUTE ON FUNCTION run_event_append" in lacks["text"]
        assert "sealbook ledger grant" in lacks["remedy"]

        on_postgresql(postgresql.url(str(make_url(url).database), f"{prefix}reader"))
        ran = run("doctor", "--quick", "--format", "json", cwd=folder)
        assert ran.code == 0
        assert f"user {prefix}reader: consumer" in " ".join(each["text"] for each in ran.json)

        on_postgresql(postgresql.url(str(make_url(url).database), f"{prefix}nobody"))
        ran = run("doctor", "--quick", "--format", "json", cwd=folder)
        assert (ran.code, levels(ran)["ledger"]) == (1, "fail")
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"DROP ROLE {prefix}reader".encode())
            admin.execute(f"DROP ROLE {prefix}nobody".encode())
            for role in ("consumer", "viewer", "extractor", "loader", "validator", "control"):
                admin.execute(f"DROP OWNED BY {prefix}{role}".encode())
                admin.execute(f"DROP ROLE {prefix}{role}".encode())


def test_a_ledger_that_is_not_migrated_or_not_there(
    folder: Path, postgresql: PostgresqlServer, on_postgresql: Callable[[str], None]
) -> None:
    on_postgresql(postgresql.create_database())
    ran = run("doctor", "--quick", "--format", "json", cwd=folder)
    [found] = [each for each in ran.json if each["level"] == "fail"]
    assert (found["part"], found["remedy"]) == ("ledger", "Run `sealbook ledger migrate`.")

    on_postgresql("postgresql://127.0.0.1:1/nothing")
    ran = run("doctor", "--quick", "--format", "json", cwd=folder)
    [found] = [each for each in ran.json if each["level"] == "fail"]
    assert (ran.code, found["part"]) == (1, "ledger")
    assert found["remedy"]
