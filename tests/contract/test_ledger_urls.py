"""Ledger URLs: a bad one is a ConfigError before anything is created; no message shows a password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from sealbook.errors import ConfigError, NotMigrated
from sealbook.ledger import grant_roles, migrate, open_ledger
from sealbook.ledger.db.urls import parse_url, printable
from tests.support.ledger import PostgresqlServer

SECRET = "s3cret"

BAD_URLS: list[Any] = [
    "",
    " ",
    "book.db",
    "/var/lib/book.db",
    "sqlite",
    "sqlite:",
    "sqlite:book.db",
    "sqlite:/book.db",
    "sqlite//book.db",
    "://book.db",
    "file:///book.db",
    "sqlite://book.db",
    "sqlite://folder/book.db",
    f"sqlite://ann:{SECRET}@/book.db",
    "sqlite://:5432/book.db",
    "sqlite:///book\0.db",
    "sqlite:///\ud800.db",
    "sqlite:///book.db?mode=ro",
    "sqlite:///file:book.db?uri=true",
    "sqlite:///book.db?timeout=1",
    "sqlite:///no/such/folder/book.db",
    "sqlite:////no/such/folder/book.db",
    "sqlite3:///book.db",
    "sqlite+aiosqlite:///book.db",
    "mysql://ann@host/book",
    "duckdb:///book.db",
    "https://host/book",
    "postgres://ann@host/book",
    "postgresql+psycopg2://ann@host/book",
    "postgresql+asyncpg://ann@host/book",
    "postgresql:/ann@host/book",
    "postgresql://",
    "postgresql://host",
    "postgresql://ann@host/",
    f"postgresql://ann:{SECRET}@host:port/book",
    f"postgresql://ann:{SECRET}@host:54a32/book",
    "postgresql://host:0/book",
    "postgresql://host:65536/book",
    "postgresql://host:-1/book",
    f"postgresql://ann:{SECRET}@half@host/book",
    f"postgresql://ann:{SECRET}@host/book?colour=blue",
    "postgresql://host/book?autocommit=true",
    "postgresql://host/book?plugin=evil",
    "postgresql://host/\ud800",
    "postgresql://host/book?host=a:1&host=b&port=2",
    b"sqlite:///book.db",
    None,
    7,
    Path("book.db"),
]


@pytest.mark.parametrize("url", BAD_URLS, ids=ascii)
def test_bad_urls(url: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way in refuses, with a remedy, without the password, and leaves no file behind."""
    monkeypatch.chdir(tmp_path)
    for way_in in (open_ledger, migrate, grant_roles):
        with pytest.raises(ConfigError) as refused:
            way_in(url)
        assert refused.value.remedy
        assert SECRET not in _told(refused.value)
    assert list(tmp_path.iterdir()) == []


def _told(error: BaseException | None) -> str:
    """Return all that an error, its remedy and its causes say."""
    said = ""
    while error is not None:
        said += f"{error!r} {error} {getattr(error, 'remedy', '')}\n"
        error = error.__cause__
    return said


def test_a_folder_is_no_book(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"):
        open_ledger(f"sqlite:///{tmp_path}")
    assert list(tmp_path.iterdir()) == []


def test_sqlite_has_no_roles_and_no_file_for_having_been_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no roles") as refused:
        grant_roles(f"sqlite:///{tmp_path}/book.db")
    assert "PostgreSQL" in str(refused.value.remedy)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///book.db", "sqlite:///book.db"),
        ("sqlite:////var/book.db", "sqlite:////var/book.db"),
        ("postgresql://ann@host/book", "postgresql://ann@host/book"),
        ("postgresql+psycopg://ann@host:5433/book", "postgresql://ann@host:5433/book"),
        (f"postgresql://ann:{SECRET}@host/book", "postgresql://ann:***@host/book"),
        (f"postgresql://host/book?password={SECRET}&sslmode=require", "postgresql://host/book"),
        ("postgresql://ann@/book?host=/run/pg", "postgresql://ann@/book?host=%2Frun%2Fpg"),
        ("postgresql:///?service=books", "postgresql:///?service=books"),
        ("postgresql:///?dbname=book", "postgresql:///?dbname=book"),
    ],
)
def test_good_urls_as_they_are_shown(url: str, shown: str) -> None:
    """What names the place is shown; what could be secret is not."""
    assert printable(parse_url(url)).replace("/run/pg", "%2Frun%2Fpg") == shown


def test_paths_with_odd_characters(tmp_path: Path) -> None:
    """Percent signs are written as in any URL."""
    folder = tmp_path / "a b é"
    folder.mkdir()
    open_ledger(f"sqlite:///{folder}/50%25.db").close()
    assert (folder / "50%.db").exists()


def test_options_of_the_url_reach_the_server(postgresql: PostgresqlServer) -> None:
    """A schema of one's own works, next to what Sealbook itself asks for."""
    url = postgresql.create_database()
    with psycopg.connect(url) as admin:
        admin.execute("CREATE SCHEMA books")
    options = "&options=-csearch_path%3Dbooks&application_name=ours"
    with open_ledger(url + options, migrate=True) as ledger, ledger._database.read() as connection:
        assert connection.exec_driver_sql("SHOW application_name").scalar() == "ours"
        assert connection.exec_driver_sql("SHOW timezone").scalar() == "UTC"
        where = "SELECT schemaname FROM pg_tables WHERE tablename = 'attempt'"
        assert connection.exec_driver_sql(where).scalars().all() == ["books"]
    with pytest.raises(NotMigrated):
        open_ledger(url)
