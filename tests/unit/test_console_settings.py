"""The section `console` of the settings, and what it lets the console show of rows."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from sealbook.config import load_settings
from sealbook.config.console import MASK
from sealbook.console.access import guard_of, is_loopback
from sealbook.console.rendering import address, looks, shown_duration, shown_number, shown_time
from sealbook.console.rows_shown import RowsShown
from tests.support.books import SETTINGS, refused, write_book


def with_console(**section: object) -> dict[str, object]:
    return {**SETTINGS, "console": section}


def test_a_book_that_says_nothing_shows_rows_and_knows_nobody(tmp_path: Path) -> None:
    settings = load_settings(write_book(tmp_path)).console
    assert settings.tokens == tmp_path / "console-tokens.json"
    assert settings.show_rows
    assert (settings.proxy, settings.url, settings.public_host, settings.is_https) == (
        None,
        None,
        None,
        False,
    )


def test_what_is_said_is_read(tmp_path: Path) -> None:
    section = with_console(
        url="https://Book.example:8443",
        hosts=["book"],
        tokens="secrets/tokens.json",
        proxy={"addresses": ["10.0.0.5", "fd00::/8"], "groups_header": "X-Groups"},
        operators=["ann"],
        operator_groups=["data"],
        ledger_roles={"viewer": "lookers"},
        show_rows=False,
        masked_columns=["email"],
    )
    settings = load_settings(write_book(tmp_path, section)).console
    assert (settings.public_host, settings.is_https) == ("Book.example:8443", True)
    assert settings.proxy is not None
    assert settings.proxy.networks == (ip_network("10.0.0.5/32"), ip_network("fd00::/8"))
    assert settings.proxy.user_header == "X-Forwarded-User"
    assert settings.ledger_roles == ("lookers", None)
    assert settings.tokens == tmp_path / "secrets" / "tokens.json"
    hosts = guard_of("127.0.0.1", 8700, settings, ()).hosts
    assert {"book", "book.example:8443", "127.0.0.1:8700", "localhost:8700"} <= hosts


@pytest.mark.parametrize(
    ("section", "place"),
    [
        ({"url": "book.example"}, "console.url"),
        ({"url": "ftp://book.example"}, "console.url"),
        ({"url": "https://book.example/console"}, "console.url"),
        ({"proxy": {"addresses": ["proxy.example"]}}, "console.proxy.addresses[0]"),
        ({"proxy": {"addresses": ["10.0.0.5", "10.0.0.7/24"]}}, "console.proxy.addresses[1]"),
        ({"proxy": {"addresses": []}}, "console.proxy.addresses"),
        ({"proxy": {"addresses": ["10.0.0.5"], "user_header": "X User"}}, "console.proxy.user_header"),
        ({"proxy": {"addresses": ["10.0.0.5"], "groups_header": ""}}, "console.proxy.groups_header"),
        ({"proxy": {"addresses": ["10.0.0.5"], "header": "X-User"}}, "console.proxy.header"),
        ({"show_rows": "no"}, "console.show_rows"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, section: dict[str, object], place: str
) -> None:
    assert f"sealbook.yaml: {place}" in str(refused(write_book(tmp_path, with_console(**section))))


def test_rows_are_shown_masked_or_not_at_all() -> None:
    row = {"id": 1, "email": "a@example.com", "phone": None}
    assert RowsShown().row("orders", row) == row
    masked = RowsShown(masked_columns=frozenset({"email", "orders.phone"}))
    assert masked.row("orders", row) == {"id": 1, "email": MASK, "phone": MASK}
    assert masked.row("refunds", row) == {"id": 1, "email": MASK, "phone": None}
    assert masked.hidden_columns("orders", row) == ["email", "phone"]
    assert RowsShown(show_rows=False).row("orders", row) is None


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("10.0.0.1", False), ("localhost.example", False)],
)  # fmt: skip
def test_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_what_is_not_there_is_shown_as_nothing() -> None:
    assert [shown_time(None), shown_number(None), shown_duration(None)] == ["", "", ""]
    assert shown_number(1234567) == "1,234,567"
    assert shown_duration(3_725) == "1h 2m"
    assert shown_time("2026-01-02T03:04:05.678901+00:00") == "2026-01-02 03:04:05"
    assert (looks("FAILED"), looks("anything")) == ("bad", "")


def test_an_address_keeps_its_other_filters() -> None:
    from starlette.requests import Request

    asked = {"type": "http", "path": "/audit", "query_string": b"actor=a%26b&before=9", "headers": []}
    request = Request({**asked, "server": ("127.0.0.1", 80), "scheme": "http"})
    assert address(request, before=7) == "/audit?actor=a%26b&before=7"
    assert address(request, before=None, actor=None) == "/audit"
