"""Who is told of alerts: a command or an address, and nothing secret in what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sealbook.config import load_settings
from sealbook.config.settings import AlertSettings
from tests.support.books import SETTINGS, refused, write_book

SECRET = "hunter2"
URL = {"url": "https://host"}


def book(folder: Path, alerts: dict[str, Any]) -> Path:
    return write_book(folder, {**SETTINGS, "alerts": alerts})


@pytest.mark.parametrize(
    ("alerts", "field", "says"),
    [
        ({}, "alerts", "expected a command or a url"),
        ({**URL, "command": ["tell"]}, "alerts", "expected a command or a url"),
        ({"command": []}, "alerts.command", "expected a list of length >= 1"),
        ({"command": "tell me"}, "alerts.command", "expected"),
        ({"command": ["tell"], "headers": {"A": "b"}}, "alerts.headers", "a command gets no headers"),
        ({"url": f"ftp://host/{SECRET}"}, "alerts.url", "expected an http:// or https:// URL with a host"),
        ({"url": f"https:///{SECRET}"}, "alerts.url", "expected an http:// or https:// URL with a host"),
        ({**URL, "headers": {"A": f"{SECRET}\nB: c"}}, "alerts.headers.A", "this cannot be a header"),
        ({**URL, "headers": {"A: b": SECRET}}, "alerts.headers.A: b", "this cannot be a header"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, alerts: dict[str, Any], field: str, says: str) -> None:
    error = str(refused(book(tmp_path, alerts)))
    assert error.startswith(f"{tmp_path}/sealbook.yaml: {field}: {says}")
    assert SECRET not in error


def test_nobody_is_told_by_default(tmp_path: Path) -> None:
    assert load_settings(write_book(tmp_path)).alerts is None


def test_secrets_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALERTS_TOKEN", SECRET)
    token = {"Authorization": "Bearer ${ALERTS_TOKEN}"}
    settings = load_settings(book(tmp_path, {"url": "https://host/${ALERTS_TOKEN}", "headers": token}))
    assert settings.alerts == AlertSettings(
        None, f"https://host/{SECRET}", {"Authorization": f"Bearer {SECRET}"}
    )
    assert SECRET not in repr(settings)
